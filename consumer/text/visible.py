"""Text of strangers, made so that it can steer nothing that shows it: no terminal, no log, no page."""

import unicodedata
from typing import Final

MARK: Final = "\ufffd"
"""What stands for a character that is not shown."""
# Emoji and the scripts of India and Persia are written with the two joiners; soft hyphens break lines.
_NEEDED_IN_TEXT: Final = frozenset("\n\t\u00ad\u200c\u200d\u200e\u200f")


def one_line(text: str, chars_max: int) -> str:
    """At most so many characters, none of them a control, format or unassigned one or a line's end."""
    shown = cut(text, chars_max)
    return shown if shown.isprintable() else "".join(char if _is_seen(char) else MARK for char in shown)


def paragraphs(text: str, chars_max: int) -> str:
    """The same for a text to be read: lines, tabs and what scripts need stay."""
    shown = cut(text, chars_max).replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char if char in _NEEDED_IN_TEXT or _is_seen(char) else MARK for char in shown)


def escaped(text: str, chars_max: int, spared: str = "") -> str:
    """The same as ``one_line``, but what is not shown is written as in one of Python's strings, by its number."""
    shown = cut(text, chars_max)
    if shown.isprintable():
        return shown
    return "".join(char if char in spared or _is_seen(char) else _written(char) for char in shown)


def cut(text: str, chars_max: int) -> str:
    """The beginning of a text, and a sign where it goes on."""
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


def _is_seen(char: str) -> bool:
    """Printable, or a blank of any width."""
    return char.isprintable() or unicodedata.category(char) == "Zs"


def _written(char: str) -> str:
    return char.encode("unicode_escape").decode()


def for_terminal(data: bytes) -> bytes:
    r"""Lines of JSON or text with everything but newlines and tabs that is not seen as ``\uXXXX``.

    In JSON such characters stand in strings only, so that the lines mean the same as before. Bytes that are no UTF-8
    become ``\xXX``.
    """
    text = data.decode(errors="backslashreplace")
    return "".join(char if char in "\n\t" or _is_seen(char) else _in_json(char) for char in text).encode()


def _in_json(char: str) -> str:
    """The escape of a character, of two halves where it is beyond the first 65,536."""
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
