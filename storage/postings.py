"""Postings: how a version is found by its keys.

A posting has 56 bytes where fingerprints have 64 bits, and 64 bytes where they have 128; every store has the same::

    | code | reference (id hash, digest) | time_ms | sequence |
    | 8    | 32                          | 8       | 8        |
    | 16   | 32                          | 8       | 8        |

*code* tells candidates apart before their records are read: it is the fingerprint in lanes 0 and 2, and the one-bit
minima in lane 1, padded with leading zeros where fingerprints are wider. *time_ms* and *sequence* are the arrival,
unsigned; the window, and which of an id's versions can be in force, are checked from them. All numbers are big-endian,
so that the postings of a row sort by code, then by reference. The first byte of a key is ``lane << 4 | number``. Lane 2
has the anchors of parts: its keys are five bytes of an anchor, whatever the block plan, since with the 16 bits of a
short key every row would be full of strangers.

All postings of a store have the width of the first one that was added.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from storage.errors import StoreRefused
from storage.records import ANCHOR_BYTES, REFERENCE_BYTES, Record

LANE_PARTS: Final = 2
_LANE_SHIFT: Final = 4
_PART_PREFIX: Final = bytes([LANE_PARTS << _LANE_SHIFT])
_PART_KEY_BYTES: Final = 5
_WORD_BYTES: Final = 8
_BYTE_BITS: Final = 8
_ARRIVAL: Final = struct.Struct(">QQ")
_TAIL: Final = struct.Struct(f">{REFERENCE_BYTES}sQQ")

TAIL_WORDS: Final = _TAIL.size // _WORD_BYTES
"""The words of a posting after its code: four of the reference, then the time and the sequence of the arrival."""

PostingArray = NDArray[Any]
"""A one-dimensional array of a layout's dtype."""


WORD_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
"""An odd number whose multiples spread over all 64 bits. It combines two words of a posting into one.

Equal postings have equal words, and others hardly ever: so repeats are found by sorting one word for each posting.
"""


class WithinDistance(NamedTuple):
    """Postings within a distance of a code: their places, their words after the code, and their distances.

    The words are uint64[n, TAIL_WORDS].
    """

    places: NDArray[np.intp]
    tails: NDArray[np.uint64]
    distances: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class PostingLayout:
    """How the bytes of a posting are laid out, for codes of 8 or 16 bytes.

    ``dtype`` has the fields code, reference, time_ms and sequence; a code of 16 bytes is two words, the most
    significant first.
    """

    code_bytes: int
    posting_bytes: int = field(init=False, repr=False, compare=False)
    dtype: "np.dtype[np.void]" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Build the dtype. Raises ``ValueError`` for other widths, which cannot be read as aligned words."""
        if self.code_bytes not in (_WORD_BYTES, 2 * _WORD_BYTES):
            raise ValueError(f"a posting's code has 8 or 16 bytes, not {self.code_bytes}")
        words = self.code_bytes // _WORD_BYTES
        code: Any = (">u8", words) if words > 1 else ">u8"
        fields = [("code", code), ("reference", f"V{REFERENCE_BYTES}"), ("time_ms", ">u8"), ("sequence", ">u8")]
        object.__setattr__(self, "posting_bytes", self.code_bytes + _TAIL.size)
        object.__setattr__(self, "dtype", np.dtype(fields))

    def distances(self, postings: bytes, codes: bytes) -> NDArray[np.uint8]:
        """Return in how many bits the code of each posting differs from these: uint8[n].

        ``codes`` is one code for all postings, or one for each, one after the other.
        """
        # The count of bits does not depend on the machine's byte order.
        every = self.posting_bytes // _WORD_BYTES
        theirs = np.frombuffer(postings, np.uint64)
        ours = np.frombuffer(self.widened(codes), np.uint64).reshape(-1, self.code_bytes // _WORD_BYTES)
        distances: NDArray[np.uint8] = np.bitwise_count(theirs[::every] ^ ours[:, 0])
        for word in range(1, ours.shape[1]):
            distances += np.bitwise_count(theirs[word::every] ^ ours[:, word])
        return distances

    def within(self, postings: bytes, codes: bytes, distance_max: int) -> WithinDistance:
        """Return the postings within ``distance_max`` bits, in their order, without an object for each.

        ``codes`` are those that ``distances`` takes.
        """
        distances = self.distances(postings, codes)
        chosen = (distances <= distance_max).nonzero()[0]
        words = np.frombuffer(postings, ">u8").reshape(-1, self.posting_bytes // _WORD_BYTES)
        return WithinDistance(chosen, words[chosen, -TAIL_WORDS:].astype(np.uint64), distances[chosen])

    def with_code(self, postings: bytes, code: bytes) -> bytes:
        """Return those of the postings, which are in order, that have this code."""
        width = self.posting_bytes
        offsets = range(0, len(postings), width)
        start = bisect_left(offsets, code, key=lambda offset: postings[offset : offset + len(code)])
        end = bisect_right(offsets, code, key=lambda offset: postings[offset : offset + len(code)])
        return postings[start * width : end * width]

    def widened(self, code: bytes) -> bytes:
        """Pad a code with leading zeros to the width of this layout."""
        return code.rjust(self.code_bytes, b"\0")


POSTING_LAYOUTS: Final = {layout.code_bytes: layout for layout in (PostingLayout(8), PostingLayout(16))}
"""All layouts, by the width of their codes in bytes."""
DEFAULT_LAYOUT: Final = POSTING_LAYOUTS[8]
"""The layout for fingerprints of 64 bits, also of rows that are read before there is any posting."""
POSTING: Final = DEFAULT_LAYOUT.dtype
"""The dtype of postings of fingerprints of 64 bits."""


TRUNCATED_ROW_POSTINGS_MAX: Final = 1_024
"""How many postings are read of a row wider than the store's cap; nothing is promised for such rows anyway."""


class PostingRow(msgspec.Struct, frozen=True, gc=False):
    """The postings read under one key; ``truncated`` if the row is wider than the store's cap and was not read whole.

    ``packed`` has the postings one after the other, so that the rows of a look-up can be joined as they are.
    """

    packed: bytes
    truncated: bool
    layout: PostingLayout = DEFAULT_LAYOUT

    @property
    def postings(self) -> PostingArray:
        """View the postings as an array, without a copy."""
        return np.frombuffer(self.packed, self.layout.dtype)


def rows_within(rows: Iterator[PostingRow], bytes_max: int | None) -> list[PostingRow]:
    """Take rows until they have more than ``bytes_max`` bytes, all if that is None; at least one, if there is one."""
    taken: list[PostingRow] = []
    size_bytes = 0
    for row in rows:
        taken.append(row)
        size_bytes += len(row.packed)
        if bytes_max is not None and size_bytes > bytes_max:
            break
    return taken


class KeyedCode(NamedTuple):
    """A code under a key, as wide as the codes of the row: names the postings of the row that have just this code."""

    key: bytes
    code: bytes


def code_of(record: Record, lane: int) -> bytes:
    """Return the code of a record's postings in this lane."""
    return layout_of(record).widened(record.one_bits) if lane == 1 else record.fingerprint


def truncated_to(row_postings_max: int) -> int:
    """Return how many postings are read of a row wider than this cap: those with the lowest codes."""
    return min(row_postings_max, TRUNCATED_ROW_POSTINGS_MAX)


def lane_of(key: bytes) -> int:
    """Return the lane of a posting key."""
    return key[0] >> _LANE_SHIFT


def count_before(lane: int, keys: Sequence[bytes]) -> int:
    """Return how many of these keys, which are ordered by lane, precede those of this lane."""
    return bisect_left(keys, bytes([lane << _LANE_SHIFT]))


def layout_of(record: Record) -> PostingLayout:
    """Return the layout of this record's postings."""
    return POSTING_LAYOUTS[len(record.fingerprint)]


def part_keys(record: Record) -> list[bytes]:
    """Return the keys of a record's anchors, in their order; none where parts are not looked for."""
    anchors = record.anchors or b""
    return [_PART_PREFIX + anchors[start : start + _PART_KEY_BYTES] for start in range(0, len(anchors), ANCHOR_BYTES)]


def all_keys(record: Record) -> list[bytes]:
    """Return the keys of all rows in which a record has a posting."""
    return [*record.keys, *part_keys(record)]


def postings_of(record: Record) -> list[tuple[bytes, bytes]]:
    """Return every (key, posting) under which a version is found; none if it has no keys."""
    tail = record.reference + _ARRIVAL.pack(record.time_ms, record.sequence)
    postings = [code_of(record, lane) + tail for lane in (0, 1, LANE_PARTS)]
    return [(key, postings[key[0] >> _LANE_SHIFT]) for key in all_keys(record)]


def common_layout(records: Iterable[Record], stored: PostingLayout | None, store: str) -> PostingLayout | None:
    """Return the one layout of the postings of these records and of those ``stored``; None where there are neither.

    Raises ``StoreRefused`` where the layouts differ; ``store`` names the store in the message.
    """
    for layout in _layouts(records):
        if stored is not None and layout != stored:
            raise StoreRefused(
                f"{store} holds fingerprints of {stored.code_bytes * _BYTE_BITS} bits and cannot take one of "
                f"{layout.code_bytes * _BYTE_BITS} bits. Use a separate store for another scheme."
            )
        stored = layout
    return stored


def _layouts(records: Iterable[Record]) -> Iterator[PostingLayout]:
    return (layout_of(record) for record in records if record.keys or record.anchors)
