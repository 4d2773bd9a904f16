"""The rule of the configuration that keeps pairs of two sources from being flagged, as TOML."""

import json
import re
from typing import Final, Literal, NamedTuple

# What TOML takes as it is, but is not to be seen, or turns the text around it.
_UNSEEN: Final = re.compile(r"[^\x20-\x7e]")


class Advice(NamedTuple):
    """A rule for ``source``: for pairs within it, for its pairs with ``other``, or for all that it publishes."""

    concerns: Literal["within", "pair", "source"]
    source: str
    other: str
    toml: str


def advice(source: str | None, original_source: str | None) -> Advice | None:
    """Return the narrowest rule there is; None where the article names no source, or it is not known yet.

    There is one for a pair where both name a source.
    """
    if not source:
        return None
    section = f"[rules.{quoted(source)}]\n"
    if source == original_source:
        return Advice("within", source, source, f"{section}within_source = false\n")
    if original_source:
        return Advice("pair", source, original_source, f"{section}never_with = [{quoted(original_source)}]\n")
    return Advice("source", source, "", f'{section}flag = "never"\n')


def quoted(text: str) -> str:
    """Return a text as a basic string of TOML, on one line, with escapes for what is not to be seen."""
    return _UNSEEN.sub(_escaped, json.dumps(text, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else f"\\U{ord(found[0]):08X}"
