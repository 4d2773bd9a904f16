"""The smallest shingles of texts, and sets of known ones, by which a known text is found within a longer article.

The smallest distinct hashes of a text's shingles are a uniform sample of them that depends on the text alone: a
*bottom-k sketch* (Broder, "On the Resemblance and Containment of Documents", SEQUENCES 1997; Cohen, Kaplan,
"Summarizing Data Using Bottom-k Sketches", PODC 2007). The share of the sample that an article has among all of its own
shingles estimates how much of the text stands in the article, however long the article is. With k hashes and a share p
the standard error is about √(p (1 − p) / k): 0.10 for a half and 24 hashes.

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
"""Hashes kept of a known text."""
KNOWN_SHINGLES_MAX: Final = 4_096
"""Known shingles reported of an article. An article with more is cut: its smallest hashes stay."""

_HELD: Final = np.dtype("<u8")


class KnownShingles:
    """An immutable set of shingle hashes in one or more parts, each uint64[n] in any order.

    Threads may share it, and it can be pickled. Duplicates count once. Parts from ``held_hashes`` are kept, others
    are copied. Raises ``TypeError`` for an array of other than unsigned integers.
    """

    __slots__ = ("_compiled", "_lock", "_parts")

    def __init__(self, *parts: npt.NDArray[np.uint64]) -> None:
        self._parts = tuple(held_hashes(part) for part in parts)
        self._compiled: object = None
        self._lock = Lock()

    @override
    def __reduce__(self) -> tuple[type["KnownShingles"], tuple[npt.NDArray[np.uint64]]]:
        """Pickle the hashes alone; the compiled engine of another process builds its own form of them."""
        return KnownShingles, (self.hashes(),)

    def hashes(self) -> npt.NDArray[np.uint64]:
        """Return all hashes, ascending and distinct."""
        return _distinct(np.sort(np.concatenate((np.zeros(0, np.uint64), *self._parts))))

    def among(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Return for each hash whether it is in the set."""
        found = np.zeros(len(hashes), dtype=np.bool_)
        for ascending in self._parts:
            if len(ascending):
                places = np.searchsorted(ascending, hashes)
                found |= ascending[np.minimum(places, len(ascending) - 1)] == hashes
        return found

    def compiled(self, build: Callable[[list[bytes]], object]) -> object:
        """Return the set as the compiled engine reads it.

        The first call has ``build`` make it from the parts: numbers of 8 bytes, little-endian and ascending.
        """
        with self._lock:
            if self._compiled is None:
                self._compiled = build([_bytes_under(part) or b"" for part in self._parts])
            return self._compiled


class SmallestShingles:
    """Collects the smallest distinct hashes of each text of a batch, one chunk of hashes after the other.

    It keeps at most ``count_max`` of a text. With ``known`` only hashes in that set count.
    """

    def __init__(self, count_max: int, known: KnownShingles | None = None) -> None:
        self._count_max = count_max
        self._known = known
        self._packed: list[bytes] = []
        # Of the pieces of a long text so far.
        self._rows: list[npt.NDArray[np.int64]] = []
        self._hashes: list[npt.NDArray[np.uint64]] = []

    def add(self, chunk: HashedChunk) -> None:
        """Take the next chunk; they come in order."""
        positions, hashes = chunk.positions, chunk.hashes
        if self._known is not None:
            is_known = self._known.among(hashes)
            positions, hashes = positions[is_known], hashes[is_known]
        self._rows.append(chunk.characters.rows[positions])
        self._hashes.append(hashes)
        if chunk.is_last:
            texts = chunk.texts.stop - chunk.texts.start
            self._packed += _smallest(np.concatenate(self._rows), np.concatenate(self._hashes), texts, self._count_max)
            self._rows, self._hashes = [], []

    def packed(self) -> tuple[bytes, ...]:
        """Return the hashes of each text, once all chunks have been added."""
        return tuple(self._packed)


def smallest_shingles(
    texts: Sequence[str], languages: Sequence[str] | None = None, shingling: Shingling = WORDS
) -> tuple[bytes, ...]:
    """Return the ``SHINGLES_KEPT`` smallest hashes of each normalised text, packed; b"" for one without a shingle.

    ``languages`` are those that the texts declare (BCP 47, "" for none); None if no text declares one.
    """
    smallest = SmallestShingles(SHINGLES_KEPT)
    for chunk in hashed_chunks(texts, languages, shingling):
        smallest.add(chunk)
    return smallest.packed()


def held_hashes(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return hashes ascending, in memory that the compiled engine can read, too; the array itself if it is that.

    Raises ``TypeError`` for an array of other than unsigned integers.
    """
    if not (hashes[1:] >= hashes[:-1]).all():
        hashes = np.sort(hashes)
    if _bytes_under(hashes) is not None:
        return hashes
    return np.frombuffer(hashes.astype(_HELD, casting="safe", copy=False).tobytes(), _HELD)


def _bytes_under(hashes: npt.NDArray[np.uint64]) -> bytes | None:
    """Return the bytes that hold these hashes and no others; None if something else does."""
    held: object = hashes.base
    return held if isinstance(held, bytes) and hashes.dtype == _HELD and len(held) == hashes.nbytes else None


def unpacked_shingles(packed: bytes) -> npt.NDArray[np.uint64]:
    """Return packed hashes as numbers, uint64[n], ascending."""
    return np.frombuffer(packed, dtype=">u8").astype(np.uint64)


def _smallest(rows: npt.NDArray[np.int64], hashes: npt.NDArray[np.uint64], texts: int, count_max: int) -> list[bytes]:
    """Pack the smallest distinct hashes of each of so many texts; ``rows`` says which text each hash is of."""
    order = np.lexsort((hashes, rows))
    rows, hashes = rows[order], hashes[order]
    cuts = np.searchsorted(rows, np.arange(texts + 1)).tolist()
    return [_distinct(hashes[start:stop])[:count_max].astype(">u8").tobytes() for start, stop in pairwise(cuts)]


def _distinct(ascending: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    # Comparing neighbours takes less than np.unique, which hashes.
    is_first = np.ones(len(ascending), dtype=np.bool_)
    is_first[1:] = ascending[1:] != ascending[:-1]
    return ascending[is_first]
