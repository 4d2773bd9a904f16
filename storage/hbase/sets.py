"""Posting sets: many postings of a row in one cell, as ``docs/row_keys.md`` draws it.

A set is never edited: its qualifier is new for each that is written. Whoever reads a row joins its sets with its fresh
postings, and returns one that stands in several places once.
"""

import struct
import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import snappy

from storage.postings import POSTING_LAYOUTS, PostingLayout
from storage.records import REFERENCE_BYTES

FAMILY: Final = b"s"
SET_POSTINGS_MAX: Final = 100_000
SET_BYTES_MAX: Final = 4 << 20
"""What one set holds at most, packed: HBase takes cells of up to 10 MB."""

_MAGIC: Final = b"dwps"
_FORMAT: Final = 1
_HEAD: Final = struct.Struct(">4sBBII")
_QUALIFIER: Final = struct.Struct(">QQ8s")
_WORD_BYTES: Final = 8
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
"""Any number that spreads its multiples over all 64 bits."""


class SetName(NamedTuple):
    """What tells a set from every other: the start of its bucket, when it was packed, and 8 random bytes."""

    bucket_ms: int
    packed_ms: int
    random: bytes

    def qualifier(self) -> bytes:
        """As it stands in the column: sets sort by bucket, then by the time of packing."""
        return _QUALIFIER.pack(*self)


class DamagedSetError(ValueError):
    """A cell that is no posting set, or not the one that was written."""


def set_name(qualifier: bytes) -> SetName:
    """The name that a qualifier was made of."""
    if len(qualifier) != _QUALIFIER.size:
        raise DamagedSetError(f"a set's qualifier has {_QUALIFIER.size} bytes, not {len(qualifier)}")
    return SetName(*_QUALIFIER.unpack(qualifier))


def encode_set(postings: bytes, layout: PostingLayout) -> bytes:
    """Pack postings, which lie one after the other in any order; one that is there twice is packed once."""
    ordered = distinct(postings, layout)
    count = len(ordered) // layout.posting_bytes
    if count > SET_POSTINGS_MAX:
        raise ValueError(f"a set holds {SET_POSTINGS_MAX} postings at most, not {count}")
    packed: bytes = snappy.compress(ordered)
    return _HEAD.pack(_MAGIC, _FORMAT, layout.code_bytes, count, zlib.crc32(packed)) + packed


def set_count(value: bytes) -> int:
    """How many postings a set says it holds."""
    return _head(value)[1]


def decode_set(value: bytes) -> tuple[bytes, PostingLayout]:
    """The postings of a set in order, one after the other. Raises ``DamagedSetError``."""
    layout, count, checksum = _head(value)
    packed = value[_HEAD.size :]
    if zlib.crc32(packed) != checksum:
        raise DamagedSetError("the checksum does not fit")
    try:
        postings: bytes = snappy.decompress(packed)
    except Exception as error:
        # The library has no error of its own that all its back ends raise.
        raise DamagedSetError(f"it cannot be unpacked: {error}") from error
    if len(postings) != count * layout.posting_bytes:
        raise DamagedSetError(f"it says {count} postings and has {len(postings)} bytes")
    return postings, layout


def distinct(postings: bytes, layout: PostingLayout) -> bytes:
    """The same postings in order, each once."""
    # numpy has an order for strings of bytes, not for raw bytes; it ignores zeros at the end only where widths differ.
    return np.unique(np.frombuffer(postings, f"S{layout.posting_bytes}")).tobytes()


def joined(rows: Sequence[Sequence[bytes]], layout: PostingLayout) -> list[bytes]:
    """For each row the postings of all its parts, each once, in any order; within a part none is there twice."""
    packed = [b"".join(parts) for parts in rows]
    several = [number for number, parts in enumerate(rows) if sum(map(bool, parts)) > 1]
    if several and _may_repeat([packed[number] for number in several], layout):
        for number in several:
            packed[number] = distinct(packed[number], layout)
    return packed


def _may_repeat(rows: Sequence[bytes], layout: PostingLayout) -> bool:
    """Whether a row may hold a posting twice: nearly always none does, and all rows are looked at together.

    To sort a word of each posting takes a tenth of the time to sort postings. The word is the ends of the reference, so
    that neither the versions of an id nor one text under many ids look like one version.
    """
    every = layout.posting_bytes // _WORD_BYTES
    first, last = layout.code_bytes // _WORD_BYTES, (layout.code_bytes + REFERENCE_BYTES) // _WORD_BYTES - 1
    words = np.frombuffer(b"".join(rows), np.uint64)
    # A near article stands in several rows of a look-up: so the row is in the word, too.
    numbers = np.arange(1, len(rows) + 1, dtype=np.uint64) * _ODD
    told = words[first::every] ^ words[last::every]
    told += np.repeat(numbers, [len(row) // layout.posting_bytes for row in rows])
    told.sort()
    return bool((told[1:] == told[:-1]).any())


def _head(value: bytes) -> tuple[PostingLayout, int, int]:
    if len(value) < _HEAD.size:
        raise DamagedSetError("it is too short")
    magic, set_format, code_bytes, count, checksum = _HEAD.unpack_from(value)
    if magic != _MAGIC or set_format != _FORMAT or code_bytes not in POSTING_LAYOUTS:
        raise DamagedSetError("its head is of another format")
    return POSTING_LAYOUTS[code_bytes], count, checksum
