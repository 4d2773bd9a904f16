"""The configuration: TOML file, environment, command line; later sources win. Unknown names are errors.

``DUPWATCH_JUDGE__MAX_DISTANCE=2`` in the environment is ``max_distance = 2`` under ``[judge]`` in the file.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Annotated, Any, Final

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from consumer.config.profiles import expand_profiles
from consumer.config.sections.banks import BanksSection
from consumer.config.sections.console import ConsoleSection
from consumer.config.sections.feed import FilesSection, SinkSection, SourceSection
from consumer.config.sections.judge import FingerprintSection, JudgeSection, RuleSection
from consumer.config.sections.kafka import KafkaSection, RegistrySection
from consumer.config.sections.service import ServiceSection
from consumer.config.sections.store import StoreSection
from consumer.config.sections.telemetry import HttpSection, LogSection, TracingSection
from consumer.fingerprint import SCHEME_NAMES, Scheme

ENV_PREFIX: Final = "DUPWATCH_"
ENV_NESTING: Final = "__"
CONFIG_VARIABLE: Final = f"{ENV_PREFIX}CONFIG"
"""The variable that names the configuration file. Containers need it: health checks do not get the run's options."""
_DAY_S: Final = 86_400


class Config(BaseSettings):
    """All settings. Frozen; the parts of a run are built from this and nothing else."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix=ENV_PREFIX,
        env_nested_delimiter=ENV_NESTING,
        validate_default=True,
    )

    source: SourceSection = SourceSection()
    sink: SinkSection = SinkSection()
    store: StoreSection = StoreSection()
    files: FilesSection = FilesSection()
    fingerprint: FingerprintSection = FingerprintSection()
    judge: JudgeSection = JudgeSection()
    rules: dict[str, RuleSection] = {}
    banks: BanksSection = BanksSection()
    kafka: KafkaSection = KafkaSection()
    registry: RegistrySection = RegistrySection()
    http: HttpSection = HttpSection()
    service: ServiceSection = ServiceSection()
    console: ConsoleSection = ConsoleSection()
    log: LogSection = LogSection()
    tracing: TracingSection = TracingSection()
    workers: Annotated[int, Field(ge=0, le=256)] = 0
    """Threads that compute fingerprints; with the Python engine, processes. With 0 the judging thread computes them."""

    @model_validator(mode="before")
    @classmethod
    def _expand_profiles(cls, settings: dict[str, Any]) -> dict[str, Any]:
        return expand_profiles(settings)

    @model_validator(mode="after")
    def _consistent(self) -> "Config":
        for fault in chain(
            source_faults(self.source, self.judge),
            schema_faults(self.kafka, self.registry),
            near_miss_faults(self.kafka, self.judge),
            bank_faults(self.banks),
            profile_faults(self.judge, self.fingerprint),
            rule_faults(self.rules, self.judge, self.fingerprint),
            slot_faults(self.rules, self.judge, self.fingerprint),
        ):
            raise ValueError(fault)
        return self

    @property
    def guards_facts(self) -> bool:
        """Whether facts are extracted.

        They are extracted from all articles if ``[judge]`` or any rule needs them, because a pair of articles obeys the
        rules of both sources.
        """
        return bool(self.judge.facts_shared_min or any(rule.facts_shared_min for rule in self.rules.values()))

    @property
    def guards_slots(self) -> bool:
        """Whether slots are extracted. Like facts, they are extracted from all articles or from none."""
        rules = (rule.slot_conflicts_max for rule in self.rules.values())
        return any(conflicts is not None for conflicts in (self.judge.slot_conflicts_max, *rules))

    @property
    def lifetime_s(self) -> int:
        """How long a version is kept, in seconds: the window plus the slack.

        Topics of articles must retain their messages for as long, so that a lost store can be refilled from them.
        """
        return self.judge.window_s + self.store.slack_s

    @property
    def seen_s(self) -> int:
        """How long a text is remembered after it was last seen, in seconds; 0 if texts are not remembered."""
        return self.judge.seen_days * _DAY_S


def source_faults(source: SourceSection, judge: JudgeSection) -> Iterator[str]:
    """Yield the reason why the articles of a batch might not all be compared, if there is one."""
    if source.batch_records_max > judge.verifications_max:
        yield (
            f"source.batch_records_max {source.batch_records_max} is more than judge.verifications_max"
            f" {judge.verifications_max}, so a flood within one batch would not be compared in full; lower the first or"
            " raise the second"
        )


def schema_faults(kafka: KafkaSection, registry: RegistrySection) -> Iterator[str]:
    """Yield the reason why the values of messages could not be decoded, if there is one."""
    if kafka.value_format != "json" and not registry.url:
        yield f'kafka.value_format = "{kafka.value_format}" needs schemas; set registry.url to their registry'


def near_miss_faults(kafka: KafkaSection, judge: JudgeSection) -> Iterator[str]:
    """Yield the reason why near misses could not be sent, if there is one."""
    if kafka.near_miss_share and not judge.verify:
        yield "kafka.near_miss_share has no effect with verify = false; plain SimHash computes no similarity"


def bank_faults(banks: BanksSection) -> Iterator[str]:
    """Yield the reason why the first match of an item would make it busy, if it would."""
    if banks.busy_share * banks.busy_articles_min < 1:
        yield (
            f"banks.busy_share {banks.busy_share:g} of banks.busy_articles_min {banks.busy_articles_min} is less than "
            "one article, so the first match of an item would make it busy; raise one of them"
        )


def profile_faults(judge: JudgeSection, fingerprint: FingerprintSection) -> Iterator[str]:
    """Yield the reason why the profile has no effect or does not fit the scheme, if there is one."""
    if judge.profile not in {"posts", "mixed"} or fingerprint.scheme not in SCHEME_NAMES:
        return
    if not judge.verify:
        yield f'judge.profile = "{judge.profile}" has no effect with verify = false; plain SimHash compares no sketches'
    elif not Scheme(fingerprint.scheme).definition.compares_letters:
        yield (
            f'judge.profile = "{judge.profile}" needs a scheme that compares letters, such as {Scheme().name}; '
            f"with {fingerprint.scheme}, leave the profile out and set bands and thresholds yourself"
        )


def slot_faults(
    rules: Mapping[str, RuleSection], judge: JudgeSection, fingerprint: FingerprintSection
) -> Iterator[str]:
    """Yield the reasons why slots cannot be compared, and rules whose slot guard is less strict than the judge's."""
    guarded: dict[str, JudgeSection | RuleSection] = {"judge": judge}
    guarded |= {f"rules.{source}": rule for source, rule in rules.items()}
    slots = [name for name, each in guarded.items() if each.slot_conflicts_max is not None]
    if not slots:
        return
    for name in [name for name, each in guarded.items() if each.facts_shared_min]:
        yield f"{slots[0]}.slot_conflicts_max and {name}.facts_shared_min cannot be used together; set one of them"
    if fingerprint.scheme in SCHEME_NAMES and not Scheme(fingerprint.scheme).definition.compares_letters:
        yield f"{slots[0]}.slot_conflicts_max needs a scheme that compares letters, such as {Scheme().name}"
    for source, rule in rules.items():
        if rule.slot_conflicts_max is None:
            continue
        if not judge.verify:
            yield f"rules.{source}.slot_conflicts_max has no effect with verify = false"
        if judge.slot_conflicts_max is not None and rule.slot_conflicts_max > judge.slot_conflicts_max:
            yield f"rules.{source}.slot_conflicts_max can only be stricter: at most {judge.slot_conflicts_max}"


def rule_faults(
    rules: Mapping[str, RuleSection], judge: JudgeSection, fingerprint: FingerprintSection
) -> Iterator[str]:
    """Yield the faults of rules, such as settings without effect, or less strict than those of the judge."""
    for source, rule in rules.items():
        if source in rule.never_with:
            yield f"rules.{source}.never_with names the source itself; set within_source = false instead"
        if rule.facts_shared_min is not None and not judge.verify:
            yield f"rules.{source}.facts_shared_min has no effect with verify = false"
        if rule.facts_shared_min is not None and rule.facts_shared_min < judge.facts_shared_min:
            yield f"rules.{source}.facts_shared_min can only be stricter: at least {judge.facts_shared_min}"
    similarity_min = _similarity_min(judge, fingerprint)
    for source, rule in rules.items():
        if rule.max_distance is not None and judge.verify:
            yield f"rules.{source}.max_distance has no effect with verify = true; set similarity_min instead"
        if rule.similarity_min is not None and not judge.verify:
            yield f"rules.{source}.similarity_min has no effect with verify = false; set max_distance instead"
        if rule.similarity_min is not None and rule.similarity_min < similarity_min:
            yield f"rules.{source}.similarity_min can only be stricter: at least {similarity_min}"
        if rule.max_distance is not None and rule.max_distance > judge.max_distance:
            yield f"rules.{source}.max_distance can only be stricter: at most {judge.max_distance}"


def _similarity_min(judge: JudgeSection, fingerprint: FingerprintSection) -> float:
    """Return the threshold of ``[judge]``, or else of the scheme; 0 for an unknown scheme, which is refused later."""
    if judge.similarity_min is not None:
        return judge.similarity_min
    return Scheme(fingerprint.scheme).definition.similarity_min if fingerprint.scheme in SCHEME_NAMES else 0.0
