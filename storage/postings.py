"""Postings: how a version is found by its keys.

A posting is 56 bytes where fingerprints have 64 bits, 64 where they have 128; the same in every store::

    | code | reference (id hash, digest) | time_ms | sequence |
    | 8    | 32                          | 8       | 8        |
    | 16   | 32                          | 8       | 8        |

*code* is what candidates are told apart by without reading their records: the fingerprint in lane 0, the one-bit minima
in lane 1, with zeros before them where fingerprints are wider. *time_ms* and *sequence* are the arrival, unsigned: the
window is checked from them, and which of an id's versions can be in force. All numbers are big-endian, so that the
postings of a row sort by code, then by reference. The first byte of a key is ``lane << 4 | number``.

All postings of a store have one width, that of the first that was added.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.errors import StoreRefused
from storage.records import REFERENCE_BYTES, Record

_LANE_SHIFT: Final = 4
_WORD_BYTES: Final = 8
_BYTE_BITS: Final = 8
_ARRIVAL: Final = struct.Struct(">QQ")
_TAIL: Final = struct.Struct(f">{REFERENCE_BYTES}sQQ")

TAIL_WORDS: Final = _TAIL.size // _WORD_BYTES
"""Words of a posting behind its code: four of the reference, then the time and the sequence of the arrival."""

PostingArray = NDArray[Any]
"""A one-dimensional array of a layout's dtype."""


class Near(NamedTuple):
    """Postings near a code: their words behind the code (uint64[n, TAIL_WORDS]), and their distances in bits."""

    tails: NDArray[np.uint64]
    distances: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class PostingLayout:
    """How a posting lies in its bytes, for codes of 8 or of 16 bytes.

    ``dtype`` has the fields code, reference, time_ms and sequence; a code of 16 bytes is two words, the most
    significant first.
    """

    code_bytes: int
    posting_bytes: int = field(init=False, repr=False, compare=False)
    dtype: "np.dtype[np.void]" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make the dtype; another width than these two cannot be read as words that are aligned."""
        if self.code_bytes not in (_WORD_BYTES, 2 * _WORD_BYTES):
            raise ValueError(f"a posting's code has 8 or 16 bytes, not {self.code_bytes}")
        words = self.code_bytes // _WORD_BYTES
        code: Any = (">u8", words) if words > 1 else ">u8"
        fields = [("code", code), ("reference", f"V{REFERENCE_BYTES}"), ("time_ms", ">u8"), ("sequence", ">u8")]
        object.__setattr__(self, "posting_bytes", self.code_bytes + _TAIL.size)
        object.__setattr__(self, "dtype", np.dtype(fields))

    def distances(self, postings: bytes, code: bytes) -> NDArray[np.uint8]:
        """In how many bits the code of each of these postings differs from this one."""
        # Bits are counted alike in whichever order the machine has its bytes.
        every = self.posting_bytes // _WORD_BYTES
        theirs = np.frombuffer(postings, np.uint64)
        ours = np.frombuffer(self.widened(code), np.uint64)
        distances: NDArray[np.uint8] = np.bitwise_count(theirs[::every] ^ ours[0])
        for word in range(1, len(ours)):
            distances += np.bitwise_count(theirs[word::every] ^ ours[word])
        return distances

    def near(self, postings: bytes, code: bytes, distance_max: int) -> "Near":
        """The postings within so many bits of this code, in the order in which they lie; none becomes an object."""
        distances = self.distances(postings, code)
        hits = (distances <= distance_max).nonzero()[0]
        words = np.frombuffer(postings, ">u8").reshape(-1, self.posting_bytes // _WORD_BYTES)
        return Near(words[hits, -TAIL_WORDS:].astype(np.uint64), distances[hits])

    def widened(self, code: bytes) -> bytes:
        """A code with zeros before it, as wide as this layout has them."""
        return code.rjust(self.code_bytes, b"\0")


POSTING_LAYOUTS: Final = {layout.code_bytes: layout for layout in (PostingLayout(8), PostingLayout(16))}
"""The layouts there are, by the width of their codes in bytes."""
POSTING: Final = POSTING_LAYOUTS[8].dtype
"""The dtype of postings of fingerprints of 64 bits."""


CUT_ROW_POSTINGS_MAX: Final = 1_024
"""How much is read of a row that is wider than the store's cap, of which nothing can be promised anyway."""


class Row(NamedTuple):
    """What was read under one key; ``truncated``: the row is wider than the store's cap, and most of it was not read.

    ``packed`` are the postings one after the other, so that the rows of a look-up are joined without a look at them.
    """

    packed: bytes
    truncated: bool
    layout: PostingLayout = POSTING_LAYOUTS[8]

    @property
    def postings(self) -> PostingArray:
        """The postings as an array, which is not a copy."""
        return np.frombuffer(self.packed, self.layout.dtype)


class KeyedCode(NamedTuple):
    """A code under a key: where in a row the postings with just this code lie. The code is as wide as the row's."""

    key: bytes
    code: bytes


def code_of(record: Record, lane: int) -> bytes:
    """The code of a record's postings in this lane."""
    return layout_of(record).widened(record.one_bits) if lane else record.fingerprint


def cut_of(row_postings_max: int) -> int:
    """How many postings are read of a row that has more than so many: those of the lowest codes."""
    return min(row_postings_max, CUT_ROW_POSTINGS_MAX)


def lane_of(key: bytes) -> int:
    """The lane that a posting key belongs to."""
    return key[0] >> _LANE_SHIFT


def layout_of(record: Record) -> PostingLayout:
    """The layout of the postings of this record."""
    return POSTING_LAYOUTS[len(record.fingerprint)]


def postings_of(record: Record) -> list[tuple[bytes, bytes]]:
    """Every (key, posting) under which a version is to be found; none where it has no keys."""
    tail = record.reference + _ARRIVAL.pack(record.time_ms, record.sequence)
    codes = [code_of(record, lane) for lane in (0, 1)]
    return [(key, codes[lane_of(key)] + tail) for key in record.keys]


def common_layout(records: Iterable[Record], stored: PostingLayout | None, store: str) -> PostingLayout | None:
    """The layout of the postings of all of these and of those ``stored``; None where there are neither.

    Raises ``StoreRefused`` where there is not one. ``store`` says in the sentence which store it is.
    """
    for layout in _layouts(records):
        if stored is not None and layout != stored:
            raise StoreRefused(
                f"{store} holds postings of fingerprints of {stored.code_bytes * _BYTE_BITS} bits, and one of "
                f"{layout.code_bytes * _BYTE_BITS} bits was to be added: another scheme needs a store of its own."
            )
        stored = layout
    return stored


def _layouts(records: Iterable[Record]) -> Iterator[PostingLayout]:
    return (layout_of(record) for record in records if record.keys)
