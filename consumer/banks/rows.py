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
"""How many items with the same text, band or shingle an article is compared with."""
_RAREST_HITS: Final = 4
"""How many of an article's rarest shingles an item has to have before all are counted."""
_BLOCK_KEYS: Final = 32
_KEY_BITS: Final = np.uint64(32)
_FILTER_BITS_MAX: Final = 8
_FILTER_SIZE_MIN: Final = 3
_FILTER_SIZE_MAX: Final = 28
"""32 MB; with more than five million items more keys pass."""
_FILTER_HASH: Final = np.uint32(0x9E3779B1)
"""Spreads keys over the top bits of the product (Knuth, "The Art of Computer Programming", volume 3, section 6.4)."""

Words = npt.NDArray[np.uint64]
Places = npt.NDArray[np.intp]


class CandidatePairs(NamedTuple):
    """Articles and items, each by its place; ``limited`` are the articles for which there were more, each once."""

    articles: Places
    items: Places
    limited: Places


@dataclass(frozen=True, eq=False)
class KeyIndex:
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

    def pairs(self, keys: npt.NDArray[np.unsignedinteger], articles: Places) -> CandidatePairs:
        """Return the article of each key with each item that has this key."""
        return self.pairs_of(self.runs(keys, articles))

    def runs(self, keys: npt.NDArray[np.unsignedinteger], articles: Places) -> "Runs":
        """Return where the items with each key are; most keys are in no item."""
        # Searched in order, neighbouring keys use the same memory.
        order = np.argsort(keys)
        keys, articles = keys[order], articles[order]
        starts = self._count_below(keys, np.less)
        hit = (
            np.flatnonzero(self.keys[np.minimum(starts, len(self.keys) - 1)] == keys) if len(self.keys) else starts[:0]
        )
        starts = starts[hit]
        return Runs(articles[hit], starts, self._count_below(keys[hit], np.less_equal) - starts)

    def _count_below(self, keys: npt.NDArray[np.unsignedinteger], below: np.ufunc) -> Places:
        """Return how many of the rows' keys are ``below`` each key: less, or less or equal.

        A search by halves of millions of keys waits for memory at each step. That of every ``_BLOCK_KEYS``-th one does
        not, and in the blocks in which it ends all keys are searched for at once.
        """
        places = np.searchsorted(self._firsts, keys, "left" if below is np.less else "right") * _BLOCK_KEYS
        # The first key of the block before is below, and so may be those that follow it.
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
        """Return the article of each run with the items of the run, at most ``ROW_ITEMS_MAX``."""
        counts = np.minimum(runs.counts, ROW_ITEMS_MAX)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return CandidatePairs(
            np.repeat(runs.articles, counts),
            self.items[np.repeat(runs.starts, counts) + within].astype(np.intp),
            runs.limited,
        )


class Runs(NamedTuple):
    """Items with the same key side by side: an article with the key, the place of the first item, and how many."""

    articles: Places
    starts: Places
    counts: Places

    @property
    def limited(self) -> Places:
        """The articles with a key that too many items have."""
        return np.unique(self.articles[self.counts > ROW_ITEMS_MAX])

    def of(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """Return those for which ``chosen`` bool[n] is true."""
        return type(self)(*(column[chosen] for column in self))

    def rarest(self, hits_min: int) -> Self:
        """Return for each article so few of its runs that items of ``hits_min`` runs are in ``_RAREST_HITS`` of these.

        They are those with the fewest items.
        """
        order = np.lexsort((self.counts, self.articles))
        _, firsts, sizes = np.unique(self.articles[order], return_index=True, return_counts=True)
        ranks = np.arange(len(order)) - np.repeat(firsts, sizes)
        few = ranks < np.repeat(sizes - hits_min + rarest_hits(hits_min), sizes)
        return type(self)(*(column[order[few]] for column in self))


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


def rarest_hits(hits_min: int) -> int:
    """Return how many of the rarest runs items of ``hits_min`` runs are in, see ``Runs.rarest``."""
    return min(_RAREST_HITS, hits_min)


def _hashed(keys: npt.NDArray[np.uint32], size: int) -> npt.NDArray[np.uint32]:
    return keys * _FILTER_HASH >> np.uint32(32 - size)


def ordered_rows(keys: npt.NDArray[np.uint32], items: npt.NDArray[np.uint32]) -> KeyIndex:
    """Return the rows of keys in any order, and of each key by item. Takes a tenth of the time of ``KeyIndex.of``."""
    packed = keys.astype(np.uint64) << _KEY_BITS | items
    packed.sort()
    return KeyIndex((packed >> _KEY_BITS).astype(np.uint32), packed.astype(np.uint32))
