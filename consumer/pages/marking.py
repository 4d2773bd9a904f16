"""Where words stand in a text: keywords are of the normalised text, and people read the one that was written."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from consumer.fingerprint.normalise import normalise

# Scripts that set their words apart. Elsewhere a word may stand anywhere.
_SPACED: Final = "0-9a-z\u00df-\u024f\u0370-\u052f"
_CLUSTERS_KEPT: Final = 10_000


class Piece(NamedTuple):
    """Some of a text, and whether it is one of the words."""

    text: str
    marked: bool


def marked(text: str, words: Sequence[str]) -> Iterator[Piece]:
    """The whole text in pieces, those that are one of ``words`` marked; the longest counts where several fit."""
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
    """The text as keywords were taken from it; for each of its characters, where that began and ended."""
    if not any(map(unicodedata.combining, text)):
        letters = list(map(_fold, text))
        if set(map(len, letters)) <= {1}:
            return "".join(letters), range(len(text)), range(1, len(text) + 1)
    folded: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end in _clusters(text):
        became = _fold(text[start:end])
        folded.append(became)
        starts += [start] * len(became)
        ends += [end] * len(became)
    return "".join(folded), starts, ends


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """Where each character begins, and where the marks end that combine with it."""
    start = 0
    for index in range(1, len(text) + 1):
        if index == len(text) or not unicodedata.combining(text[index]):
            yield start, index
            start = index


@lru_cache(_CLUSTERS_KEPT)
def _fold(cluster: str) -> str:
    return " " if cluster.isspace() else normalise(cluster)
