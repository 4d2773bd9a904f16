"""Bank items as arrays: their fingerprints, an index of the fingerprints, and the items' requirements for a match."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from consumer.banks.bank import BankItem, ItemKey
from consumer.banks.index import MATCH_FORMS, PART_MARGIN, ItemIndex, TextFeatures
from consumer.banks.item_fingerprints import NO_FINGERPRINTS, ItemFingerprints
from consumer.banks.rows import Places
from consumer.fingerprint import SketchSimilarity

NEVER_MS: Final = np.iinfo(np.int64).max
"""The end time of items that never end."""


@dataclass(frozen=True, slots=True, eq=False)
class ItemTable:
    """n items, with their fingerprints and their requirements for a match.

    ``names`` are the names of bank and item, joined by "/". ``banks`` uint32[n] are the numbers of their banks.
    ``similarities`` float64[n] are the similarities that the items require; nan means that the bank's applies.
    ``ends_ms`` int64[n] are the items' end times. ``confirmed`` bool[n] is true for items that an admin allows to match
    any share of the feed.
    """

    names: tuple[str, ...]
    banks: npt.NDArray[np.uint32]
    fingerprints: ItemFingerprints
    similarities: npt.NDArray[np.float64]
    ends_ms: npt.NDArray[np.int64]
    confirmed: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.names)

    def select(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """Return the items where ``chosen`` bool[n] is true."""
        if chosen.all():
            return self
        return type(self)(
            tuple(compress(self.names, chosen.tolist())),
            self.banks[chosen],
            self.fingerprints.select(chosen),
            self.similarities[chosen],
            self.ends_ms[chosen],
            self.confirmed[chosen],
        )

    @classmethod
    def of_entries(
        cls, entries: Sequence[BankItem], fingerprints: ItemFingerprints, bank_numbers: Mapping[str, int]
    ) -> Self:
        """Return the items of entries, given fingerprints in the same order."""
        similarities = [np.nan if entry.similarity is None else entry.similarity for entry in entries]
        return cls(
            tuple([joined_name(entry.key) for entry in entries]),
            np.array([bank_numbers[entry.bank] for entry in entries], np.uint32),
            fingerprints,
            np.array(similarities, np.float64),
            np.array([NEVER_MS if entry.ends_ms is None else entry.ends_ms for entry in entries], np.int64),
            np.array([entry.confirmed for entry in entries], np.bool_),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Return the items of one or more parts, one after the other."""
        # Avoids copying: usually only one part has items.
        filled = [part for part in parts if len(part)] or parts[:1]
        if len(filled) == 1:
            return filled[0]
        return cls(
            tuple(chain.from_iterable(part.names for part in filled)),
            np.concatenate([part.banks for part in filled]),
            ItemFingerprints.concatenate([part.fingerprints for part in filled]),
            np.concatenate([part.similarities for part in filled]),
            np.concatenate([part.ends_ms for part in filled]),
            np.concatenate([part.confirmed for part in filled]),
        )


NO_ITEMS: Final = ItemTable(
    (), np.zeros(0, np.uint32), NO_FINGERPRINTS, np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.bool_)
)


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Items with an index. ``alive`` bool[n] is false for removed items."""

    items: ItemTable
    index: ItemIndex
    alive: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, items: ItemTable, similarity: SketchSimilarity) -> Self:
        """Return a segment of items, all alive."""
        compared = items.fingerprints.prepared()
        items = replace(items, fingerprints=compared)
        index = ItemIndex(compared.texts, compared.shingles, similarity).prepare()
        return cls(items, index, np.ones(len(items), np.bool_))

    def without(self, dead: Sequence[int]) -> Self:
        """Return the segment with these items removed. The index does not change."""
        if not dead:
            return self
        alive = self.alive.copy()
        alive[list(dead)] = False
        return type(self)(self.items, self.index, alive)

    def matching_pairs(
        self, articles: TextFeatures, known_shingles: Sequence[bytes], similarity_min: float
    ) -> "ItemPairs":
        """Return the pairs of an article and a living item that it equals, resembles or contains, in this order.

        A pair may occur in several of these forms. The similarity, or the share of the item in the article, must be at
        least ``similarity_min``. Pairs with a share below ``similarity_min`` + ``PART_MARGIN`` may be missing, because
        ``BankRules`` excludes them. For ``known_shingles`` see ``ItemIndex.parts``.
        """
        if not len(self.index.texts):
            return NO_PAIRS
        equal = self.index.equal(articles)
        similar, similarities = self.index.similar(articles)
        parts, shares = self.index.parts(known_shingles, min(similarity_min + PART_MARGIN, 1.0))
        by_form = equal, similar, parts
        found = ItemPairs(
            np.concatenate([pairs.articles for pairs in by_form]),
            np.concatenate([pairs.items for pairs in by_form]),
            np.repeat(np.arange(len(MATCH_FORMS)), [len(pairs.items) for pairs in by_form]),
            np.concatenate((np.ones(len(equal.items)), similarities, shares)),
            np.unique(np.concatenate([pairs.limited for pairs in by_form])),
        )
        return found.select((found.similarities >= similarity_min) & self.alive[found.items])

    def living(self) -> ItemTable:
        """Return the living items."""
        return self.items.select(self.alive)


class ItemPairs(NamedTuple):
    """n pairs of an article and an item.

    ``articles`` and ``items`` intp[n] are indexes of articles and items, ``forms`` intp[n] indexes into
    ``MATCH_FORMS``. ``similarities`` float64[n] are from 0 to 1. ``limited`` are the articles for which pairs were left
    out.
    """

    articles: Places
    items: Places
    forms: Places
    similarities: npt.NDArray[np.float64]
    limited: Places

    def select(self, chosen: npt.NDArray[np.bool_] | Places) -> "ItemPairs":
        """Return the pairs where ``chosen`` bool[n] is true, or the pairs at these places."""
        return ItemPairs(
            self.articles[chosen], self.items[chosen], self.forms[chosen], self.similarities[chosen], self.limited
        )

    def first_of_each(self) -> "ItemPairs":
        """Return each pair of an article and an item once, in its first form, ordered by article."""
        width = int(self.items.max(initial=0)) + 1
        _, firsts = np.unique(self.articles * width + self.items, return_index=True)
        return self.select(firsts)


_NO_PLACES: Final = np.zeros(0, np.intp)
NO_PAIRS: Final = ItemPairs(_NO_PLACES, _NO_PLACES, _NO_PLACES, np.zeros(0), _NO_PLACES)


def joined_name(key: ItemKey) -> str:
    """Return the names of a bank and an item joined by a slash, which neither contains."""
    return "/".join(key)
