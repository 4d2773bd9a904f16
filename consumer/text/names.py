"""Checks and compares names that people give to accounts, reasons and webhooks."""

from typing import Final

from consumer.fingerprint.characters.normalise import caseless

# Zero-width joiners, which Persian and Indic spelling needs.
_JOINERS: Final = str.maketrans("", "", "\u200c\u200d")


def is_name(text: str) -> bool:
    """Return whether a text can be a name: one line of printable characters and joiners, at least one visible."""
    visible = text.translate(_JOINERS)
    return bool(visible.strip()) and visible.isprintable()


def name_key(name: str) -> str:
    """Return a key that is equal for names that differ only in joiners, case or compatibility forms such as width."""
    return caseless(name.translate(_JOINERS))
