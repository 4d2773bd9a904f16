"""From counted words to the features of a batch: one hash and one weight for every keyword of every text."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.fingerprint.definitions import Definition
from consumer.fingerprint.lexicon import Lexicon
from consumer.fingerprint.summing import hash_words

# The row of all words that do not count.
_NO_KEYWORD: Final = 0
_ROWS_FIRST: Final = 1 << 12
# Evidence is for people, and goes into every record and event: an unbroken run of letters can be as long as its text.
KEYWORD_CHARS_KEPT_MAX: Final = 64


class WordTable:
    """
    Remembers hash and weight of every word met: a dict of rows, and arrays by row.

    Grows without bound; its owner starts a new one when `len` or `characters` says so.
    """

    def __init__(self, definition: Definition, lexicon: Lexicon) -> None:
        self._definition = definition
        self._lexicon = lexicon
        self._factor = definition.weighting.factors(lexicon)
        self._rows: dict[str, int] = {}
        self._hashes = np.zeros((_ROWS_FIRST, definition.bits // 64), dtype=np.uint64)
        self._factors = np.zeros(_ROWS_FIRST, dtype=np.float64)
        self._filled = _NO_KEYWORD + 1
        self._characters = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def characters(self) -> int:
        """Count the characters of all words remembered."""
        return self._characters

    def features(self, words: list[str], counts: list[int], stops: list[int]) -> "Features":
        """
        Make the features of texts whose words stand one text after the other, text t up to `stops[t]`.

        Within a text every word stands once, with its count.
        """
        for word in set(words).difference(self._rows):
            self._rows[word] = self._add(word)
            self._characters += len(word)
        rows = np.fromiter(map(self._rows.__getitem__, words), dtype=np.int64, count=len(words))
        kept = np.flatnonzero(rows != _NO_KEYWORD)
        rows = rows[kept]
        weights = np.array(counts, dtype=np.float64)[kept] * self._factors[rows]
        offsets = np.searchsorted(kept, [0, *stops])
        return Features(words, kept, self._hashes[rows], weights, offsets, stops)

    def _add(self, word: str) -> int:
        if not self._definition.counting.counts(word, self._lexicon):
            return _NO_KEYWORD
        row = self._filled
        if row == len(self._hashes):
            self._hashes = np.concatenate((self._hashes, np.zeros_like(self._hashes)))
            self._factors = np.concatenate((self._factors, np.zeros_like(self._factors)))
        self._hashes[row] = hash_words([self._definition.hashing.hash(word)], self._definition.bits)
        self._factors[row] = self._factor(word)
        self._filled += 1
        return row


class Features(NamedTuple):
    """
    The keywords of a batch of texts: text t has the places `offsets[t]` up to `offsets[t + 1]`.

    `hashes`, uint64[places, words], and `weights` are by place; `kept` names the place's word in `words`, which has
    all words, those of text t up to `stops[t]`.
    """

    words: list[str]
    kept: npt.NDArray[np.int64]
    hashes: npt.NDArray[np.uint64]
    weights: npt.NDArray[np.float64]
    offsets: npt.NDArray[np.int64]
    stops: list[int]

    def words_of_texts(self) -> list[list[str]]:
        """Tell the distinct words of every text, those that do not count among them."""
        return [self.words[start:stop] for start, stop in pairwise([0, *self.stops])]

    def keywords(self, places: Iterable[int]) -> tuple[tuple[str, float], ...]:
        """Tell words and weights at these places."""
        return tuple((self.words[self.kept[place]], float(self.weights[place])) for place in places)

    def heaviest(self, text: int, keywords_max: int | None) -> list[int]:
        """Tell the places of a text's keywords, heaviest first, then by code points, at most `keywords_max`."""
        start, stop = self.offsets[text : text + 2].tolist()
        weights = self.weights[start:stop]
        places = np.arange(start, stop)
        if keywords_max is not None and keywords_max < len(places):
            # Only what weighs at least as much as the last that counts needs sorting, its equals included.
            least = np.partition(weights, -keywords_max)[-keywords_max]
            places = places[weights >= least]
        ranked = sorted(
            (-weight, self.words[word], place)
            for weight, word, place in zip(
                self.weights[places].tolist(), self.kept[places].tolist(), places.tolist(), strict=True
            )
        )
        return [place for _, _, place in ranked[:keywords_max]]

    def evidence(self, text: int, keywords_max: int | None) -> tuple[tuple[str, float], ...]:
        """Tell a text's heaviest keywords with their weights, those of more than 64 characters left out."""
        keywords = self.keywords(self.heaviest(text, keywords_max))
        if all(len(word) <= KEYWORD_CHARS_KEPT_MAX for word, _ in keywords):
            return keywords
        ranked = self.keywords(self.heaviest(text, None))
        return tuple(keyword for keyword in ranked if len(keyword[0]) <= KEYWORD_CHARS_KEPT_MAX)[:keywords_max]

    def only_heaviest(self, keywords_max: int) -> "Features":
        """Keep at most `keywords_max` of every text's keywords."""
        chosen = [self.heaviest(text, keywords_max) for text in range(len(self.offsets) - 1)]
        places = np.array([place for of_text in chosen for place in of_text], dtype=np.int64)
        offsets = np.cumsum([0, *map(len, chosen)])
        return Features(self.words, self.kept[places], self.hashes[places], self.weights[places], offsets, self.stops)
