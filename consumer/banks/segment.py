"""Some items of banks as arrays: what they are compared by, an index over that, and what each asks for."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from consumer.banks.bank import BankItem, ItemKey
from consumer.banks.index import EQUAL, PART, SIMILAR, ItemIndex, Likeness, Texts
from consumer.banks.item_fingerprints import NO_FINGERPRINTS, ItemFingerprints
from consumer.fingerprint import SketchSimilarity

NEVER_MS: Final = np.iinfo(np.int64).max
"""When items end that never do."""


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """n items, with what they are compared by, and what they ask for.

    ``names`` are the names of bank and item, joined by "/". ``similarities`` float64[n] are their own, nan for those of
    their bank; ``ends_ms`` int64[n] is when they end; ``confirmed`` bool[n] says which may match any share of the feed.
    """

    names: tuple[str, ...]
    fingerprints: ItemFingerprints
    similarities: npt.NDArray[np.float64]
    ends_ms: npt.NDArray[np.int64]
    confirmed: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.names)

    def of(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """Return those for which ``chosen`` bool[n] is true."""
        if chosen.all():
            return self
        return type(self)(
            tuple(compress(self.names, chosen.tolist())),
            self.fingerprints.of(chosen),
            self.similarities[chosen],
            self.ends_ms[chosen],
            self.confirmed[chosen],
        )

    @classmethod
    def of_entries(cls, entries: Sequence[BankItem], fingerprints: ItemFingerprints) -> Self:
        """Return the items of these entries, with their fingerprints in the same order."""
        similarities = [np.nan if entry.similarity is None else entry.similarity for entry in entries]
        return cls(
            tuple([joined_name(entry.key) for entry in entries]),
            fingerprints,
            np.array(similarities, np.float64),
            np.array([NEVER_MS if entry.ends_ms is None else entry.ends_ms for entry in entries], np.int64),
            np.array([entry.confirmed for entry in entries], np.bool_),
        )

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the items of one or more parts, one after the other."""
        # Joining copies all of them; most often there is one part, and an empty one.
        filled = [part for part in parts if len(part)] or parts[:1]
        if len(filled) == 1:
            return filled[0]
        return cls(
            tuple(chain.from_iterable(part.names for part in filled)),
            ItemFingerprints.joined([part.fingerprints for part in filled]),
            np.concatenate([part.similarities for part in filled]),
            np.concatenate([part.ends_ms for part in filled]),
            np.concatenate([part.confirmed for part in filled]),
        )


NO_ITEMS: Final = Items((), NO_FINGERPRINTS, np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.bool_))


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Items with an index; ``alive`` bool[n] says which of them still count."""

    items: Items
    index: ItemIndex
    alive: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, items: Items, similarity: SketchSimilarity) -> Self:
        """Index items, all of which count."""
        compared = items.fingerprints
        index = ItemIndex(compared.texts, compared.shingles, similarity).build()
        return cls(items, index, np.ones(len(items), np.bool_))

    def without(self, dead: Sequence[int]) -> Self:
        """Return the segment in which these no longer count; the index stays."""
        if not dead:
            return self
        alive = self.alive.copy()
        alive[list(dead)] = False
        return type(self)(self.items, self.index, alive)

    def likenesses(self, articles: Texts, known_shingles: Sequence[bytes], similarity_min: float) -> "Likenesses":
        """Return the items that count, and that are at least so similar to articles, or so much of which these have.

        ``known_shingles`` are those of each article, see ``ItemIndex.parts``.
        """
        if not len(self.index.texts):
            return Likenesses([], frozenset())
        equal = self.index.equal(articles)
        pairs_by_form = (
            (EQUAL, equal, np.ones(len(equal.items))),
            (SIMILAR, *self.index.similar(articles)),
            (PART, *self.index.parts(known_shingles, similarity_min)),
        )
        found: list[Likeness] = []
        for form, pairs, similarities in pairs_by_form:
            enough = np.flatnonzero((similarities >= similarity_min) & self.alive[pairs.items])
            found += (
                Likeness(int(pairs.articles[pair]), int(pairs.items[pair]), form, float(similarities[pair]))
                for pair in enough.tolist()
            )
        return Likenesses(
            found, frozenset(chain.from_iterable(pairs.limited.tolist() for _, pairs, _ in pairs_by_form))
        )

    def living(self) -> Items:
        """Return the items that count."""
        return self.items.of(self.alive)


class Likenesses(NamedTuple):
    """Articles and items that are alike, by form: equal, similar, part; ``limited`` are the articles that had more."""

    likenesses: list[Likeness]
    limited: frozenset[int]


def joined_name(key: ItemKey) -> str:
    """Return the names of a bank and an item as one; neither has a slash."""
    return "/".join(key)
