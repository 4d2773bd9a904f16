"""Checks the librdkafka settings of a user, and says which client each goes to; pure functions."""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from consumer.kafka.client_properties import ALIASES, PROPERTIES, Between, Free, Matching, OneOf, Property, Refused
from consumer.model.errors import ConfigError

Section = Literal["client", "consumer", "producer"]
_TABLE: Final = "docs/client_settings.md lists all that can be set"


def allowed(given: Mapping[str, Any], section: Section) -> dict[str, Any]:
    """Return the settings of ``[kafka.SECTION]`` under the table's names; ``ConfigError`` for an invalid one."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        where = f"[kafka.{section}] {name}"
        known = _property(name, where)
        _check_section(known, section, where)
        _check_value(known, value, where)
        if known.name in found:
            raise ConfigError(f"{where}: {known.name} is also set under another name; remove one of the two")
        found[known.name] = value
    return found


def of_side(settings: Mapping[str, Any], side: Literal["consumer", "producer", "admin"]) -> dict[str, Any]:
    """Return the settings that this kind of client has."""
    return {name: value for name, value in settings.items() if PROPERTIES[name].side in {"both", side}}


def _property(name: str, where: str) -> Property:
    found = PROPERTIES.get(ALIASES.get(name, name))
    if found is None:
        raise ConfigError(
            f"{where}: unknown setting of librdkafka. Correct the name; settings newer than dupwatch are refused, "
            f"because they could break a promise ({_TABLE})"
        )
    return found


def _check_section(known: Property, section: Section, where: str) -> None:
    if section != "client" and known.side not in {"both", section}:
        raise ConfigError(f"{where}: only a {known.side} has it; move it to [kafka.{known.side}]")


def _check_value(known: Property, value: object, where: str) -> None:
    rule = known.rule
    # TOML has true, and librdkafka reads "true".
    text = str(value).lower() if isinstance(value, bool) else str(value)
    match rule:
        case Refused():
            raise ConfigError(f"{where} cannot be set: {rule.why}. Remove it ({_TABLE})")
        case Between() if isinstance(value, bool) or not re.fullmatch(r"-?\d{1,18}", text):
            raise ConfigError(f"{where} is {value!r}; write a whole number from {rule.low} to {rule.high}")
        case Between() if not rule.low <= int(text) <= rule.high:
            raise ConfigError(f"{where} is {text}; it must be from {rule.low} to {rule.high}: {rule.why}")
        case OneOf() if text.lower() not in rule.values:
            raise ConfigError(f"{where} is {text!r}; it must be {' or '.join(rule.values)}: {rule.why}")
        case Matching() if not re.fullmatch(rule.pattern, text):
            raise ConfigError(f"{where} contains characters that are not allowed: {rule.why}")
        case Between() | OneOf() | Matching() | Free():
            pass
