"""Whether the librdkafka settings that a user gives may be set, and which client each goes to; pure functions."""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from consumer.kafka.client_properties import ALIASES, PROPERTIES, Between, Free, Matching, OneOf, Property, Refused
from consumer.model.errors import ConfigError

Section = Literal["client", "consumer", "producer"]
_TABLE: Final = "docs/client_settings.md has all that can be set"


def allowed(given: Mapping[str, Any], section: Section) -> dict[str, Any]:
    """The settings of ``[kafka.SECTION]`` under the names of the table; ConfigError for one that may not be set so."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        where = f"[kafka.{section}] {name}"
        one = _property(name, where)
        _check_section(one, section, where)
        _check_value(one, value, where)
        if one.name in found:
            raise ConfigError(f"{where}: {one.name} is there under another name as well; leave one out")
        found[one.name] = value
    return found


def of_side(settings: Mapping[str, Any], side: Literal["consumer", "producer", "admin"]) -> dict[str, Any]:
    """Those of the settings that a client of this kind has."""
    return {name: value for name, value in settings.items() if PROPERTIES[name].side in {"both", side}}


def _property(name: str, where: str) -> Property:
    found = PROPERTIES.get(ALIASES.get(name, name))
    if found is None:
        raise ConfigError(
            f"{where}: dupwatch knows no such setting of librdkafka. Correct the name; a setting that is newer than "
            f"dupwatch's table is refused, since it could break a promise ({_TABLE})"
        )
    return found


def _check_section(one: Property, section: Section, where: str) -> None:
    if section != "client" and one.side not in {"both", section}:
        raise ConfigError(f"{where}: only a {one.side} has it; move it to [kafka.{one.side}]")


def _check_value(one: Property, value: object, where: str) -> None:
    rule = one.rule
    # TOML's true, and what librdkafka reads.
    text = str(value).lower() if isinstance(value, bool) else str(value)
    match rule:
        case Refused():
            raise ConfigError(f"{where} cannot be set: {rule.why}. Leave it out ({_TABLE})")
        case Between() if isinstance(value, bool) or not re.fullmatch(r"-?\d{1,18}", text):
            raise ConfigError(f"{where} is {value!r}; write a whole number from {rule.low} to {rule.high}")
        case Between() if not rule.low <= int(text) <= rule.high:
            raise ConfigError(f"{where} is {text}; it has to be from {rule.low} to {rule.high}: {rule.why}")
        case OneOf() if text.lower() not in rule.values:
            raise ConfigError(f"{where} is {text!r}; it has to be {' or '.join(rule.values)}: {rule.why}")
        case Matching() if not re.fullmatch(rule.pattern, text):
            raise ConfigError(f"{where} has characters that are not allowed in it: {rule.why}")
        case Between() | OneOf() | Matching() | Free():
            pass
