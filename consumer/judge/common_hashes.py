"""Counts how many recent articles have an anchor or shingle, because common hashes do not tell texts apart.

Licences, navigation and signatures occur in thousands of texts. A count-min sketch (Cormode, Muthukrishnan, "An
Improved Data Stream Summary", 2005) counts in fixed memory; its counts are never too low and rarely too high. There are
two sketches. When the newer one has counted ``ARTICLES``, the older one is dropped and an empty one takes over, so that
they never fill up.
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
"""A hash that occurs in at least this many recent articles is common."""
ARTICLES: Final = 16_384
"""Articles counted by one sketch. The two sketches cover the latest one to two times as many articles."""
_ROWS: Final = 4
COLUMN_BITS: Final = 20
_COUNTS: Final = np.uint16
"""Wide enough for a hash that every article has."""
_SEEDS: Final = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], np.uint64)
_ANCHOR: Final = np.uint64(0xA24BAED4963EE407)
"""Keeps anchors apart from shingles with the same number."""

Uint64 = npt.NDArray[np.uint64]


class CommonHashes:
    """Counts of the hashes in one consumer's recent articles, by default in 16 MiB. Thread-safe.

    Each of the two sketches has four rows of ``2 ** column_bits`` counts.
    """

    def __init__(self, articles: int = ARTICLES, column_bits: int = COLUMN_BITS) -> None:
        self._articles_max = articles
        self._column_bits = column_bits
        self._articles = 0
        self._current, self._previous = self._no_counts(), self._no_counts()
        self._lock = Lock()

    def note(self, records: Sequence[Record]) -> None:
        """Count the anchors and samples of these records, each hash once per record."""
        columns = self._columns(np.concatenate((anchor_hashes(records), sample_hashes(records))))
        with self._lock:
            for counts, places in zip(self._current, columns, strict=True):
                np.add.at(counts, places, _COUNTS(1))
            self._articles += len(records)
            if self._articles >= self._articles_max:
                self._current, self._previous, self._articles = self._no_counts(), self._current, 0

    def are_common(self, hashes: Uint64) -> npt.NDArray[np.bool_]:
        """Return whether each hash is common: bool[n]."""
        counts = np.full(len(hashes), np.iinfo(_COUNTS).max, _COUNTS)
        with self._lock:
            for current, previous, places in zip(self._current, self._previous, self._columns(hashes), strict=True):
                np.minimum(counts, current[places] + previous[places], out=counts)
        common: npt.NDArray[np.bool_] = counts >= COMMON_FROM
        return common

    def _no_counts(self) -> npt.NDArray[np.uint16]:
        return np.zeros((_ROWS, 1 << self._column_bits), _COUNTS)

    def _columns(self, hashes: Uint64) -> npt.NDArray[np.int64]:
        """Return the column of each hash in each row, int64[rows, n]."""
        mixed = mix_64(hashes ^ _SEEDS[:, np.newaxis])
        return (mixed >> np.uint64(64 - self._column_bits)).astype(np.int64)


def anchor_hashes(records: Sequence[Record]) -> Uint64:
    """Return the anchors of these records in the form that ``CommonHashes`` counts, in order."""
    return unpacked_anchors(b"".join(record.anchors or b"" for record in records)) ^ _ANCHOR


def sample_hashes(records: Sequence[Record]) -> Uint64:
    """Return the samples of these records in the form that ``CommonHashes`` counts, in order."""
    return unpacked_sample(b"".join(record.sample or b"" for record in records)).astype(np.uint64)
