"""Rows of an index: which items have a key, and the pairs of articles and items that share one.

Everything here works on arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

ROW_ITEMS_MAX: Final = 1_000
"""The maximum number of items with the same text, band or shingle that an article is compared with."""
_RAREST_HITS: Final = 4
"""An item must have this many of an article's rarest shingles before all shingles that they share are counted."""
_BLOCK_KEYS: Final = 32
_KEY_BITS: Final = np.uint64(32)
_BITS_PER_KEY_MAX: Final = 8
_HASH_BITS_MIN: Final = 3
_HASH_BITS_MAX: Final = 28
"""A filter with 28-bit hashes has 32 MB. With more than five million items, more keys pass the filter."""
_HASH_MULTIPLIER: Final = np.uint32(0x9E3779B1)
"""Spreads keys over the top bits of the product (Knuth, "The Art of Computer Programming", volume 3, section 6.4)."""

Words = npt.NDArray[np.uint64]
Places = npt.NDArray[np.intp]


class CandidatePairs(NamedTuple):
    """Pairs of articles and items, as places. ``limited`` are the distinct articles for which pairs were left out."""

    articles: Places
    items: Places
    limited: Places


@dataclass(frozen=True, eq=False)
class KeyIndex:
    """Items by key: ``keys`` in ascending order, and ``items`` uint32, one for each key."""

    keys: npt.NDArray[np.unsignedinteger]
    items: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, keys: npt.NDArray[np.unsignedinteger], items: npt.NDArray[np.uint32]) -> Self:
        """Return the index of keys in any order."""
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], items[order])

    def of_items(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """Return the rows of the items where ``chosen`` bool[n] is true, with new item numbers."""
        remain = chosen[self.items]
        numbers = np.cumsum(chosen, dtype=np.uint32) - np.uint32(1)
        return type(self)(self.keys[remain], numbers[self.items[remain]])

    @classmethod
    def concatenate(cls, parts: Sequence[Self], sizes: Sequence[int]) -> Self:
        """Return the rows of one or more parts with consecutive item numbers; ``sizes`` counts the items of each."""
        offsets = np.cumsum([0, *sizes[:-1]], dtype=np.uint32)
        items = [part.items + offset for part, offset in zip(parts, offsets, strict=True)]
        return cls.of(np.concatenate([part.keys for part in parts]), np.concatenate(items))

    def pairs(self, keys: npt.NDArray[np.unsignedinteger], articles: Places) -> CandidatePairs:
        """Return the pairs of each key's article with the items that have this key."""
        return self.pairs_of(self.runs(keys, articles))

    def runs(self, keys: npt.NDArray[np.unsignedinteger], articles: Places) -> "Runs":
        """Return the run of items with each key; ``articles`` has the article of each key.

        Keys that no item has, which are most keys, have no run.
        """
        # Sorted, because neighbouring keys then use the same memory.
        order = np.argsort(keys)
        keys, articles = keys[order], articles[order]
        starts = self._count_below(keys, np.less)
        hits = (
            np.flatnonzero(self.keys[np.minimum(starts, len(self.keys) - 1)] == keys) if len(self.keys) else starts[:0]
        )
        starts = starts[hits]
        return Runs(articles[hits], starts, self._count_below(keys[hits], np.less_equal) - starts)

    def _count_below(self, keys: npt.NDArray[np.unsignedinteger], below: np.ufunc) -> Places:
        """Return how many keys of the index are below each key; with ``np.less_equal``, below or equal to it.

        A binary search in millions of keys waits for memory at each step. So this first searches only every
        ``_BLOCK_KEYS``-th key, and then all blocks in parallel.
        """
        places = np.searchsorted(self._firsts, keys, "left" if below is np.less else "right") * _BLOCK_KEYS
        # The first key of the preceding block is below ``keys``; the other keys of that block may be.
        places -= np.minimum(places, _BLOCK_KEYS - 1)
        last = len(self.keys) - 1
        step = _BLOCK_KEYS // 2
        while step and last >= 0:
            places += step * below(self.keys[np.minimum(places + (step - 1), last)], keys)
            step //= 2
        return np.minimum(places, last + 1)

    @cached_property
    def _firsts(self) -> npt.NDArray[np.unsignedinteger]:
        """The first key of each block."""
        return self.keys[::_BLOCK_KEYS].copy()

    def pairs_of(self, runs: "Runs") -> CandidatePairs:
        """Return the pairs of each run's article with up to ``ROW_ITEMS_MAX`` items of the run."""
        counts = np.minimum(runs.counts, ROW_ITEMS_MAX)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return CandidatePairs(
            np.repeat(runs.articles, counts),
            self.items[np.repeat(runs.starts, counts) + within].astype(np.intp),
            runs.limited,
        )


class Runs(NamedTuple):
    """Runs of items with the same key: an article with the key, the first item's place, and the number of items."""

    articles: Places
    starts: Places
    counts: Places

    @property
    def limited(self) -> Places:
        """The distinct articles with a key that more than ``ROW_ITEMS_MAX`` items have."""
        return np.unique(self.articles[self.counts > ROW_ITEMS_MAX])

    def select(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """Return the runs where ``chosen`` bool[n] is true."""
        return type(self)(*(column[chosen] for column in self))

    def rarest(self, hits_min: int) -> Self:
        """Return the rarest runs of each article: just enough to find every item that is in ``hits_min`` of its runs.

        Rare runs have few items. An item in ``hits_min`` runs of an article is in at least ``rarest_hits(hits_min)`` of
        the runs returned for the article.
        """
        order = np.lexsort((self.counts, self.articles))
        _, firsts, sizes = np.unique(self.articles[order], return_index=True, return_counts=True)
        ranks = np.arange(len(order)) - np.repeat(firsts, sizes)
        few = ranks < np.repeat(sizes - hits_min + rarest_hits(hits_min), sizes)
        return type(self)(*(column[order[few]] for column in self))


class KeyFilter(NamedTuple):
    """A filter that excludes most keys outside a set before they are searched: one bit for each possible hash.

    A hash has ``hash_bits`` bits. So there are 2 to the power of ``hash_bits`` bits, 8 in a byte.
    """

    bits: npt.NDArray[np.uint8]
    hash_bits: int

    @classmethod
    def of(cls, keys: npt.NDArray[np.uint32]) -> Self:
        """Return a filter with 4 to 8 bits per key, or fewer if ``_HASH_BITS_MAX`` limits it.

        With 4 to 8 bits, it lets one in five to one in eight other keys pass.
        """
        hash_bits = min(max(_HASH_BITS_MIN, (len(keys) * _BITS_PER_KEY_MAX).bit_length() - 1), _HASH_BITS_MAX)
        flags = np.zeros(1 << hash_bits, np.bool_)
        flags[_hashes_of_keys(keys, hash_bits)] = True
        return cls(np.packbits(flags, bitorder="little"), hash_bits)

    def passing(self, keys: npt.NDArray[np.uint32]) -> Places:
        """Return the places of the keys that may be in the set."""
        hashes = _hashes_of_keys(keys, self.hash_bits)
        return np.flatnonzero(self.bits[hashes >> 3] >> (hashes & 7).astype(np.uint8) & 1)


def rarest_hits(hits_min: int) -> int:
    """Return how many of an article's rarest runs, at least, have an item that is in ``hits_min`` of all its runs."""
    return min(_RAREST_HITS, hits_min)


def _hashes_of_keys(keys: npt.NDArray[np.uint32], hash_bits: int) -> npt.NDArray[np.uint32]:
    return keys * _HASH_MULTIPLIER >> np.uint32(32 - hash_bits)


def ordered_rows(keys: npt.NDArray[np.uint32], items: npt.NDArray[np.uint32]) -> KeyIndex:
    """Return the index of keys, given in any order; equal keys are ordered by item. Faster than ``KeyIndex.of``."""
    packed = keys.astype(np.uint64) << _KEY_BITS | items
    packed.sort()
    return KeyIndex((packed >> _KEY_BITS).astype(np.uint32), packed.astype(np.uint32))
