"""The cells of the table ``postings``, as described in ``docs/operate/row_keys.md``.

A fresh posting has its own cell, whose qualifier is the posting. A posting set is one cell with many postings. Sets are
never edited: each new one has a new qualifier. Readers of a row join its sets with its fresh postings, and return each
posting once even if it is stored in several places.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import snappy

from storage.errors import StoreDamaged
from storage.hbase.connection import CellChange
from storage.hbase.failures import damage_error
from storage.postings import POSTING_LAYOUTS, WORD_SPREAD, PostingLayout
from storage.records import REFERENCE_BYTES

SET_POSTINGS_MAX: Final = 100_000
SET_BYTES_MAX: Final = 4 << 20
"""The limits of a set: its postings, and its compressed bytes. HBase accepts cells of up to 10 MB."""

_MAGIC: Final = b"dwps"
_FORMAT: Final = 1
_HEAD: Final = struct.Struct(">4sBBII")
_QUALIFIER: Final = struct.Struct(">QQ8s")
_WORD_BYTES: Final = 8
_CHECK_BYTES: Final = 4 << 20
"""Up to about this many bytes of rows are checked together for repeated postings."""
FRESH_FAMILY: Final = b"p"
SET_FAMILY: Final = b"s"
FRESH: Final = FRESH_FAMILY + b":"
PACKED: Final = SET_FAMILY + b":"


class SetName(NamedTuple):
    """The unique name of a set: the start of its bucket, the time of packing, and 8 random bytes."""

    bucket_ms: int
    packed_ms: int
    random: bytes

    def qualifier(self) -> bytes:
        """Return the qualifier of the set's column: sets sort by bucket, then by the time of packing."""
        return _QUALIFIER.pack(*self)


class DamagedSetError(ValueError):
    """A cell that is not a posting set, or a damaged one; the message says what is wrong."""


def set_name(qualifier: bytes) -> SetName:
    """Return the name in a qualifier. Raises ``DamagedSetError``."""
    if len(qualifier) != _QUALIFIER.size:
        raise DamagedSetError(f"the qualifier of a set has {_QUALIFIER.size} bytes, not {len(qualifier)}")
    return SetName(*_QUALIFIER.unpack(qualifier))


def encode_set(postings: bytes, layout: PostingLayout) -> bytes:
    """Pack joined postings, given in any order, and remove repeated ones. Raises ``ValueError`` for too many."""
    ordered = deduplicate(postings, layout)
    count = len(ordered) // layout.posting_bytes
    if count > SET_POSTINGS_MAX:
        raise ValueError(f"a set holds at most {SET_POSTINGS_MAX} postings, not {count}")
    packed: bytes = snappy.compress(ordered)
    return _HEAD.pack(_MAGIC, _FORMAT, layout.code_bytes, count, zlib.crc32(packed)) + packed


def set_count(value: bytes) -> int:
    """Return the number of postings in a set, as its head says. Raises ``DamagedSetError``."""
    return _head(value)[1]


def decode_set(value: bytes) -> tuple[bytes, PostingLayout]:
    """Return the postings of a set, in order and joined, and their layout. Raises ``DamagedSetError``."""
    layout, count, checksum = _head(value)
    packed = memoryview(value)[_HEAD.size :]
    if zlib.crc32(packed) != checksum:
        raise DamagedSetError("the checksum does not match")
    try:
        postings: bytes = snappy.decompress(packed)
    except Exception as error:
        # The library's backends have no common exception.
        raise DamagedSetError(f"it cannot be decompressed: {error}") from error
    if len(postings) != count * layout.posting_bytes:
        raise DamagedSetError(f"it claims {count} postings but has {len(postings)} bytes")
    return postings, layout


def deduplicate(postings: bytes, layout: PostingLayout) -> bytes:
    """Sort joined postings, and remove repeated ones."""
    # numpy can sort byte strings but not raw bytes; it ignores trailing zeros only where widths differ.
    return np.unique(np.frombuffer(postings, f"S{layout.posting_bytes}")).tobytes()


def join_parts(rows: Sequence[Sequence[bytes]], layout: PostingLayout) -> list[bytes]:
    """Join the parts of each row, in any order and without repeated postings. No single part may repeat a posting."""
    packed = [b"".join(parts) for parts in rows]
    in_parts = [number for number, parts in enumerate(rows) if sum(map(bool, parts)) > 1]
    for run in _in_runs(in_parts, packed):
        if _may_repeat([packed[number] for number in run], layout):
            for number in run:
                packed[number] = deduplicate(packed[number], layout)
    return packed


def _in_runs(numbers: Sequence[int], packed: Sequence[bytes]) -> Iterator[list[int]]:
    """Cut the numbers of rows into runs to be checked together. A check copies the rows of its run."""
    run: list[int] = []
    size_bytes = 0
    for number in numbers:
        run.append(number)
        size_bytes += len(packed[number])
        if size_bytes > _CHECK_BYTES:
            yield run
            run, size_bytes = [], 0
    if run:
        yield run


def _may_repeat(rows: Sequence[bytes], layout: PostingLayout) -> bool:
    """Return whether any row may repeat a posting. Hardly any row does, so rows are checked together.

    Sorting one word of each posting takes a tenth of the time of sorting postings. The word combines both ends of the
    reference, so that neither the versions of an id nor one text under many ids look like one version.
    """
    stride = layout.posting_bytes // _WORD_BYTES
    first, last = layout.code_bytes // _WORD_BYTES, (layout.code_bytes + REFERENCE_BYTES) // _WORD_BYTES - 1
    words = np.frombuffer(b"".join(rows), np.uint64)
    # The row's number is part of the word, since a near article has postings in several rows of a look-up.
    numbers = np.arange(1, len(rows) + 1, dtype=np.uint64) * WORD_SPREAD
    mixed = words[first::stride] ^ words[last::stride]
    mixed += np.repeat(numbers, [len(row) // layout.posting_bytes for row in rows])
    mixed.sort()
    return bool((mixed[1:] == mixed[:-1]).any())


def _head(value: bytes) -> tuple[PostingLayout, int, int]:
    if len(value) < _HEAD.size:
        raise DamagedSetError("it is too short")
    magic, set_format, code_bytes, count, checksum = _HEAD.unpack_from(value)
    if magic != _MAGIC or set_format != _FORMAT or code_bytes not in POSTING_LAYOUTS:
        raise DamagedSetError("its head has an unknown format")
    return POSTING_LAYOUTS[code_bytes], count, checksum


def fresh_cell(key: bytes, posting: bytes) -> CellChange:
    """Return the cell of a posting. The whole posting is the qualifier, so that adding it again changes nothing."""
    return CellChange(key, FRESH + posting, b"")


def set_postings(key: bytes, column: bytes, value: bytes, layout: PostingLayout) -> bytes:
    """Return the postings of a set, in order and joined.

    Raises ``StoreDamaged``, also if the set has another layout.
    """
    try:
        postings, set_layout = decode_set(value)
    except DamagedSetError as error:
        raise damaged_set_error(key, column, error) from error
    if set_layout != layout:
        fault = f"its codes have {set_layout.code_bytes} bytes, those of the store {layout.code_bytes}"
        raise damaged_set_error(key, column, fault)
    return postings


def damaged_set_error(key: bytes, column: bytes, why: object) -> StoreDamaged:
    """Return the error for a posting set that is damaged, with its row and qualifier."""
    return damage_error(f"The posting set {column[len(PACKED) :].hex()} in the row {key.hex()} of postings", why)
