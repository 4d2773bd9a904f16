"""Counts in how many recent articles anchors and shingles were: what is in many of them tells nobody apart.

Licences, navigation and signatures stand in thousands of texts. Counts are those of a count-min sketch (Cormode,
Muthukrishnan, "An Improved Data Stream Summary", 2005): never too low, and rarely too high, in fixed memory. There are
two, of which the older one is dropped and begun again after some tens of thousands of articles, so that a sketch that
runs for months does not fill up.
"""

from collections.abc import Sequence
from threading import Lock
from typing import Final

import numpy as np
import numpy.typing as npt

from consumer.fingerprint import unpacked_anchors, unpacked_sample
from consumer.fingerprint.hashing import mix_64
from storage.records import Record

COMMON_FROM: Final = 13
"""In so many of the recent articles a hash is common."""
ARTICLES: Final = 16_384
"""Articles in a sketch: counted are the last of these, up to twice as many."""
_ROWS: Final = 4
COLUMN_BITS: Final = 20
_COUNTS: Final = np.uint16
"""Wide enough for an article's hashes to be counted in every one of them."""
_SEEDS: Final = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], np.uint64)
_ANCHOR: Final = np.uint64(0xA24BAED4963EE407)
"""Keeps anchors apart from shingles with the same number."""

Uint64 = npt.NDArray[np.uint64]


class CommonHashes:
    """Counts of one consumer, by default in 16 MiB. Thread-safe.

    There are ``2 ** column_bits`` counts in each of the four rows of the two sketches.
    """

    def __init__(self, articles: int = ARTICLES, column_bits: int = COLUMN_BITS) -> None:
        self._articles_max = articles
        self._column_bits = column_bits
        self._articles = 0
        self._now, self._before = self._no_counts(), self._no_counts()
        self._lock = Lock()

    def note(self, records: Sequence[Record]) -> None:
        """Count the anchors and the samples of these records, each hash once for each record."""
        columns = self._columns(np.concatenate((anchor_hashes(records), sample_hashes(records))))
        with self._lock:
            for counts, places in zip(self._now, columns, strict=True):
                np.add.at(counts, places, _COUNTS(1))
            self._articles += len(records)
            if self._articles >= self._articles_max:
                self._now, self._before, self._articles = self._no_counts(), self._now, 0

    def are_common(self, hashes: Uint64) -> npt.NDArray[np.bool_]:
        """Return which of these were in many recent articles: bool[n]."""
        least = np.full(len(hashes), np.iinfo(_COUNTS).max, _COUNTS)
        with self._lock:
            for now, before, places in zip(self._now, self._before, self._columns(hashes), strict=True):
                np.minimum(least, now[places] + before[places], out=least)
        common: npt.NDArray[np.bool_] = least >= COMMON_FROM
        return common

    def _no_counts(self) -> npt.NDArray[np.uint16]:
        return np.zeros((_ROWS, 1 << self._column_bits), _COUNTS)

    def _columns(self, hashes: Uint64) -> npt.NDArray[np.int64]:
        """Return the column of each hash in each row, int64[rows, n]."""
        mixed = mix_64(hashes ^ _SEEDS[:, np.newaxis])
        return (mixed >> np.uint64(64 - self._column_bits)).astype(np.int64)


def anchor_hashes(records: Sequence[Record]) -> Uint64:
    """Return what is counted of the anchors of these records, one after the other."""
    return unpacked_anchors(b"".join(record.anchors or b"" for record in records)) ^ _ANCHOR


def sample_hashes(records: Sequence[Record]) -> Uint64:
    """Return what is counted of the samples of these records, one after the other."""
    return unpacked_sample(b"".join(record.sample or b"" for record in records)).astype(np.uint64)
