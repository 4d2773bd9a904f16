"""The postings that are near an article by code, as arrays: merged, and told apart by owner and arrival."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.postings import TAIL_WORDS, WORD_SPREAD
from storage.records import REFERENCE_BYTES, Record

NOT_FOUND: Final = 255
"""Stands for the distance in a lane that did not find a version; greater than every distance that a lane finds."""
OWNER: Final = (0, 1)
DIGEST: Final = (2, 3)
REFERENCE: Final = (0, 1, 2, 3)
TIME: Final = 4
SEQUENCE: Final = 5
_TIME_MAX: Final = (1 << 64) - 1
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
    return near if len(starts) == len(tails) else merge_repeats(near.take(order), starts)


def merge_repeats(near: Near, starts: Numbers) -> Near:
    """Merge versions that follow each other to the nearest in each lane; ``starts`` are the first of each version."""
    return Near(
        near.tails[starts],
        np.minimum.reduceat(near.simhash, starts),
        np.minimum.reduceat(near.minhash, starts),
        np.add.reduceat(near.keys, starts),
    )


def alike(tails: Words, words: Words, columns: Sequence[int]) -> NDArray[np.bool_]:
    """Return a mask of the tails that have the given words in these columns; a word may be an array, one per tail."""
    alike: NDArray[np.bool_] = tails[:, columns[0]] == words[columns[0]]
    for column in columns[1:]:
        alike &= tails[:, column] == words[column]
    return alike


def rank(own: Words, near: Near, *, by_sketch: bool) -> Words:
    """Return the rank of each version, the nearest with the lowest.

    Where the sketch decides, lane 1 comes first, which estimates it; else the fingerprint. Versions with the same title
    and text, known by the digest in their reference, come before all others. A word of ``own`` may be an array, one per
    version.
    """
    lanes = (near.minhash, near.simhash) if by_sketch else (near.simhash, near.minhash)
    rank = (~alike(near.tails, own, DIGEST)).astype(np.uint64)
    for byte in (*lanes, NOT_FOUND - np.minimum(near.keys, NOT_FOUND)):
        rank = rank << np.uint64(8) | byte.astype(np.uint64)
    return rank


def window_of(record: Record, window_ms: int) -> tuple[int, int]:
    """Return the first and the last time in the window around an article, in milliseconds."""
    return max(record.time_ms - window_ms, 0), min(record.time_ms + window_ms, _TIME_MAX)


def references_of(tails: Words) -> list[bytes]:
    """Return the references of versions as bytes."""
    packed = tails[:, REFERENCE].astype(">u8").tobytes()
    return [packed[start : start + REFERENCE_BYTES] for start in range(0, len(packed), REFERENCE_BYTES)]


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
