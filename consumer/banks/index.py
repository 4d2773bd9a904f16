"""Finds the bank items that articles repeat: items whose text equals the article's, resembles it, or is a part of it.

Similar texts are found by bands of minima, as in lane 1 of the store (Broder, "On the Resemblance and Containment of
Documents", SEQUENCES 1997; Indyk and Motwani, "Approximate Nearest Neighbors", STOC 1998), but in a separate index:
``BANDS`` bands of ``BAND_MINIMA`` minima of the sketch. A text of similarity s shares at least one band with
probability 1 − (1 − s³)¹²: 0.99 for 0.7, 0.9998 for 0.8. Unrelated texts share a band in 1 of 1,400,000 cases.

Parts are found by the smallest shingles of the item. The share p of these shingles that the article contains estimates
how much of the item it contains. The standard error is √(p (1 − p) / 24) for 24 shingles.

Everything here works on arrays.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from consumer.banks.rows import CandidatePairs, KeyFilter, KeyIndex, Places, Words, ordered_rows, rarest_hits
from consumer.fingerprint import SketchSimilarity, TextKind, densified_sketches
from storage.records import Record

BANDS: Final = 12
BAND_MINIMA: Final = 3
SKETCH_BYTES: Final = 256
_DIGEST_WORDS: Final = 2
_SHINGLE_BYTES: Final = 8
_ROUNDING: Final = 1e-6
"""A tolerance, in shingles, that exceeds the rounding error of a computed number of shingles."""
_PAIRS_AT_ONCE: Final = 4_096
_KEYS_AT_ONCE: Final = 8_192
_COMPARED_KINDS: Final = (TextKind.LONG, TextKind.SHINGLED)
"""The kinds of texts compared by their sketches."""

PART_MARGIN: Final = 0.1
"""Added to the required similarity for parts, since the estimated share has a standard error of up to 0.1."""

EQUAL: Final = "equal"
SIMILAR: Final = "similar"
PART: Final = "part"
MATCH_FORMS: Final = (EQUAL, SIMILAR, PART)


@dataclass(frozen=True, slots=True, eq=False)
class TextFeatures:
    """The features by which n texts (articles or items) are compared.

    ``kinds`` uint8[n], ``sketches`` uint8[n, 256], ``text_digests`` uint64[n, 2].
    """

    kinds: npt.NDArray[np.uint8]
    sketches: npt.NDArray[np.uint8]
    text_digests: Words

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.kinds)

    def select(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """Return the features of the texts where ``chosen`` bool[n] is true."""
        return type(self)(self.kinds[chosen], self.sketches[chosen], self.text_digests[chosen])

    @classmethod
    def of_records(cls, records: Sequence[Record]) -> Self:
        """Return the features of articles, taken from their records."""
        return cls(
            np.array([record.kind for record in records], np.uint8),
            np.frombuffer(b"".join(record.sketch for record in records), np.uint8).reshape(len(records), -1),
            np.frombuffer(b"".join(record.text_digest for record in records), np.uint64).reshape(len(records), -1),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Concatenate the features of one or more parts."""
        return cls(
            np.concatenate([part.kinds for part in parts]),
            np.concatenate([part.sketches for part in parts]),
            np.concatenate([part.text_digests for part in parts]),
        )


NO_TEXTS: Final = TextFeatures(
    np.zeros(0, np.uint8), np.zeros((0, SKETCH_BYTES), np.uint8), np.zeros((0, _DIGEST_WORDS), np.uint64)
)
NO_SHINGLES: Final = KeyIndex(np.zeros(0, np.uint64), np.zeros(0, np.uint32))


@dataclass(frozen=True, eq=False)
class ItemIndex:
    """An immutable index of n items, which threads may share.

    ``shingles`` holds the smallest shingles of each item that can be found as a part of an article.
    """

    texts: TextFeatures
    shingles: KeyIndex
    similarity: SketchSimilarity

    def equal(self, articles: TextFeatures) -> CandidatePairs:
        """Return the pairs of an article and an item with equal texts. Articles of the kind ``EMPTY`` have none."""
        found = self._by_digest.pairs(articles.text_digests[:, 0], np.arange(len(articles)))
        same = (articles.text_digests[found.articles] == self.texts.text_digests[found.items]).all(axis=1)
        same &= articles.kinds[found.articles] != TextKind.EMPTY
        return CandidatePairs(found.articles[same], found.items[same], found.limited)

    def similar(self, articles: TextFeatures) -> tuple[CandidatePairs, npt.NDArray[np.float64]]:
        """Return the pairs that share a band, and their similarities, float64[pairs].

        Only texts of ``_COMPARED_KINDS`` are in pairs.
        """
        compared = np.flatnonzero(np.isin(articles.kinds, _COMPARED_KINDS))
        keys = _band_keys(articles.sketches[compared]).reshape(-1)
        passing = self._band_filter.passing(keys)
        # A pair may share several bands.
        pairs, _ = self._distinct(self._by_band.pairs(keys[passing], compared[passing // BANDS]))
        parts = [
            self.similarity(articles.sketches[pairs.articles[some]], self.texts.sketches[pairs.items[some]])
            for some in (slice(at, at + _PAIRS_AT_ONCE) for at in range(0, len(pairs.items), _PAIRS_AT_ONCE))
        ]
        return pairs, np.concatenate((np.zeros(0), *parts))

    def parts(
        self, known_shingles: Sequence[bytes], share_min: float
    ) -> tuple[CandidatePairs, npt.NDArray[np.float64]]:
        """Return candidate pairs and, for each, the share of the item's shingles found in the article, float64[pairs].

        ``known_shingles`` has the shingles of each article that occur in any item, 8 bytes each. The result includes
        all pairs with a share of at least ``share_min``, except some pairs of the articles in ``limited``. It may also
        include pairs with smaller shares.
        """
        hits_min = max(1, math.ceil(share_min * self._shingles_min - _ROUNDING))
        counts = np.array([len(shingles) // _SHINGLE_BYTES for shingles in known_shingles], np.int64)
        # Most articles share a few shingles with items by chance, but too few to contain an item.
        articles = np.flatnonzero(counts >= hits_min)
        hashes = hashes_of([known_shingles[article] for article in articles.tolist()])
        runs = self.shingles.runs(hashes, np.repeat(articles, counts[articles]))
        # Rare shingles select the candidates first, since common shingles occur in many items.
        rare, hits = self._distinct(self.shingles.pairs_of(runs.rarest(hits_min)))
        is_candidate = hits >= rarest_hits(hits_min)
        candidates = CandidatePairs(rare.articles[is_candidate], rare.items[is_candidate], runs.limited)
        of_candidates = self.shingles.pairs_of(runs.select(np.isin(runs.articles, candidates.articles)))
        shared = _count_codes(self._codes(of_candidates), self._codes(candidates))
        return candidates, shared / self._shingle_counts[candidates.items]

    def prepare(self) -> Self:
        """Build the lookup tables that would otherwise be built on first use, and return the index itself."""
        _ = self._by_digest, self._band_filter, self._shingles_min
        return self

    def _distinct(self, pairs: CandidatePairs) -> tuple[CandidatePairs, npt.NDArray[np.int64]]:
        """Return the distinct pairs, and how often each occurs."""
        distinct, counts = np.unique(self._codes(pairs), return_counts=True)
        return CandidatePairs(distinct // self._width, distinct % self._width, pairs.limited), counts

    def _codes(self, pairs: CandidatePairs) -> Places:
        """Return a distinct number for each pair."""
        return pairs.articles * self._width + pairs.items

    @property
    def _width(self) -> int:
        return max(len(self.texts), 1)

    @cached_property
    def _by_digest(self) -> KeyIndex:
        return KeyIndex.of(self.texts.text_digests[:, 0], np.arange(len(self.texts), dtype=np.uint32))

    @cached_property
    def _by_band(self) -> KeyIndex:
        compared = np.flatnonzero(np.isin(self.texts.kinds, _COMPARED_KINDS)).astype(np.uint32)
        # In portions, because computing the keys takes ten times their memory.
        parts = [compared[at : at + _KEYS_AT_ONCE] for at in range(0, len(compared), _KEYS_AT_ONCE)]
        keys = [_band_keys(self.texts.sketches[part]).reshape(-1) for part in parts]
        return ordered_rows(np.concatenate([np.zeros(0, np.uint32), *keys]), np.repeat(compared, BANDS))

    @cached_property
    def _band_filter(self) -> KeyFilter:
        return KeyFilter.of(self._by_band.keys.astype(np.uint32, copy=False))

    @cached_property
    def _shingle_counts(self) -> npt.NDArray[np.uint8]:
        return np.bincount(self.shingles.items, minlength=len(self.texts)).astype(np.uint8)

    @cached_property
    def _shingles_min(self) -> int:
        """The smallest number of shingles of an item, ignoring items without any."""
        counts = self._shingle_counts[self._shingle_counts > 0]
        return int(counts.min()) if len(counts) else 0


def _count_codes(codes: Places, wanted_codes: Places) -> Places:
    """Return how often each of ``wanted_codes``, which are in ascending order, occurs in ``codes``."""
    if not len(wanted_codes):
        return wanted_codes
    places = np.searchsorted(wanted_codes, codes)
    is_counted = wanted_codes[np.minimum(places, len(wanted_codes) - 1)] == codes
    return np.bincount(places[is_counted], minlength=len(wanted_codes))


def shingle_rows(shingles: Sequence[bytes]) -> KeyIndex:
    """Return an index of the shingles of n items. An item has any number of shingles, of 8 bytes each."""
    counts = [len(packed) // _SHINGLE_BYTES for packed in shingles]
    return KeyIndex.of(hashes_of(shingles), np.repeat(np.arange(len(shingles), dtype=np.uint32), counts))


def hashes_of(shingles: Sequence[bytes]) -> Words:
    """Return the hashes in packed shingles, which have 8 bytes each, as uint64[n]."""
    return np.frombuffer(b"".join(shingles), ">u8").astype(np.uint64)


def _band_keys(sketches: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """Return the band keys of sketches, uint32[n, BANDS]: the band number in the top byte, then three minima."""
    minima = densified_sketches(sketches, BANDS * BAND_MINIMA).astype(np.uint32).reshape(-1, BANDS, BAND_MINIMA)
    keys = minima[:, :, 0] << 16 | minima[:, :, 1] << 8 | minima[:, :, 2] | np.arange(BANDS, dtype=np.uint32) << 24
    return keys.astype(np.uint32)
