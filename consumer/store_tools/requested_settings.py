"""Settings that a user requests for a command on a store, which has its own.

A store is bound to the settings that it was made with, and commands that inspect it judge by those. A setting is
requested if the configuration file, the environment or an option has it.
"""

from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any, Final

from consumer.config.config import Config
from consumer.config.sections.judge import UNCHANGED
from consumer.fingerprint import BlockPlan
from consumer.judge.settings import JudgeSettings, SourceRule, differences
from consumer.model.errors import ConfigError, StoreMismatch
from storage.clock import MS_PER_S

_SCHEME_NAMES: Final = {"scheme": "name", "keywords_max": "keywords_max", "short_keywords_max": "short_keywords_max"}
_LAYOUT_NAMES: Final = ("bands", "band_minima")


def asked_settings(config: Config, stored: JudgeSettings) -> JudgeSettings:
    """Return a store's settings with the requested ones in place. Raises ``ConfigError`` where they contradict."""
    judge, named = config.judge, config.judge.model_fields_set
    changed: dict[str, Any] = {name: getattr(judge, name) for name in UNCHANGED if name in named}
    if "window_s" in named:
        changed["window_ms"] = judge.window_s * MS_PER_S
    if "rules" in config.model_fields_set:
        changed["sources"] = MappingProxyType({name: SourceRule(**asdict(rule)) for name, rule in config.rules.items()})
    section = config.fingerprint
    fields = {ours: getattr(section, name) for name, ours in _SCHEME_NAMES.items() if name in section.model_fields_set}
    layout = {name: getattr(section, name) for name in _LAYOUT_NAMES if name in section.model_fields_set}
    try:
        scheme = replace(
            stored.scheme,
            sketch=replace(stored.scheme.sketch, **layout),
            facts=stored.scheme.facts or config.guards_facts,
            **fields,
        )
        if "plan" in named:
            changed["plan"] = BlockPlan.named(judge.plan, scheme.bits)
        return replace(stored, scheme=scheme, **changed)
    except ValueError as error:
        raise ConfigError(f"judge: {error}") from error


def check_unchanged(config: Config, stored: JudgeSettings) -> None:
    """Raise ``StoreMismatch`` where requested settings differ from the store's.

    For commands that show what was found by the store's settings.
    """
    differing = differences(stored.encode(), asked_settings(config, stored))
    if differing:
        raise StoreMismatch(
            f"{'; '.join(differing)}. The verdicts in a store were reached with its own settings. Leave these out; to "
            "try them, use dupwatch explain on one pair or dupwatch replay on a feed."
        )


def settings_to_compare(config: Config, stored: JudgeSettings) -> JudgeSettings:
    """Return the settings to compare a pair of stored versions by: the store's, with the requested ones in place.

    Raises ``StoreMismatch`` where a requested setting would need other records than the store has.
    """
    asked = asked_settings(config, stored)
    kept = (asked.scheme, asked.plan, asked.lane1, asked.sketched)
    if kept != (stored.scheme, stored.plan, stored.lane1, stored.sketched):
        raise StoreMismatch(
            f"{'; '.join(differences(stored.encode(), asked))}. The records in the store were made with these "
            "settings. Leave them out, or compare two files without a store."
        )
    return asked
