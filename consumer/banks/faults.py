"""Rewords msgspec's messages about faults in entries and requests."""

import re
from collections.abc import Callable
from typing import Final

from consumer.text.json_faults import json_fault

_JSON_TYPES: Final = {
    "str": "a string", "int": "a whole number", "float": "a number", "bool": "true or false", "array": "a list",
    "object": "an object", "null": "null",
}  # fmt: skip
_FAULTS: Final[tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    (re.compile(r"^Invalid enum value (.*)$"), r"must be 'deny' or 'allow' (it is \1)"),
    (re.compile(r"^Object contains unknown field `(.*)`$"), r"unknown field `\1`"),
    (re.compile(r"^Object missing required field `(.*)`$"), r"the field `\1` is missing"),
    (
        re.compile(r"^Expected `([a-z |]+)`, got `(\w+)`$"),
        lambda match: f"must be {_named_types(match[1])}, not {_named_types(match[2])}",
    ),
)
"""Patterns of msgspec's messages, and our words for each. Enumerations are always actions of banks."""


def _named_types(types: str) -> str:
    """Return JSON types, separated by bars, in words."""
    return " or ".join(_JSON_TYPES.get(name, name) for name in types.split(" | "))


def plain_msgspec_message(error: Exception) -> str:
    """Return the message of an error of msgspec in plain words, with the path of the member first."""
    fault, _, path = json_fault(error).partition(" - at `$")
    for pattern, words in _FAULTS:
        fault, replaced = pattern.subn(words, fault)
        if replaced:
            break
    member = path.rstrip("`").removeprefix(".")
    return f"{member}: {fault}" if member else fault
