"""Settings of different sections that contradict each other; pure functions.

Limits that have to fit into each other are in ``kafka.time_limits``: they need the settings of the clients as well.
"""

from collections.abc import Iterator, Mapping

from consumer.config.sections.feed import SourceSection
from consumer.config.sections.judge import FingerprintSection, JudgeSection, RuleSection
from consumer.config.sections.kafka import KafkaSection, RegistrySection
from consumer.fingerprint import SCHEME_NAMES, Scheme


def source_faults(source: SourceSection, judge: JudgeSection) -> Iterator[str]:
    """Yield why a batch could not be judged in full."""
    if source.batch_records_max > judge.verifications_max:
        yield (
            f"source.batch_records_max {source.batch_records_max} is more than judge.verifications_max"
            f" {judge.verifications_max}: a flood within one batch would not be looked at in full"
        )


def schema_faults(kafka: KafkaSection, registry: RegistrySection) -> Iterator[str]:
    """Yield why values could not be decoded."""
    if kafka.value_format != "json" and not registry.url:
        yield f'kafka.value_format = "{kafka.value_format}" needs schemas: name their registry in registry.url'


def near_miss_faults(kafka: KafkaSection, judge: JudgeSection) -> Iterator[str]:
    """Yield why there could be no near misses."""
    if kafka.near_miss_share and not judge.verify:
        yield "kafka.near_miss_share has no effect with verify = false; plain SimHash compares no similarities"


def profile_faults(judge: JudgeSection, fingerprint: FingerprintSection) -> Iterator[str]:
    """Yield why a profile does not fit a scheme."""
    if judge.profile not in {"posts", "mixed"} or fingerprint.scheme not in SCHEME_NAMES:
        return
    if not judge.verify:
        yield f'judge.profile = "{judge.profile}" has no effect with verify = false; plain SimHash compares no sketches'
    elif not Scheme(fingerprint.scheme).definition.compares_letters:
        yield (
            f'judge.profile = "{judge.profile}" is made for schemes that compare letters, such as {Scheme().name}; '
            f"with {fingerprint.scheme} set the bands and thresholds themselves"
        )


def slot_faults(
    rules: Mapping[str, RuleSection], judge: JudgeSection, fingerprint: FingerprintSection
) -> Iterator[str]:
    """Yield why slots cannot be compared, or which rule would accept more than the judge does."""
    guarded: dict[str, JudgeSection | RuleSection] = {"judge": judge}
    guarded |= {f"rules.{source}": rule for source, rule in rules.items()}
    slots = [name for name, each in guarded.items() if each.slot_conflicts_max is not None]
    if not slots:
        return
    for name in [name for name, each in guarded.items() if each.facts_shared_min]:
        yield f"{slots[0]}.slot_conflicts_max excludes {name}.facts_shared_min: a store keeps slots or facts"
    if fingerprint.scheme in SCHEME_NAMES and not Scheme(fingerprint.scheme).definition.compares_letters:
        yield f"{slots[0]}.slot_conflicts_max needs a scheme that compares letters, such as {Scheme().name}"
    for source, rule in rules.items():
        if rule.slot_conflicts_max is None:
            continue
        if not judge.verify:
            yield f"rules.{source}.slot_conflicts_max has no effect with verify = false"
        if judge.slot_conflicts_max is not None and rule.slot_conflicts_max > judge.slot_conflicts_max:
            yield f"rules.{source}.slot_conflicts_max can only be stricter than {judge.slot_conflicts_max}"


def rule_faults(
    rules: Mapping[str, RuleSection], judge: JudgeSection, fingerprint: FingerprintSection
) -> Iterator[str]:
    """Yield which settings of rules have no effect, or would accept more than the judge does."""
    for source, rule in rules.items():
        if source in rule.never_with:
            yield f"rules.{source}.never_with names the source itself; set within_source = false instead"
        if rule.facts_shared_min is not None and not judge.verify:
            yield f"rules.{source}.facts_shared_min has no effect with verify = false"
        if rule.facts_shared_min is not None and rule.facts_shared_min < judge.facts_shared_min:
            yield f"rules.{source}.facts_shared_min can only be stricter than {judge.facts_shared_min}"
    similarity_min = _similarity_min(judge, fingerprint)
    for source, rule in rules.items():
        if rule.max_distance is not None and judge.verify:
            yield f"rules.{source}.max_distance has no effect with verify = true; set similarity_min instead"
        if rule.similarity_min is not None and not judge.verify:
            yield f"rules.{source}.similarity_min has no effect with verify = false; set max_distance instead"
        if rule.similarity_min is not None and rule.similarity_min < similarity_min:
            yield f"rules.{source}.similarity_min can only be stricter than {similarity_min}"
        if rule.max_distance is not None and rule.max_distance > judge.max_distance:
            yield f"rules.{source}.max_distance can only be stricter than {judge.max_distance}"


def _similarity_min(judge: JudgeSection, fingerprint: FingerprintSection) -> float:
    """Return the threshold of the judge or its scheme; 0 for a scheme that does not exist, which is refused later."""
    if judge.similarity_min is not None:
        return judge.similarity_min
    return Scheme(fingerprint.scheme).definition.similarity_min if fingerprint.scheme in SCHEME_NAMES else 0.0
