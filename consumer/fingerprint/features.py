"""Turns counted words into the features of a batch: the hash and weight of each keyword of each text."""

import heapq
from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.fingerprint.definitions import Definition
from consumer.fingerprint.lexicon import Lexicon
from consumer.fingerprint.summing import hash_words

_NO_KEYWORD: Final = 0
"""The row of words that do not count."""
_ROWS_FIRST: Final = 1 << 12
KEYWORD_CHARS_KEPT_MAX: Final = 64
"""Longer keywords are not kept as evidence, since every record stores it, and a word can be as long as its text."""
_TIES_FACTOR: Final = 8
"""If ties leave more than this many times ``keywords_max`` keywords, selecting the heaviest is faster than sorting."""


class WordTable:
    """A cache of the hash and weight of every word seen: a dict of rows, and arrays by row.

    It grows without bound: its owner must watch ``len`` and ``characters``, and replace it when they are too large.
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
        """The number of characters of all cached words."""
        return self._characters

    def features(self, words: list[str], counts: list[int], stops: list[int]) -> "Features":
        """Return the features of texts, given their concatenated words; the words of text t end at ``stops[t]``.

        Each word must be given once per text; ``counts`` says how often it occurs there.
        """
        self._add(list(set(words).difference(self._rows)))
        rows = np.fromiter(map(self._rows.__getitem__, words), dtype=np.int64, count=len(words))
        kept = np.flatnonzero(rows != _NO_KEYWORD)
        rows = rows[kept]
        weights = np.array(counts, dtype=np.float64)[kept] * self._factors[rows]
        offsets = np.searchsorted(kept, [0, *stops])
        return Features(words, kept, self._hashes[rows], weights, offsets, stops)

    def _add(self, words: list[str]) -> None:
        counted = [word for word in words if self._definition.filtering.counts(word, self._lexicon)]
        first, self._filled = self._filled, self._filled + len(counted)
        while self._filled > len(self._hashes):
            self._hashes = np.concatenate((self._hashes, np.zeros_like(self._hashes)))
            self._factors = np.concatenate((self._factors, np.zeros_like(self._factors)))
        hashes = [self._definition.hashing.hash(word) for word in counted]
        self._hashes[first : self._filled] = hash_words(hashes, self._definition.bits)
        self._factors[first : self._filled] = [self._factor(word) for word in counted]
        self._rows.update(dict.fromkeys(words, _NO_KEYWORD))
        self._rows.update(zip(counted, range(first, self._filled), strict=True))
        self._characters += sum(map(len, words))


class Features(NamedTuple):
    """The keywords of a batch of texts: text t has the places ``offsets[t]:offsets[t + 1]``.

    ``hashes``, uint64[places, bits // 64], and ``weights`` are by place. ``kept`` is the index of each place's word in
    ``words``, which has all words; the words of text t end at ``stops[t]``.
    """

    words: list[str]
    kept: npt.NDArray[np.int64]
    hashes: npt.NDArray[np.uint64]
    weights: npt.NDArray[np.float64]
    offsets: npt.NDArray[np.int64]
    stops: list[int]

    def words_of_texts(self) -> list[list[str]]:
        """Return the distinct words of each text, including words that do not count."""
        return [self.words[start:stop] for start, stop in pairwise([0, *self.stops])]

    def keywords(self, places: Iterable[int]) -> tuple[tuple[str, float], ...]:
        """Return the words and weights at these places."""
        return tuple((self.words[self.kept[place]], float(self.weights[place])) for place in places)

    def heaviest(self, text: int, keywords_max: int | None, chars_max: int | None = None) -> list[int]:
        """Return the places of at most ``keywords_max`` keywords of a text, heaviest first, then by code points.

        Keywords of more than ``chars_max`` characters are left out.
        """
        start, stop = self.offsets[text : text + 2].tolist()
        places = np.arange(start, stop)
        if chars_max is not None:
            short = [len(self.words[word]) <= chars_max for word in self.kept[start:stop].tolist()]
            places = places[np.array(short, dtype=np.bool_)]
        if keywords_max is not None and keywords_max < len(places):
            # Sort only keywords at least as heavy as the last one to return.
            weights = self.weights[places]
            least = np.partition(weights, -keywords_max)[-keywords_max]
            places = places[weights >= least]
        ranked = zip(
            (-self.weights[places]).tolist(),
            map(self.words.__getitem__, self.kept[places].tolist()),
            places.tolist(),
            strict=True,
        )
        if keywords_max is not None and len(places) > _TIES_FACTOR * keywords_max:
            return [place for _, _, place in heapq.nsmallest(keywords_max, ranked)]
        return [place for _, _, place in sorted(ranked)[:keywords_max]]

    def evidence(self, text: int, keywords_max: int | None) -> tuple[tuple[str, float], ...]:
        """Return a text's heaviest keywords of at most 64 characters, with their weights."""
        keywords = self.keywords(self.heaviest(text, keywords_max))
        if all(len(word) <= KEYWORD_CHARS_KEPT_MAX for word, _ in keywords):
            return keywords
        return self.keywords(self.heaviest(text, keywords_max, KEYWORD_CHARS_KEPT_MAX))

    def only_heaviest(self, keywords_max: int) -> "Features":
        """Return the features of the ``keywords_max`` heaviest keywords of each text."""
        chosen = [self.heaviest(text, keywords_max) for text in range(len(self.offsets) - 1)]
        places = np.array([place for text_places in chosen for place in text_places], dtype=np.int64)
        offsets = np.cumsum([0, *map(len, chosen)])
        return Features(self.words, self.kept[places], self.hashes[places], self.weights[places], offsets, self.stops)
