"""The judge's settings and its scheme, built from the sections that configure them.

Each option has the name of the field of ``JudgeSettings``, ``Scheme`` or ``SketchLayout`` that it sets; this module
lists only the exceptions. Importing it raises ``TypeError`` if there is a field that no option sets.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, fields, replace
from types import MappingProxyType
from typing import Any, Final, get_args

from pydantic import BaseModel

from consumer.config.config import Config
from consumer.config.sections.feed import SourceSection
from consumer.config.sections.judge import FingerprintSection, JudgeSection, RuleSection
from consumer.config.setting_types import Section
from consumer.fingerprint import BlockPlan, Scheme, SketchLayout
from consumer.judge.settings import JudgeSettings, SourceRule
from consumer.model.article import BodyForm
from storage.clock import MS_PER_S

_BUILT_FIELDS: Final = frozenset({"plan", "scheme", "scheme_digest", "window_ms", "sources", "extractor"})
"""Fields of ``JudgeSettings`` that are not copied from an option: they are built below, or passed by the caller."""
_BUILT_SCHEME_FIELDS: Final = frozenset({"sketch", "facts", "slots"})
_BODY_OPTIONS: Final = frozenset({"body_format", "extractor", "reader_revision"})
"""Options of ``[source]`` that decide how bodies are read. Stored settings record them, since they change verdicts."""
_UNNAMED_FORMS: Final = frozenset({"text", "html/1"})
"""Body forms that stored settings record as "". Older stores have only these two, and record neither."""
_FIXED_SKETCH_FIELDS: Final = frozenset({"bins", "sketch_bits", "one_bits"})
"""Fields of ``SketchLayout`` that have only one possible value."""


def _options(kind: type, excluded: frozenset[str], section: type[BaseModel], **renamed: str) -> dict[str, str]:
    """Return the option in this section for each field of a dataclass that is not ``excluded``.

    ``renamed`` has the options that are not named like their field. Raises ``TypeError`` for a field without an option.
    """
    options = {field.name: renamed.get(field.name, field.name) for field in fields(kind) if field.name not in excluded}
    missing = options.values() - section.model_fields.keys()
    if missing:
        raise TypeError(f"{section.__name__} has no option for {', '.join(sorted(missing))} of {kind.__name__}")
    return options


_JUDGE: Final = _options(JudgeSettings, _BUILT_FIELDS, JudgeSection)
_SCHEME: Final = _options(Scheme, _BUILT_SCHEME_FIELDS, FingerprintSection, name="scheme")
_SKETCH: Final = _options(SketchLayout, _FIXED_SKETCH_FIELDS, FingerprintSection)


def configured_scheme(config: Config) -> Scheme:
    """Return the configured scheme. Raises ValueError if it does not exist, or if its options contradict it."""
    return _scheme(config, Scheme(), FingerprintSection.model_fields.keys())


def configured_settings(config: Config, scheme: Scheme, scheme_digest: str) -> JudgeSettings:
    """Return the configured settings. Raises ValueError for an unknown plan, or if settings contradict each other."""
    values = _values(config, scheme, JudgeSection.model_fields.keys(), with_rules=True)
    return JudgeSettings(scheme=scheme, scheme_digest=scheme_digest, extractor=_extractor(config.source), **values)


def requested_settings(config: Config, stored: JudgeSettings) -> JudgeSettings:
    """Return the settings of a store, overridden by those that the configuration sets explicitly.

    The digest of the scheme stays as stored, since it depends on dictionaries. Raises ValueError for an unknown scheme
    or plan, and for settings that contradict each other.
    """
    scheme = _scheme(config, stored.scheme, config.fingerprint.model_fields_set)
    with_rules = "rules" in config.model_fields_set
    values = _values(config, scheme, config.judge.model_fields_set, with_rules=with_rules)
    if stored.similarity_min == stored.scheme.definition.similarity_min:
        # If the store has the default of its scheme, it gets the default of the new scheme.
        values.setdefault("similarity_min", scheme.definition.similarity_min)
    if not _BODY_OPTIONS.isdisjoint(config.source.model_fields_set):
        values["extractor"] = _extractor(_source(config, stored))
    return replace(stored, scheme=scheme, **values)


def with_stored_settings(config: Config, stored: JudgeSettings) -> Config:
    """Return the configuration, with the store's values for settings that it does not set explicitly.

    This concerns the settings of the judge, the scheme, the rules, and how bodies are read. Dictionaries are left as
    they are, since a store does not hold files. Raises ValueError if a completed section is invalid.
    """
    judge = {option: getattr(stored, name) for name, option in _JUDGE.items()}
    judge |= {"plan": stored.plan.name, "window_s": stored.window_ms // MS_PER_S}
    fingerprint = {option: getattr(stored.scheme, name) for name, option in _SCHEME.items()}
    fingerprint |= {option: getattr(stored.scheme.sketch, name) for name, option in _SKETCH.items()}
    update = {
        "judge": _complete_section(config.judge, judge),
        "fingerprint": _complete_section(config.fingerprint, fingerprint),
        "source": _source(config, stored),
    }
    if "rules" not in config.model_fields_set:
        update["rules"] = {name: RuleSection(**asdict(rule)) for name, rule in stored.sources.items()}
    return config.model_copy(update=update)


def _source(config: Config, stored: JudgeSettings) -> SourceSection:
    """Return ``[source]``, with the store's values for the options in ``_BODY_OPTIONS`` that are not set explicitly.

    If this version does not know the body form in the store, return the section unchanged.
    """
    if not stored.extractor:
        # Such a store holds either text, or HTML read by revision 1.
        reads_html = config.source.body_format == "html"
        return _completed_source(config, {"reader_revision": 1}) if reads_html else config.source
    if stored.extractor not in get_args(BodyForm):
        return config.source
    name, _, revision = stored.extractor.partition("/")
    body_format = {"body_format": "html"} if name == "html" else {"body_format": "article", "extractor": name}
    return _completed_source(config, {**body_format, "reader_revision": int(revision)})


def _completed_source(config: Config, values: Mapping[str, Any]) -> SourceSection:
    completed: SourceSection = _complete_section(config.source, values)
    return completed


def _extractor(source: SourceSection) -> str:
    """Return the value of the field ``extractor`` of ``JudgeSettings``."""
    return "" if source.body_form in _UNNAMED_FORMS else source.body_form


def with_plan(config: Config, plan: str) -> Config:
    """Return a configuration with this plan, unless it already sets one."""
    if "plan" in config.judge.model_fields_set:
        return config
    return config.model_copy(update={"judge": config.judge.model_copy(update={"plan": plan})})


def _complete_section(section: Section, values: Mapping[str, Any]) -> Any:  # noqa: ANN401  # a section of the same kind
    explicit = {option: getattr(section, option) for option in section.model_fields_set}
    return type(section).model_validate({**values, **explicit})


def _scheme(config: Config, base: Scheme, options: AbstractSet[str]) -> Scheme:
    """Return ``base`` with the configured values of these options of ``[fingerprint]``."""
    section = config.fingerprint
    values = {name: getattr(section, option) for name, option in _SCHEME.items() if option in options}
    layout = {name: getattr(section, option) for name, option in _SKETCH.items() if option in options}
    # A record keeps either facts or slots, so enabling one disables the other.
    facts = config.guards_facts or (base.facts and not config.guards_slots)
    slots = config.guards_slots or (base.slots and not config.guards_facts)
    return replace(base, sketch=replace(base.sketch, **layout), facts=facts, slots=slots, **values)


def _values(config: Config, scheme: Scheme, options: AbstractSet[str], *, with_rules: bool) -> dict[str, Any]:
    """Return the fields of ``JudgeSettings`` that these options of ``[judge]`` set; ``with_rules`` adds the rules."""
    judge = config.judge
    values = {name: getattr(judge, option) for name, option in _JUDGE.items() if option in options}
    if values.get("similarity_min", 0) is None:
        values["similarity_min"] = scheme.definition.similarity_min
    if "plan" in options:
        values["plan"] = BlockPlan.named(judge.plan, scheme.bits)
    if "window_s" in options:
        values["window_ms"] = judge.window_s * MS_PER_S
    if with_rules:
        values["sources"] = MappingProxyType({name: SourceRule(**asdict(rule)) for name, rule in config.rules.items()})
    return values
