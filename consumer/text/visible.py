"""Makes foreign text safe to show, so that it cannot control a terminal, a log or a page."""

import unicodedata
from typing import Final
from urllib.parse import urlsplit

MARK: Final = "\ufffd"
"""Replaces a character that is not shown."""
URL_CHARS_MAX: Final = 2_000
"""A longer URL is not linked to."""
# Emoji, Indic scripts and Persian need joiners.
_JOINERS: Final = frozenset("\u200c\u200d")
# Soft hyphens let lines break, and direction marks set the direction of text. In one-line output, direction marks could
# reorder the text on a terminal.
_NEEDED_IN_PARAGRAPHS: Final = _JOINERS | frozenset("\u00ad\u200e\u200f\n\t")


def one_line(text: str, chars_max: int) -> str:
    """Return a text for one line of output: at most ``chars_max`` characters, with ``MARK`` for each unsafe one.

    Control, format, private and unassigned characters, surrogates and line ends are unsafe; joiners are not.
    """
    return _shown(cut(text, chars_max), _JOINERS)


def paragraphs(text: str, chars_max: int) -> str:
    """Return a text of several lines for output: at most ``chars_max`` characters, with ``MARK`` for each unsafe one.

    Newlines, tabs and format characters that scripts need are kept. CR and CRLF become newlines.
    """
    shown = cut(text, chars_max).replace("\r\n", "\n").replace("\r", "\n")
    return _shown(shown, _NEEDED_IN_PARAGRAPHS)


def escaped(text: str, chars_max: int, allowed: str = "") -> str:
    """Return at most ``chars_max`` characters of a text, with Python escapes for the unprintable ones except spaces.

    Characters in ``allowed`` are not escaped.
    """
    shown = cut(text, chars_max)
    if shown.isprintable():
        return shown
    return "".join(char if char in allowed or _is_seen(char) else _escape(char) for char in shown)


def cut(text: str, chars_max: int) -> str:
    """Return a text cut to ``chars_max`` characters, with an ellipsis as the last one if it was longer."""
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


def safe_url(url: str) -> str | None:
    """Return the URL, or None if it is not safe to link to.

    A safe URL is http or https, has a host, is not too long, and has no spaces or invisible characters.
    """
    try:
        parts = urlsplit(url)
        is_web_url = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        return None
    return url if is_web_url and len(url) <= URL_CHARS_MAX and url.isprintable() and " " not in url else None


def _shown(text: str, needed: frozenset[str]) -> str:
    if text.isprintable():
        return text
    return "".join(char if char in needed or _is_seen(char) else MARK for char in text)


def _is_seen(char: str) -> bool:
    """Return whether a character is printable, or a space of any width."""
    return char.isprintable() or unicodedata.category(char) == "Zs"


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()


def for_terminal(data: bytes) -> bytes:
    r"""Return lines of JSON or text with invisible characters, except newlines and tabs, escaped as ``\uXXXX``.

    In JSON such characters occur only in strings, so the lines keep their meaning. Bytes that are not UTF-8 become
    ``\xXX``.
    """
    text = data.decode(errors="backslashreplace")
    return "".join(char if char in "\n\t" or _is_seen(char) else _json_escape(char) for char in text).encode()


def _json_escape(char: str) -> str:
    """Return the JSON escape of a character, as a surrogate pair beyond U+FFFF."""
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
