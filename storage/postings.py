"""Postings: the entries by which versions are found.

A posting has 56 bytes if fingerprints have 64 bits, and 64 bytes if they have 128; it is the same in every store::

    | code | reference (id hash, digest) | time_ms | sequence |
    | 8    | 32                          | 8       | 8        |
    | 16   | 32                          | 8       | 8        |

*code* rules out candidates before their records are read: it is the fingerprint in lanes 0 and 2, and the one-bit
minima in lane 1, padded with leading zeros where fingerprints are wider. *time_ms* and *sequence* are the arrival,
unsigned; they tell whether a version is in the window, and which versions of an id can be in force. All numbers are
big-endian, so that the postings of a row sort by code, then by reference. The first byte of a key is ``lane << 4 |
number``. Lane 2 has the anchors of parts: after the first byte, its keys have five bytes of an anchor, whatever the
block plan, since rows with a key of 16 bits would be full of unrelated texts.

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
_TAIL: Final = struct.Struct(f">{REFERENCE_BYTES}sQQ")

TAIL_WORDS: Final = _TAIL.size // _WORD_BYTES
"""The number of words after the code of a posting: four for the reference, then the arrival's time and sequence."""

PostingArray = NDArray[Any]
"""A one-dimensional array of a layout's dtype."""


WORD_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
"""An odd number whose multiples spread over all 64 bits. It combines two words into one.

Equal postings have equal words, and different ones hardly ever do, so sorting one word per posting finds repeats.
"""


class WithinDistance(NamedTuple):
    """Postings within a distance of a code: their indexes, their words after the code, and their distances.

    ``tails`` is uint64[n, TAIL_WORDS].
    """

    places: NDArray[np.intp]
    tails: NDArray[np.uint64]
    distances: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class PostingLayout:
    """The byte layout of postings with codes of 8 or 16 bytes.

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
        """Return the number of bits in which the code of each posting differs from ``codes``: uint8[n].

        ``codes`` is one code for all postings, or one for each, joined.
        """
        # The count of bits does not depend on the machine's byte order.
        stride = self.posting_bytes // _WORD_BYTES
        words = np.frombuffer(postings, np.uint64)
        code_words = np.frombuffer(self.widen(codes), np.uint64).reshape(-1, self.code_bytes // _WORD_BYTES)
        distances: NDArray[np.uint8] = np.bitwise_count(words[::stride] ^ code_words[:, 0])
        for word in range(1, code_words.shape[1]):
            distances += np.bitwise_count(words[word::stride] ^ code_words[:, word])
        return distances

    def within(self, postings: bytes, codes: bytes, distance_max: int) -> WithinDistance:
        """Return the postings within ``distance_max`` bits, in their order, without an object for each.

        ``codes`` is as for ``distances``.
        """
        distances = self.distances(postings, codes)
        places = (distances <= distance_max).nonzero()[0]
        words = np.frombuffer(postings, ">u8").reshape(-1, self.posting_bytes // _WORD_BYTES)
        return WithinDistance(places, words[places, -TAIL_WORDS:].astype(np.uint64), distances[places])

    def with_code(self, postings: bytes, code: bytes) -> bytes:
        """Return the postings that have this code. ``postings`` must be in order."""
        width = self.posting_bytes
        offsets = range(0, len(postings), width)
        start = bisect_left(offsets, code, key=lambda offset: postings[offset : offset + len(code)])
        end = bisect_right(offsets, code, key=lambda offset: postings[offset : offset + len(code)])
        return postings[start * width : end * width]

    def widen(self, code: bytes) -> bytes:
        """Pad a code with leading zeros to the width of this layout."""
        return code.rjust(self.code_bytes, b"\0")


POSTING_LAYOUTS: Final = {layout.code_bytes: layout for layout in (PostingLayout(8), PostingLayout(16))}
"""All layouts, by the width of their codes in bytes."""
DEFAULT_LAYOUT: Final = POSTING_LAYOUTS[8]
"""The layout for fingerprints of 64 bits, also used for rows of a store that has no postings yet."""
POSTING_DTYPE: Final = DEFAULT_LAYOUT.dtype
"""The dtype of postings of fingerprints of 64 bits."""


TRUNCATED_ROW_POSTINGS_MAX: Final = 1_024
"""The maximum number of postings that are read from a row over the store's cap, which is then ``truncated``."""


class PostingRow(msgspec.Struct, frozen=True, gc=False):
    """The postings under one key; ``truncated`` is True if the row is over the store's cap and was not read whole.

    ``packed`` has the bytes of all postings, joined, so that the rows of a look-up can be joined too.
    """

    packed: bytes
    truncated: bool
    layout: PostingLayout = DEFAULT_LAYOUT

    @property
    def postings(self) -> PostingArray:
        """View the postings as an array, without a copy."""
        return np.frombuffer(self.packed, self.layout.dtype)


def rows_within(rows: Iterator[PostingRow], bytes_max: int | None) -> list[PostingRow]:
    """Take rows until they have more than ``bytes_max`` bytes: at least one, if any; all without a limit."""
    taken: list[PostingRow] = []
    size_bytes = 0
    for row in rows:
        taken.append(row)
        size_bytes += len(row.packed)
        if bytes_max is not None and size_bytes > bytes_max:
            break
    return taken


class KeyedCode(NamedTuple):
    """A request for the postings under a key that have exactly this code. The code is as wide as those of the row."""

    key: bytes
    code: bytes


def code_of(record: Record, lane: int) -> bytes:
    """Return the code of a record's postings in this lane."""
    return layout_of(record).widen(record.one_bits) if lane == 1 else record.fingerprint


def truncated_to(row_postings_max: int) -> int:
    """Return the number of postings to read from a row wider than this cap; those with the lowest codes are read."""
    return min(row_postings_max, TRUNCATED_ROW_POSTINGS_MAX)


def lane_of(key: bytes) -> int:
    """Return the lane of a posting key."""
    return key[0] >> _LANE_SHIFT


def count_before(lane: int, keys: Sequence[bytes]) -> int:
    """Return how many keys precede those of this lane. ``keys`` must be ordered by lane."""
    return bisect_left(keys, bytes([lane << _LANE_SHIFT]))


def layout_of(record: Record) -> PostingLayout:
    """Return the layout of this record's postings."""
    return POSTING_LAYOUTS[len(record.fingerprint)]


def part_keys(record: Record) -> list[bytes]:
    """Return the keys of a record's anchors, in their order; [] if it has none."""
    anchors = record.anchors or b""
    return [_PART_PREFIX + anchors[start : start + _PART_KEY_BYTES] for start in range(0, len(anchors), ANCHOR_BYTES)]


def all_keys(record: Record) -> list[bytes]:
    """Return the keys of all rows in which a record has a posting."""
    return [*record.keys, *part_keys(record)]


def postings_of(record: Record) -> list[tuple[bytes, bytes]]:
    """Return the postings of a version as (key, posting); [] if it has neither keys nor anchors."""
    tail = _TAIL.pack(record.reference, record.time_ms, record.sequence)
    by_fingerprint = record.fingerprint + tail
    by_lane = (by_fingerprint, code_of(record, 1) + tail, by_fingerprint)
    return [(key, by_lane[key[0] >> _LANE_SHIFT]) for key in (all_keys(record) if record.anchors else record.keys)]


def common_layout(records: Iterable[Record], stored: PostingLayout | None, store: str) -> PostingLayout | None:
    """Return the layout that the postings of these records share with ``stored``; None without postings and ``stored``.

    Raises ``StoreRefused`` if the layouts differ; ``store`` names the store in the message.
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
