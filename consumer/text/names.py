"""Names that people give to accounts and to reasons: which are valid, and which look the same."""

from typing import Final

from consumer.fingerprint.characters.normalise import caseless

# Persian and Indic words are spelled with them.
_JOINERS: Final = str.maketrans("", "", "\u200c\u200d")


def is_name(text: str) -> bool:
    """Return whether a text can be a name: one line of visible characters, and joiners between them."""
    visible = text.translate(_JOINERS)
    return bool(visible.strip()) and visible.isprintable()


def name_key(name: str) -> str:
    """Return what names have in common that differ only in case, character width or joiners."""
    return caseless(name.translate(_JOINERS))
