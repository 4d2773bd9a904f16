"""Markup that text cannot break out of, and keywords marked in a text as it was written.

Strings are always escaped, and only ``element`` makes markup. Keywords are normalised, and texts are not.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import escape
from typing import Final, NamedTuple

from consumer.fingerprint.characters.normalise import normalise

_VOID: Final = frozenset({"br", "hr", "link", "meta"})
# Scripts that separate words. In other scripts a word may begin anywhere.
_SPACED: Final = "0-9a-z\u00df-\u024f\u0370-\u052f"
_CLUSTERS_KEPT: Final = 10_000


class Html(NamedTuple):
    """Markup made by this module."""

    markup: str


class Piece(NamedTuple):
    """A part of a text, and whether it is one of the words."""

    text: str
    marked: bool


Child = Html | str


def element(name: str, /, *children: Child, **attributes: str | None) -> Html:
    """Return an element. Strings are escaped, attributes of None left out. Names come from the code, never from data.

    Attribute names lose a trailing underscore, and other underscores become hyphens: ``class_``, ``http_equiv``.
    """
    opened = "".join(
        f' {key.removesuffix("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{opened}>")
    return Html(f"<{name}{opened}>{joined(*children).markup}</{name}>")


def joined(*children: Child) -> Html:
    """Return these children one after the other."""
    return Html("".join(child.markup if isinstance(child, Html) else escape(child) for child in children))


def style(css: str) -> Html:
    """Return a style element. The style sheet comes from the code and is not escaped."""
    return Html(f"<style>{css}</style>")


def document(root: Html) -> bytes:
    """Return a whole page, encoded."""
    return f"<!doctype html>\n{root.markup}\n".encode()


def marked(text: str, words: Sequence[str]) -> Iterator[Piece]:
    """Split a text into pieces, with occurrences of ``words`` marked; where several match, the longest wins."""
    if not words:
        yield Piece(text, marked=False)
        return
    folded, starts, ends = _folded(text)
    done = 0
    for found in _pattern(words).finditer(folded):
        first, end = starts[found.start()], ends[found.end() - 1]
        if first < done:
            continue
        if first > done:
            yield Piece(text[done:first], marked=False)
        yield Piece(text[first:end], marked=True)
        done = end
    if done < len(text):
        yield Piece(text[done:], marked=False)


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_word_pattern, sorted(words, key=len, reverse=True))))


def _word_pattern(word: str) -> str:
    before = f"(?<![{_SPACED}])" if re.match(f"[{_SPACED}]", word) else ""
    after = f"(?![{_SPACED}])" if re.search(f"[{_SPACED}]$", word) else ""
    return f"{before}{re.escape(word)}{after}"


def _folded(text: str) -> tuple[str, Sequence[int], Sequence[int]]:
    """Return the normalised text and, for each of its characters, where it starts and ends in the original."""
    if not any(map(unicodedata.combining, text)):
        letters = list(map(_fold, text))
        if set(map(len, letters)) <= {1}:
            return "".join(letters), range(len(text)), range(1, len(text) + 1)
    folded: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end in _clusters(text):
        replacement = _fold(text[start:end])
        folded.append(replacement)
        starts += [start] * len(replacement)
        ends += [end] * len(replacement)
    return "".join(folded), starts, ends


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each character starts, and where the marks that combine with it end."""
    start = 0
    for index in range(1, len(text) + 1):
        if index == len(text) or not unicodedata.combining(text[index]):
            yield start, index
            start = index


@lru_cache(_CLUSTERS_KEPT)
def _fold(cluster: str) -> str:
    return " " if cluster.isspace() else normalise(cluster)
