"""The postings that are near an article by code, as arrays: merged, and told apart by owner and arrival."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.postings import TAIL_WORDS, WORD_SPREAD
from storage.records import Record

NOT_FOUND: Final = 255
"""Stands for the distance in a lane that did not find a version; greater than every distance that a lane finds."""
OWNER: Final = (0, 1)
DIGEST: Final = (2, 3)
REFERENCE: Final = (0, 1, 2, 3)
TIME: Final = 4
SEQUENCE: Final = 5
_ARRIVAL: Final = (TIME, SEQUENCE, 0, 1, 2, 3)
"""The words of a posting's tail in the order in which arrivals compare."""

Words = NDArray[np.uint64]
Numbers = NDArray[np.intp]


class Near(NamedTuple):
    """Versions near by code, as arrays of n: tails of postings, distances in both lanes, numbers of shared keys.

    The distance in a lane that did not find a version is ``NOT_FOUND``.
    """

    tails: Words
    simhash: NDArray[np.uint8]
    minhash: NDArray[np.uint8]
    keys: Numbers

    def take(self, chosen: NDArray[np.bool_] | Numbers) -> "Near":
        """Return the chosen versions, by a mask or by indexes."""
        return Near(self.tails[chosen], self.simhash[chosen], self.minhash[chosen], self.keys[chosen])


NOTHING: Final = Near(
    np.zeros((0, TAIL_WORDS), np.uint64), np.zeros(0, np.uint8), np.zeros(0, np.uint8), np.zeros(0, np.intp)
)


def distinct(near: Near) -> Near:
    """Merge repeats to the nearest in each lane: a version that shares several keys is found under each of them."""
    if len(near.tails) <= 1:
        return near
    # Both words are parts of digests. Should two versions have the same mixed word, all their words are compared.
    mixed = near.tails[:, 0] * WORD_SPREAD ^ near.tails[:, 2]
    order = np.argsort(mixed)
    mixed, tails = mixed[order], near.tails[order]
    repeats = mixed[1:] == mixed[:-1]
    if (repeats & ~alike(tails[1:], tails[:-1].T, REFERENCE)).any():
        order = np.lexsort(near.tails[:, _ARRIVAL[::-1]].T)
        order = order[np.lexsort(near.tails[order][:, REFERENCE].T)]
        tails = near.tails[order]
        repeats = alike(tails[1:], tails[:-1].T, REFERENCE)
    starts = np.concatenate(([0], (~repeats).nonzero()[0] + 1))
    if len(starts) == len(tails):
        return near
    return Near(
        tails[starts],
        np.minimum.reduceat(near.simhash[order], starts),
        np.minimum.reduceat(near.minhash[order], starts),
        np.add.reduceat(near.keys[order], starts),
    )


def alike(tails: Words, words: Words, columns: Sequence[int]) -> NDArray[np.bool_]:
    """Return a mask of the tails that have the given words in these columns; a word may be an array, one per tail."""
    alike: NDArray[np.bool_] = tails[:, columns[0]] == words[columns[0]]
    for column in columns[1:]:
        alike &= tails[:, column] == words[column]
    return alike


def last_of_ids(record: Record, own: Words, tails: Words) -> Numbers:
    """Return for each version the index of the last version of its id that arrived before the article.

    A version that arrived later has its own index. Of an id's earlier versions only the last can be in force.
    """
    last = np.arange(len(tails))
    owners = np.sort(tails[:, 0])
    if not (owners[1:] == owners[:-1]).any():
        return last
    before = _arrived_before(tails, (record.time_ms, record.sequence, *own.tolist())).nonzero()[0]
    order = before[np.lexsort(tails[before][:, (3, 2, SEQUENCE, TIME, 1, 0)].T)]
    is_last = np.append(~alike(tails[order[1:]], tails[order[:-1]].T, OWNER), np.ones(min(len(order), 1), np.bool_))
    last[order] = order[is_last][np.cumsum(is_last) - is_last]
    return last


def _arrived_before(tails: Words, arrival: Sequence[int]) -> NDArray[np.bool_]:
    """Return a mask of the tails that arrived earlier than this; compared as ``Arrival`` compares."""
    before = np.zeros(len(tails), np.bool_)
    tied = np.ones(len(tails), np.bool_)
    for column, value in zip(_ARRIVAL, arrival, strict=True):
        words = tails[:, column]
        before |= tied & (words < np.uint64(value))
        tied &= words == np.uint64(value)
    return before
