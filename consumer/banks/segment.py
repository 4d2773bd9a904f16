"""Some items of banks as arrays: what they are compared by, an index over that, and what each asks for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from consumer.banks.bank import ItemKey
from consumer.banks.index import NO_SHINGLES, NO_TEXTS, ItemIndex, Rows, Texts
from consumer.fingerprint import SketchSimilarity

NEVER_MS: Final = np.iinfo(np.int64).max
"""When items end that never do."""


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """n items, with what they are compared by, and what they ask for.

    ``names`` are the names of bank and item, joined by "/". ``entry_hashes`` int64[n] are those of their entries in
    this process: an entry that did not change is not computed again. ``similarities`` float64[n] are their own, nan for
    those of their bank; ``ends_ms`` int64[n] is when they end; ``confirmed`` bool[n] says which may match any share of
    the feed. ``facts`` has those of the items of banks that allow.
    """

    names: tuple[str, ...]
    texts: Texts
    shingles: Rows
    entry_hashes: npt.NDArray[np.int64]
    similarities: npt.NDArray[np.float64]
    ends_ms: npt.NDArray[np.int64]
    confirmed: npt.NDArray[np.bool_]
    facts: Mapping[str, bytes]

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.names)

    def of(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """Return those for which ``chosen`` bool[n] is true."""
        if chosen.all():
            return self
        names = tuple(compress(self.names, chosen.tolist()))
        return type(self)(
            names,
            self.texts.of(chosen),
            self.shingles.of_items(chosen),
            self.entry_hashes[chosen],
            self.similarities[chosen],
            self.ends_ms[chosen],
            self.confirmed[chosen],
            {name: self.facts[name] for name in names if name in self.facts},
        )

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the items of one or more parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            tuple(chain.from_iterable(part.names for part in parts)),
            Texts.joined([part.texts for part in parts]),
            Rows.joined([part.shingles for part in parts], [len(part) for part in parts]),
            np.concatenate([part.entry_hashes for part in parts]),
            np.concatenate([part.similarities for part in parts]),
            np.concatenate([part.ends_ms for part in parts]),
            np.concatenate([part.confirmed for part in parts]),
            dict(chain.from_iterable(part.facts.items() for part in parts)),
        )


NO_ITEMS: Final = Items(
    (), NO_TEXTS, NO_SHINGLES, np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.bool_), {}
)


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Items with an index; ``alive`` bool[n] says which of them still count."""

    items: Items
    index: ItemIndex
    alive: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, items: Items, similarity: SketchSimilarity) -> Self:
        """Index items, all of which count."""
        index = ItemIndex(items.texts, items.shingles, similarity).build()
        return cls(items, index, np.ones(len(items), np.bool_))

    def without(self, dead: Sequence[int]) -> Self:
        """Return the segment in which these no longer count; the index stays."""
        if not dead:
            return self
        alive = self.alive.copy()
        alive[list(dead)] = False
        return type(self)(self.items, self.index, alive)

    def living(self) -> Items:
        """Return the items that count."""
        return self.items.of(self.alive)


def joined_name(key: ItemKey) -> str:
    """Return the names of a bank and an item as one; neither has a slash."""
    return "/".join(key)
