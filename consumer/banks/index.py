"""Finds the items of banks that articles repeat: as equal text, as similar text, or as a part of the article.

Similar text is found by bands of minima, as in lane 1 of the store (Broder, "On the Resemblance and Containment of
Documents", SEQUENCES 1997; Indyk and Motwani, "Approximate Nearest Neighbors", STOC 1998), but with an index of its
own: ``BANDS`` bands of ``BAND_MINIMA`` minima of the sketch. A text of similarity s shares at least one with
probability 1 − (1 − s³)¹²: 0.99 for 0.7, 0.9997 for 0.8. Two unrelated texts share one in 1,400,000 cases.

A part is found by the smallest shingles of the item. The share of them that an article has estimates the share of the
item that stands in the article, with a standard error of √(p (1 − p) / 24).

Everything here works on arrays: n items and m articles.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from consumer.fingerprint import SketchSimilarity, TextKind, densified_sketches
from storage.records import Record

BANDS: Final = 12
BAND_MINIMA: Final = 3
ROW_ITEMS_MAX: Final = 1_000
"""How many items with the same text, band or shingle an article is compared with."""
SKETCH_BYTES: Final = 256
_DIGEST_WORDS: Final = 2
_SHINGLE_BYTES: Final = 8
_PAIRS_AT_ONCE: Final = 4_096
_KEYS_AT_ONCE: Final = 8_192
_KEY_BITS: Final = np.uint64(32)
_FILTER_BITS_MAX: Final = 8
_FILTER_SIZE_MIN: Final = 3
_FILTER_SIZE_MAX: Final = 28
"""32 MB; with more than five million items more keys pass."""
_FILTER_HASH: Final = np.uint32(0x9E3779B1)
"""Spreads keys over the top bits of the product (Knuth, "The Art of Computer Programming", volume 3, section 6.4)."""
_COMPARED_KINDS: Final = (TextKind.LONG, TextKind.SHINGLED)
"""The kinds of texts that are compared by their sketches."""

EQUAL: Final = "equal"
SIMILAR: Final = "similar"
PART: Final = "part"
FORMS: Final = (EQUAL, SIMILAR, PART)

Words = npt.NDArray[np.uint64]
Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """What m articles, or n items, are compared by.

    ``kinds`` uint8[n], ``sketches`` uint8[n, 256], ``text_digests`` uint64[n, 2].
    """

    kinds: npt.NDArray[np.uint8]
    sketches: npt.NDArray[np.uint8]
    text_digests: Words

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.kinds)

    def of(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """Return those for which ``chosen`` bool[n] is true."""
        return type(self)(self.kinds[chosen], self.sketches[chosen], self.text_digests[chosen])

    @classmethod
    def of_records(cls, records: Sequence[Record]) -> Self:
        """Return what articles are compared by, as their records have it."""
        return cls(
            np.array([record.kind for record in records], np.uint8),
            np.frombuffer(b"".join(record.sketch for record in records), np.uint8).reshape(len(records), -1),
            np.frombuffer(b"".join(record.text_digest for record in records), np.uint64).reshape(len(records), -1),
        )

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the texts of one or more parts, one after the other."""
        return cls(
            np.concatenate([part.kinds for part in parts]),
            np.concatenate([part.sketches for part in parts]),
            np.concatenate([part.text_digests for part in parts]),
        )


class Pairs(NamedTuple):
    """Articles and items, each by its place; ``limited`` are the articles for which there were more, each once."""

    articles: Places
    items: Places
    limited: Places


class Rows(NamedTuple):
    """Items by key: ``keys`` ascending, and ``items`` uint32, one for each key."""

    keys: npt.NDArray[np.unsignedinteger]
    items: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, keys: npt.NDArray[np.unsignedinteger], items: npt.NDArray[np.uint32]) -> Self:
        """Return the rows of keys in any order."""
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], items[order])

    def of_items(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """Return the rows of the items for which ``chosen`` bool[n] is true, which are numbered anew."""
        stay = chosen[self.items]
        numbers = np.cumsum(chosen, dtype=np.uint32) - np.uint32(1)
        return type(self)(self.keys[stay], numbers[self.items[stay]])

    @classmethod
    def joined(cls, parts: Sequence[Self], sizes: Sequence[int]) -> Self:
        """Return the rows of one or more parts, of which each has so many items; these are numbered on."""
        offsets = np.cumsum([0, *sizes[:-1]], dtype=np.uint32)
        items = [part.items + offset for part, offset in zip(parts, offsets, strict=True)]
        return cls.of(np.concatenate([part.keys for part in parts]), np.concatenate(items))

    def pairs(self, keys: npt.NDArray[np.unsignedinteger], articles: Places) -> Pairs:
        """Return the article of each key with each item that has this key."""
        # Searched in order, neighbouring keys use the same memory.
        order = np.argsort(keys)
        keys, articles = keys[order], articles[order]
        starts = np.searchsorted(self.keys, keys)
        # Nearly all keys are in no item.
        hit = (
            np.flatnonzero(self.keys[np.minimum(starts, len(self.keys) - 1)] == keys) if len(self.keys) else starts[:0]
        )
        starts, articles = starts[hit], articles[hit]
        counts = np.searchsorted(self.keys, keys[hit], side="right") - starts
        limited = np.unique(articles[counts > ROW_ITEMS_MAX])
        counts = np.minimum(counts, ROW_ITEMS_MAX)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return Pairs(
            np.repeat(articles, counts),
            self.items[np.repeat(starts, counts) + within].astype(np.intp),
            limited,
        )


class KeyFilter(NamedTuple):
    """Rules out most keys that are not in a set, so that they need not be searched: a bit for a hash of each key.

    ``bits`` are 2 to the power of ``size``, 8 in a byte.
    """

    bits: npt.NDArray[np.uint8]
    size: int

    @classmethod
    def of(cls, keys: npt.NDArray[np.uint32]) -> Self:
        """Return the filter of n keys: of 4 to 8 bits each, which one in five to eight other keys passes."""
        size = min(max(_FILTER_SIZE_MIN, (len(keys) * _FILTER_BITS_MAX).bit_length() - 1), _FILTER_SIZE_MAX)
        flags = np.zeros(1 << size, np.bool_)
        flags[_hashed(keys, size)] = True
        return cls(np.packbits(flags, bitorder="little"), size)

    def passing(self, keys: npt.NDArray[np.uint32]) -> Places:
        """Return the places of the keys that may be in the set."""
        hashes = _hashed(keys, self.size)
        return np.flatnonzero(self.bits[hashes >> 3] >> (hashes & 7).astype(np.uint8) & 1)


NO_TEXTS: Final = Texts(
    np.zeros(0, np.uint8), np.zeros((0, SKETCH_BYTES), np.uint8), np.zeros((0, _DIGEST_WORDS), np.uint64)
)
NO_SHINGLES: Final = Rows(np.zeros(0, np.uint64), np.zeros(0, np.uint32))


@dataclass(frozen=True, eq=False)
class ItemIndex:
    """An index of n items; it never changes, and any number of threads may use it.

    ``shingles`` are the smallest ones of the items that are found as parts.
    """

    texts: Texts
    shingles: Rows
    similarity: SketchSimilarity

    def equal(self, articles: Texts) -> Pairs:
        """Return the pairs of equal text."""
        found = self._by_digest.pairs(articles.text_digests[:, 0], np.arange(len(articles)))
        same = (articles.text_digests[found.articles] == self.texts.text_digests[found.items]).all(axis=1)
        same &= articles.kinds[found.articles] != TextKind.EMPTY
        return Pairs(found.articles[same], found.items[same], found.limited)

    def similar(self, articles: Texts) -> tuple[Pairs, npt.NDArray[np.float64]]:
        """Return the pairs that share a band, and their similarities float64[pairs]."""
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

    def parts(self, known_shingles: Sequence[bytes], share_min: float) -> tuple[Pairs, npt.NDArray[np.float64]]:
        """Return pairs, and which share of each item's shingles its article has.

        ``known_shingles`` are those of each article that occur in any item, 8 bytes each. At least the pairs with
        ``share_min`` are returned.
        """
        counts = np.array([len(shingles) // _SHINGLE_BYTES for shingles in known_shingles], np.int64)
        # Most articles have a few by chance, and too few for any item.
        enough = np.flatnonzero(counts >= max(1.0, share_min * self._shingles_min))
        hashes = hashes_of([known_shingles[article] for article in enough.tolist()])
        pairs, shared = self._distinct(self.shingles.pairs(hashes, np.repeat(enough, counts[enough])))
        return pairs, shared / self._shingle_counts[pairs.items]

    def build(self) -> Self:
        """Build everything now that the first use would build, and return the index itself."""
        _ = self._by_digest, self._band_filter, self._shingles_min
        return self

    def _distinct(self, pairs: Pairs) -> tuple[Pairs, npt.NDArray[np.int64]]:
        """Return each pair once, and how often it was there."""
        items = max(len(self.texts), 1)
        distinct, counts = np.unique(pairs.articles * items + pairs.items, return_counts=True)
        return Pairs(distinct // items, distinct % items, pairs.limited), counts

    @cached_property
    def _by_digest(self) -> Rows:
        return Rows.of(self.texts.text_digests[:, 0], np.arange(len(self.texts), dtype=np.uint32))

    @cached_property
    def _by_band(self) -> Rows:
        compared = np.flatnonzero(np.isin(self.texts.kinds, _COMPARED_KINDS)).astype(np.uint32)
        # What is computed of one sketch takes ten times the memory of its keys.
        parts = [compared[at : at + _KEYS_AT_ONCE] for at in range(0, len(compared), _KEYS_AT_ONCE)]
        keys = [_band_keys(self.texts.sketches[part]).reshape(-1) for part in parts]
        return _ordered(np.concatenate([np.zeros(0, np.uint32), *keys]), np.repeat(compared, BANDS))

    @cached_property
    def _band_filter(self) -> KeyFilter:
        return KeyFilter.of(self._by_band.keys.astype(np.uint32, copy=False))

    @cached_property
    def _shingle_counts(self) -> npt.NDArray[np.uint8]:
        return np.bincount(self.shingles.items, minlength=len(self.texts)).astype(np.uint8)

    @cached_property
    def _shingles_min(self) -> int:
        """The number of shingles of the item that has the fewest, apart from items without any."""
        counts = self._shingle_counts[self._shingle_counts > 0]
        return int(counts.min()) if len(counts) else 0


def _hashed(keys: npt.NDArray[np.uint32], size: int) -> npt.NDArray[np.uint32]:
    return keys * _FILTER_HASH >> np.uint32(32 - size)


def _ordered(keys: npt.NDArray[np.uint32], items: npt.NDArray[np.uint32]) -> Rows:
    """Return the rows of keys in any order, and of each key by item. Takes a tenth of the time of ``Rows.of``."""
    packed = keys.astype(np.uint64) << _KEY_BITS | items
    packed.sort()
    return Rows((packed >> _KEY_BITS).astype(np.uint32), packed.astype(np.uint32))


def shingle_rows(shingles: Sequence[bytes]) -> Rows:
    """Return the rows of n items, of which each has some shingles, 8 bytes each, or none."""
    counts = [len(packed) // _SHINGLE_BYTES for packed in shingles]
    return Rows.of(hashes_of(shingles), np.repeat(np.arange(len(shingles), dtype=np.uint32), counts))


def hashes_of(shingles: Sequence[bytes]) -> Words:
    """Return packed shingles as numbers, uint64[n]."""
    return np.frombuffer(b"".join(shingles), ">u8").astype(np.uint64)


def _band_keys(sketches: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """Return the keys of the bands of sketches, uint32[n, BANDS]: three minima, below the number of the band."""
    minima = densified_sketches(sketches, BANDS * BAND_MINIMA).astype(np.uint32).reshape(-1, BANDS, BAND_MINIMA)
    keys = minima[:, :, 0] << 16 | minima[:, :, 1] << 8 | minima[:, :, 2] | np.arange(BANDS, dtype=np.uint32) << 24
    return keys.astype(np.uint32)
