"""Suggests a rule for the configuration, as TOML, that stops flags between two sources or all flags of one."""

import json
import re
from typing import Final, Literal, NamedTuple

# TOML allows these characters unescaped, but some are invisible or reverse the text around them.
_NOT_PRINTABLE_ASCII: Final = re.compile(r"[^\x20-\x7e]")


class Advice(NamedTuple):
    """A rule for ``source``: for pairs within it, for its pairs with ``other``, or for all its articles."""

    concerns: Literal["within", "pair", "source"]
    source: str
    other: str
    toml: str


def advice(source: str | None, original_source: str | None) -> Advice | None:
    """Return the narrowest possible rule, or None if the article has no source or its source is not known yet.

    Without the source of the original, the rule is for all articles of ``source``.
    """
    if not source:
        return None
    section = f"[rules.{toml_string(source)}]\n"
    if source == original_source:
        return Advice("within", source, source, f"{section}within_source = false\n")
    if original_source:
        return Advice("pair", source, original_source, f"{section}never_with = [{toml_string(original_source)}]\n")
    return Advice("source", source, "", f'{section}flag = "never"\n')


def toml_string(text: str) -> str:
    """Return a text as a basic string of TOML, on one line, with invisible characters escaped."""
    return _NOT_PRINTABLE_ASCII.sub(_escape, json.dumps(text, ensure_ascii=False))


def _escape(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else f"\\U{ord(found[0]):08X}"
