"""Which rule of the configuration keeps pairs of two sources from being flagged."""

import json
import re
from typing import Final, NamedTuple

# What TOML takes as it is, but is not to be seen, or turns the text around it.
_UNSEEN: Final = re.compile(r"[^\x20-\x7e]")


class Advice(NamedTuple):
    """A rule for ``source``; ``is_within``: it concerns pairs of this source only."""

    source: str
    is_within: bool
    toml: str


def advice(source: str | None, original_source: str | None) -> Advice | None:
    """Return the narrowest rule there is; None where the article names no source, or it is not known yet."""
    if not source:
        return None
    is_within = source == original_source
    setting = "within_source = false" if is_within else 'flag = "never"'
    return Advice(source, is_within, f"[rules.{_quoted(source)}]\n{setting}\n")


def _quoted(name: str) -> str:
    """Return a name as a basic string of TOML, on one line, with escapes for what is not to be seen."""
    quoted = json.dumps(name, ensure_ascii=False)
    return _UNSEEN.sub(lambda found: found[0] if found[0].isprintable() else _escape(found[0]), quoted)


def _escape(char: str) -> str:
    return f"\\U{ord(char):08X}"
