"""The words of texts and searches, as numbers.

In scripts that separate words with spaces, whole words are indexed. In others, such as Chinese, every character is
indexed, and so is every pair of characters within a word. If the engine cuts off a single character as a word, its
pairs with both neighbours are indexed too: names and new words are cut differently from sentence to sentence.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Final, NamedTuple

from consumer.fingerprint import normalise

TEXT_CHARS_MAX: Final = 2_000
"""Indexed characters of a text, counted both before and after folding."""
TITLE_CHARS_MAX: Final = 500
"""Indexed characters of a title."""
TERMS_MAX: Final = 32
"""The maximum number of words that one search looks up. If there are more, the page says so."""
_CODE_POINT_BITS: Final = 21
_HASH_BYTES: Final = 5
_HASHED_FROM: Final = 1 << 43
# Scripts that do not separate words with spaces, and Korean, whose endings are attached to words.
_UNSPACED: Final = re.compile(
    "([\u0e01-\u0eff\u0f40-\u0fbc\u1000-\u109f\u1100-\u11ff\u1780-\u17d3\u3005-\u3007\u3041-\u30ff\u3105-\u312f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff]+)"
)
# Letters and digits, and their combining marks.
_MARKS: Final = "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0dff"
_SPACED: Final = re.compile(rf"(?:[^\W_]|[{_MARKS}])+")


class Terms(NamedTuple):
    """The numbers that a search looks up.

    ``characters`` are looked up if no text has all ``words``. ``is_cut``: the search has more than ``TERMS_MAX`` of
    either.
    """

    words: tuple[int, ...]
    characters: tuple[int, ...]
    is_cut: bool


class WordCutter:
    """A cutter of texts and searches into words, with the engine's function ``cut``.

    ``simplified`` maps traditional to simplified characters. It replaces single characters regardless of context, so
    that searches and texts are folded alike.
    """

    def __init__(self, cut: Callable[[str], list[str]], simplified: Mapping[int, str]) -> None:
        self._cut = cut
        self._simplified = simplified

    def words_of(self, title: str, text: str) -> set[int]:
        """Return the numbers that find an article."""
        found: set[int] = set()
        for part, chars_max in ((title, TITLE_CHARS_MAX), (text, TEXT_CHARS_MAX)):
            for spaced, words in self._stretches(normalise(part[:chars_max])[:chars_max]):
                found.update(map(_word_number, spaced))
                found.update(map(ord, "".join(words)))
                found.update(map(_pair_number, _searchable_pairs(words)))
        return found

    def terms_of(self, search: str) -> Terms:
        """Return the numbers that a search looks up. A search is a bag of words, without operators."""
        words: dict[int, None] = {}
        characters: dict[int, None] = {}
        for spaced, cut in self._stretches(normalise(search)):
            hashed = dict.fromkeys(map(_word_number, spaced))
            words |= hashed
            characters |= hashed | dict.fromkeys(map(ord, "".join(cut)))
            for word in cut:
                words |= dict.fromkeys(map(_pair_number, _pairs(word)) if len(word) > 1 else map(ord, word))
        is_cut = max(len(words), len(characters)) > TERMS_MAX
        return Terms(tuple(words)[:TERMS_MAX], tuple(characters)[:TERMS_MAX], is_cut)

    def _stretches(self, text: str) -> Iterator[tuple[list[str], list[str]]]:
        """Yield the words of each stretch of a script with spaces, and those of the unspaced stretch after it."""
        pieces = _UNSPACED.split(text.translate(self._simplified))
        for spaced, unspaced in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
            yield _SPACED.findall(spaced), self._cut(unspaced) if unspaced else []


def _searchable_pairs(words: Sequence[str]) -> Iterator[str]:
    """Yield the pairs of characters within words, and the pairs of single-character words with their neighbours."""
    for word in words:
        yield from _pairs(word)
    for before, after in pairwise(words):
        if len(before) == 1 or len(after) == 1:
            yield before[-1] + after[0]


def _pairs(word: str) -> Iterable[str]:
    return map("".join, pairwise(word))


def _pair_number(pair: str) -> int:
    return ord(pair[0]) << _CODE_POINT_BITS | ord(pair[1])


def _word_number(word: str) -> int:
    # With a million indexed words, one in a million other words collides with one of them.
    return _HASHED_FROM | int.from_bytes(blake2b(word.encode(), digest_size=_HASH_BYTES).digest())
