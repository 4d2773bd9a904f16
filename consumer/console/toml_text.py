"""Texts as TOML writes them, to be copied from a page into a configuration."""

import json
import re
from typing import Final

# What TOML takes as it is, but is not to be seen, or turns the text around it.
_UNSEEN: Final = re.compile(r"[^\x20-\x7e]")


def quoted(text: str) -> str:
    """Return a text as a basic string of TOML, on one line, with escapes for what is not to be seen."""
    return _UNSEEN.sub(_escaped, json.dumps(text, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else f"\\U{ord(found[0]):08X}"
