"""Finds keywords, which are normalised, in a text as it was written."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from consumer.fingerprint.characters.normalise import normalise

# Scripts that separate words. In other scripts a word may begin anywhere.
_SPACED: Final = "0-9a-z\u00df-\u024f\u0370-\u052f"
_CLUSTERS_KEPT: Final = 10_000


class Piece(NamedTuple):
    """A part of a text, and whether it is one of the words."""

    text: str
    marked: bool


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
