"""The smallest shingles of texts, and sets of known shingles, which find a known text within a longer article.

The smallest distinct hashes of a text's shingles are a uniform sample of all, which depends on the text alone: a
*bottom-k sketch* (Broder, "On the Resemblance and Containment of Documents", SEQUENCES 1997; Cohen, Kaplan,
"Summarizing Data Using Bottom-k Sketches", PODC 2007). The share of the sample that occurs among all shingles of an
article estimates the share of the text that the article contains, however long the article is. With k hashes and a
share p the standard error is about √(p (1 − p) / k): 0.10 for a share of one half and 24 hashes.

Hashes are packed as 8 bytes each, big-endian and ascending.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from threading import Lock
from typing import Final

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from consumer.fingerprint.shingles import WORDS, HashedChunk, Shingling, hashed_chunks

SHINGLES_KEPT: Final = 24
"""Limit on the hashes kept for a known text."""
KNOWN_SHINGLES_MAX: Final = 4_096
"""Limit on the known shingles reported for an article; the smallest hashes are reported."""

_HASH: Final = np.dtype("<u8")


class KnownShingles:
    """An immutable set of shingle hashes in one or more parts, each uint64[n] in any order.

    Threads may share it, and it can be pickled. Duplicates count once. Parts from ``held_hashes`` are used without a
    copy. Raises ``TypeError`` unless all arrays are of unsigned integers.
    """

    __slots__ = ("_compiled", "_lock", "_parts")

    def __init__(self, *parts: npt.NDArray[np.uint64]) -> None:
        self._parts = tuple(held_hashes(part) for part in parts)
        self._compiled: object = None
        self._lock = Lock()

    @override
    def __reduce__(self) -> tuple[type["KnownShingles"], tuple[npt.NDArray[np.uint64]]]:
        """Pickle only the hashes; the compiled engine of another process builds its own form."""
        return KnownShingles, (self.hashes(),)

    def hashes(self) -> npt.NDArray[np.uint64]:
        """Return all hashes, ascending and distinct."""
        return _distinct_hashes(np.sort(np.concatenate((np.zeros(0, np.uint64), *self._parts))))

    def contains(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Return whether each hash is in the set."""
        is_known = np.zeros(len(hashes), dtype=np.bool_)
        for ascending in self._parts:
            if len(ascending):
                places = np.searchsorted(ascending, hashes)
                is_known |= ascending[np.minimum(places, len(ascending) - 1)] == hashes
        return is_known

    def compiled(self, build: Callable[[list[bytes]], object]) -> object:
        """Return the set in the form of the compiled engine.

        The first call builds it from the parts: numbers of 8 bytes, little-endian and ascending.
        """
        with self._lock:
            if self._compiled is None:
                self._compiled = build([_bytes_under(part) or b"" for part in self._parts])
            return self._compiled


class SmallestShingles:
    """A collector of the smallest distinct hashes of each text of a batch, chunk by chunk.

    It keeps at most ``count_max`` per text. With ``known``, only hashes in that set count.
    """

    def __init__(self, count_max: int, known: KnownShingles | None = None) -> None:
        self._count_max = count_max
        self._known = known
        self._packed: list[bytes] = []
        # The rows and hashes of a long text, until its last piece has been added.
        self._rows: list[npt.NDArray[np.int64]] = []
        self._hashes: list[npt.NDArray[np.uint64]] = []

    def add(self, chunk: HashedChunk) -> None:
        """Add a chunk. Chunks must be added in order."""
        positions, hashes = chunk.positions, chunk.hashes
        if self._known is not None:
            is_known = self._known.contains(hashes)
            positions, hashes = positions[is_known], hashes[is_known]
        self._rows.append(chunk.characters.rows[positions])
        self._hashes.append(hashes)
        if chunk.is_last:
            texts = chunk.texts.stop - chunk.texts.start
            self._packed += _smallest_hashes(
                np.concatenate(self._rows), np.concatenate(self._hashes), texts, self._count_max
            )
            self._rows, self._hashes = [], []

    def packed(self) -> tuple[bytes, ...]:
        """Return the packed hashes of each text, once all chunks have been added."""
        return tuple(self._packed)


def smallest_shingles(
    texts: Sequence[str], languages: Sequence[str] | None = None, shingling: Shingling = WORDS
) -> tuple[bytes, ...]:
    """Return the ``SHINGLES_KEPT`` smallest hashes of each normalised text, packed; b"" without a shingle.

    ``languages`` has the language that each text declares (BCP 47, or "" for none); None if no text declares one.
    """
    smallest = SmallestShingles(SHINGLES_KEPT)
    for chunk in hashed_chunks(texts, languages, shingling):
        smallest.add(chunk)
    return smallest.packed()


def held_hashes(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return hashes in ascending order, in memory that the compiled engine can read too; copies only if needed.

    Raises ``TypeError`` unless the array is of unsigned integers.
    """
    if not (hashes[1:] >= hashes[:-1]).all():
        hashes = np.sort(hashes)
    if _bytes_under(hashes) is not None:
        return hashes
    return np.frombuffer(hashes.astype(_HASH, casting="safe", copy=False).tobytes(), _HASH)


def _bytes_under(hashes: npt.NDArray[np.uint64]) -> bytes | None:
    """Return the bytes object that contains exactly these hashes, or None if there is none."""
    base: object = hashes.base
    return base if isinstance(base, bytes) and hashes.dtype == _HASH and len(base) == hashes.nbytes else None


def unpacked_shingles(packed: bytes) -> npt.NDArray[np.uint64]:
    """Return packed hashes as numbers, uint64[n], ascending."""
    return np.frombuffer(packed, dtype=">u8").astype(np.uint64)


def _smallest_hashes(
    rows: npt.NDArray[np.int64], hashes: npt.NDArray[np.uint64], texts: int, count_max: int
) -> list[bytes]:
    """Return the smallest distinct hashes of each text, packed; ``rows`` has the number of the text of each hash."""
    order = np.lexsort((hashes, rows))
    rows, hashes = rows[order], hashes[order]
    cuts = np.searchsorted(rows, np.arange(texts + 1)).tolist()
    return [_distinct_hashes(hashes[start:stop])[:count_max].astype(">u8").tobytes() for start, stop in pairwise(cuts)]


def _distinct_hashes(ascending: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    # Comparing neighbours is faster than np.unique, which hashes.
    is_first = np.ones(len(ascending), dtype=np.bool_)
    is_first[1:] = ascending[1:] != ascending[:-1]
    return ascending[is_first]
