"""The words by which flags are found, as numbers: the same of a text and of what somebody searches for.

Scripts that set words off by spaces have whole words. Of the others, such as Chinese, the index has every character and
the pairs of characters within a word. Where the engine cuts a character off alone, the index also has its pairs with
both neighbours, since names and new words are cut one way in one sentence and another way in the next.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Final, NamedTuple

from consumer.fingerprint import normalise

TEXT_CHARS_MAX: Final = 2_000
"""Characters of a text that are indexed, counted before folding and after it."""
TITLE_CHARS_MAX: Final = 500
"""The same of a title."""
TERMS_MAX: Final = 32
"""Words that one search looks up. The page says so where it leaves out further ones."""
_CODE_POINT_BITS: Final = 21
_HASH_BYTES: Final = 5
_HASHED_FROM: Final = 1 << 43
# Scripts that do not set words off by spaces, and Korean, whose words take endings without one.
_UNSPACED: Final = re.compile(
    "([\u0e01-\u0eff\u0f40-\u0fbc\u1000-\u109f\u1100-\u11ff\u1780-\u17d3\u3005-\u3007\u3041-\u30ff\u3105-\u312f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff]+)"
)
# Letters and digits, and the marks that stand on them.
_MARKS: Final = "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0dff"
_SPACED: Final = re.compile(rf"(?:[^\W_]|[{_MARKS}])+")


class Terms(NamedTuple):
    """The numbers that a search looks up.

    ``characters`` are looked up where no text has all ``words``. ``is_cut``: the search has more than ``TERMS_MAX``.
    """

    words: tuple[int, ...]
    characters: tuple[int, ...]
    is_cut: bool


class WordCutter:
    """Finds the words of texts and of searches. ``cut`` is the engine's; ``simplified`` maps traditional characters.

    ``simplified`` replaces single characters, whatever stands around them, so that a search is folded as the text is.
    """

    def __init__(self, cut: Callable[[str], list[str]], simplified: Mapping[int, str]) -> None:
        self._cut = cut
        self._simplified = simplified

    def words_of(self, title: str, text: str) -> set[int]:
        """Return the numbers under which an article is found."""
        found: set[int] = set()
        for part, chars_max in ((title, TITLE_CHARS_MAX), (text, TEXT_CHARS_MAX)):
            for spaced, words in self._stretches(normalise(part[:chars_max])[:chars_max]):
                found.update(map(_hashed, spaced))
                found.update(map(ord, "".join(words)))
                found.update(map(_pair, _joined(words)))
        return found

    def terms_of(self, search: str) -> Terms:
        """Return the numbers that a search looks up: a bag of words, of which none has a special meaning."""
        words: dict[int, None] = {}
        characters: dict[int, None] = {}
        for spaced, cut in self._stretches(normalise(search)):
            hashed = dict.fromkeys(map(_hashed, spaced))
            words |= hashed
            characters |= hashed | dict.fromkeys(map(ord, "".join(cut)))
            for word in cut:
                words |= dict.fromkeys(map(_pair, _pairs(word)) if len(word) > 1 else map(ord, word))
        is_cut = max(len(words), len(characters)) > TERMS_MAX
        return Terms(tuple(words)[:TERMS_MAX], tuple(characters)[:TERMS_MAX], is_cut)

    def _stretches(self, text: str) -> Iterator[tuple[list[str], list[str]]]:
        """Yield the words of each stretch of a script with spaces, and those of the stretch without any after it."""
        pieces = _UNSPACED.split(text.translate(self._simplified))
        for spaced, unspaced in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
            yield _SPACED.findall(spaced), self._cut(unspaced) if unspaced else []


def _joined(words: Sequence[str]) -> Iterator[str]:
    """Yield the pairs of characters within words, and those of a word of one character with its neighbours."""
    for word in words:
        yield from _pairs(word)
    for before, after in pairwise(words):
        if len(before) == 1 or len(after) == 1:
            yield before[-1] + after[0]


def _pairs(word: str) -> Iterable[str]:
    return map("".join, pairwise(word))


def _pair(pair: str) -> int:
    return ord(pair[0]) << _CODE_POINT_BITS | ord(pair[1])


def _hashed(word: str) -> int:
    # Where texts have a million words, one in a million others is taken for one of them.
    return _HASHED_FROM | int.from_bytes(blake2b(word.encode(), digest_size=_HASH_BYTES).digest())
