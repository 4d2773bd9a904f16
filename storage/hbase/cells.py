"""The columns and cells of the table ``articles``, byte by byte, as described in ``docs/operate/row_keys.md``.

A version is one cell. So its verdict cannot exist without its record, both expire together, and a compare-and-set of
the whole cell decides which verdict is stored. The cell is replaced once, from pending to settled, and once more if a
person reverses the flag, from settled to released.
"""

import struct
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final, NamedTuple

import msgspec

from storage.bodies import UnreadableBodyError, unpack_body
from storage.errors import StoreDamaged
from storage.hbase.connection import Columns
from storage.hbase.failures import damage_error
from storage.postings import POSTING_LAYOUTS
from storage.records import (
    ID_HASH_BYTES,
    REFERENCE_BYTES,
    Arrival,
    Record,
    StoredVersion,
    Tombstone,
    encode_record,
    encode_tombstone,
)

RECORD_FAMILY: Final = b"a"
BODY_FAMILY: Final = b"b"
_VERSION: Final = b"a:v"
_TOMBSTONE: Final = b"a:t"
_BODY: Final = b"b:b"

_FORMAT: Final = 1
"""Incremented whenever the meaning of a byte changes; cells of another format are refused."""
_PENDING: Final = 0
_SETTLED: Final = 1
_RELEASED: Final = 2
_HEAD: Final = struct.Struct(">BBI")
_RELEASE: Final = struct.Struct(f">{REFERENCE_BYTES}sI")
"""Follows a released version's record: the reference that it was flagged against, and the flag's length in bytes."""

_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, UnreadableBodyError)

_decode_record: Final = msgspec.msgpack.Decoder(Record).decode
_decode_tombstone: Final = msgspec.msgpack.Decoder(Tombstone).decode


class _DamagedCellError(ValueError):
    """A cell that this program cannot have written; the message says what is wrong."""


def version_column(reference: bytes) -> bytes:
    """Return the column of a version in the row of its id."""
    return _VERSION + reference[ID_HASH_BYTES:]


def tombstone_column(reference: bytes) -> bytes:
    """Return the column of a tombstone in the row of its id."""
    return _TOMBSTONE + reference[ID_HASH_BYTES:]


def body_column(reference: bytes) -> bytes:
    """Return the column of a version's text in the row of its id."""
    return _BODY + reference[ID_HASH_BYTES:]


def pending_cell(record: Record) -> bytes:
    """Encode a version without a verdict."""
    encoded = encode_record(record)
    return _HEAD.pack(_FORMAT, _PENDING, len(encoded)) + encoded


def settled_cell(pending: bytes, verdict: bytes) -> bytes:
    """Encode the version in a pending cell with its verdict, which may be empty."""
    _, _, record_bytes = _HEAD.unpack_from(pending)
    return _HEAD.pack(_FORMAT, _SETTLED, record_bytes) + pending[_HEAD.size :] + verdict


def released_cell(settled: bytes, event: bytes, released_from: bytes) -> bytes:
    """Encode the version in a settled cell as released.

    The flag stays in the cell, and ``event`` becomes the verdict.
    """
    _, _, record_bytes = _HEAD.unpack_from(settled)
    record, flag = settled[_HEAD.size : _HEAD.size + record_bytes], settled[_HEAD.size + record_bytes :]
    release = _RELEASE.pack(released_from, len(flag))
    return _HEAD.pack(_FORMAT, _RELEASED, record_bytes) + record + release + flag + event


def verdict_in(cell: bytes, reference: bytes) -> bytes | None:
    """Return the effective verdict in a version's cell: a release's event if there is one, None while pending.

    Raises ``StoreDamaged`` if the cell is not a version's, or is damaged.
    """
    return _effective_verdict_at(cell, reference).verdict


def is_released(cell: bytes, reference: bytes) -> bool:
    """Return whether a version's cell has a release. Raises ``StoreDamaged`` as ``verdict_in`` does."""
    return _effective_verdict_at(cell, reference).released_from is not None


def body_in(cell: bytes, reference: bytes) -> str:
    """Decode the text of a version. Raises ``StoreDamaged`` if that is not possible."""
    try:
        return unpack_body(cell)
    except _UNREADABLE as error:
        raise _damaged_at(reference[:ID_HASH_BYTES], body_column(reference), error) from error


def tombstone_cell(tombstone: Tombstone) -> bytes:
    """Encode a tombstone."""
    return bytes([_FORMAT]) + encode_tombstone(tombstone)


class StoredCell(NamedTuple):
    """The decoded cell of a version: ``StoredVersion`` without ``ends_at``, which depends on the rest of the row."""

    record: Record
    verdict: bytes | None
    released_from: bytes | None


@dataclass(frozen=True, slots=True)
class ArticleRow:
    """All versions and tombstones of an id by reference, and their arrivals in order."""

    versions: Mapping[bytes, StoredCell]
    tombstones: Mapping[bytes, Tombstone]
    arrivals: list[Arrival]

    def stored(self, reference: bytes) -> StoredVersion | None:
        """Return a version with its verdict and the arrival that ended it, or None if it is missing."""
        cell = self.versions.get(reference)
        if cell is None:
            return None
        following = bisect_right(self.arrivals, cell.record.arrival)
        ends_at = self.arrivals[following] if following < len(self.arrivals) else None
        return StoredVersion(cell.record, cell.verdict, ends_at, cell.released_from)

    def with_pending(self, record: Record) -> "ArticleRow":
        """Return the row with one more version, which is pending."""
        versions = {**self.versions, record.reference: StoredCell(record, None, None)}
        return ArticleRow(versions, self.tombstones, sorted([*self.arrivals, record.arrival]))

    def history(self) -> list[StoredVersion | Tombstone]:
        """Return all versions and tombstones in order of arrival."""
        references = [arrival.reference for arrival in self.arrivals]
        articles = (self.tombstones.get(reference) or self.stored(reference) for reference in references)
        return [article for article in articles if article is not None]


def decode_row(id_hash: bytes, columns: Columns) -> ArticleRow:
    """Decode the row of an id. Raises ``StoreDamaged`` if a cell is not what its column says."""
    versions: dict[bytes, StoredCell] = {}
    tombstones: dict[bytes, Tombstone] = {}
    for column, cell in columns.items():
        kind, reference = column[: len(_VERSION)], id_hash + column[len(_VERSION) :]
        try:
            if kind == _VERSION:
                versions[reference] = _version(cell.value, reference)
            elif kind == _TOMBSTONE:
                tombstones[reference] = _tombstone(cell.value, reference)
        except (_DamagedCellError, *_UNREADABLE) as error:
            raise _damaged_at(id_hash, column, error) from error
    arrivals = [version.record.arrival for version in versions.values()]
    arrivals += [tombstone.arrival for tombstone in tombstones.values()]
    return ArticleRow(versions, tombstones, sorted(arrivals))


def _version(cell: bytes, reference: bytes) -> StoredCell:
    verdict, released_from, record_bytes = _effective_verdict(cell)
    record = _decode_record(memoryview(cell)[_HEAD.size : _HEAD.size + record_bytes])
    if record.reference != reference:
        raise _DamagedCellError(f"it holds another version, {record.reference.hex()}")
    if len(record.fingerprint) not in POSTING_LAYOUTS:
        raise _DamagedCellError(f"its fingerprint has {len(record.fingerprint)} bytes")
    return StoredCell(record, verdict, released_from)


def _tombstone(cell: bytes, reference: bytes) -> Tombstone:
    if cell[:1] != bytes([_FORMAT]):
        raise _DamagedCellError(f"the cell has format {cell[:1].hex()}, but this program supports only {_FORMAT}")
    tombstone = _decode_tombstone(memoryview(cell)[1:])
    if tombstone.reference != reference:
        raise _DamagedCellError(f"it holds another tombstone, {tombstone.reference.hex()}")
    return tombstone


class _EffectiveVerdict(NamedTuple):
    """The effective verdict, the reference that a released version was flagged against, and the record's length."""

    verdict: bytes | None
    released_from: bytes | None
    record_bytes: int


def _damaged_at(row: bytes, column: bytes, error: Exception) -> StoreDamaged:
    return damage_error(f"The cell {column!r} in the row {row.hex()} of articles", error)


def _effective_verdict_at(cell: bytes, reference: bytes) -> _EffectiveVerdict:
    try:
        return _effective_verdict(cell)
    except _DamagedCellError as error:
        raise _damaged_at(reference[:ID_HASH_BYTES], version_column(reference), error) from error


def _effective_verdict(cell: bytes) -> _EffectiveVerdict:
    state, record_bytes = _head(cell)
    tail = _HEAD.size + record_bytes
    if state == _PENDING:
        return _EffectiveVerdict(None, None, record_bytes)
    if state == _SETTLED:
        return _EffectiveVerdict(cell[tail:], None, record_bytes)
    released_from, flag_bytes = _RELEASE.unpack_from(cell, tail)
    return _EffectiveVerdict(cell[tail + _RELEASE.size + flag_bytes :], released_from, record_bytes)


def _head(cell: bytes) -> tuple[int, int]:
    """Return the state of a version's cell and the length of its record. Raises ``_DamagedCellError``."""
    if len(cell) < _HEAD.size:
        raise _DamagedCellError("the cell is too short")
    cell_format, state, record_bytes = _HEAD.unpack_from(cell)
    if cell_format != _FORMAT:
        raise _DamagedCellError(f"the cell has format {cell_format}, but this program supports only {_FORMAT}")
    if state not in (_PENDING, _SETTLED, _RELEASED):
        raise _DamagedCellError(f"the cell has the unknown state {state}")
    tail_bytes = len(cell) - _HEAD.size - record_bytes
    if tail_bytes < _tail_bytes_min(cell, state, tail_bytes):
        raise _DamagedCellError("the cell is truncated")
    if state == _PENDING and tail_bytes:
        raise _DamagedCellError("the cell is pending but has a verdict")
    return state, record_bytes


def _tail_bytes_min(cell: bytes, state: int, tail_bytes: int) -> int:
    """Return the minimum number of bytes after the record; ``tail_bytes`` is the actual number."""
    if state != _RELEASED:
        return 0
    if tail_bytes < _RELEASE.size:
        return _RELEASE.size
    _, flag_bytes = _RELEASE.unpack_from(cell, len(cell) - tail_bytes)
    return _RELEASE.size + int(flag_bytes)


class CellCache:
    """A cache of pending cells or of sketches by reference, which drops the least recently used ones. Thread-safe.

    A pending cell may be out of date; then its compare-and-set fails. A sketch never changes.
    """

    def __init__(self, cells_max: int) -> None:
        self._cells_max = cells_max
        self._cells: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = Lock()

    def remember(self, reference: bytes, cell: bytes) -> None:
        """Store a value."""
        with self._lock:
            self._cells[reference] = cell
            self._cells.move_to_end(reference)
            if len(self._cells) > self._cells_max:
                self._cells.popitem(last=False)

    def take(self, reference: bytes) -> bytes | None:
        """Remove and return a value, or None if it is not cached."""
        with self._lock:
            return self._cells.pop(reference, None)

    def read(self, references: Sequence[bytes]) -> list[bytes]:
        """Return the cached value of each reference, empty if there is none."""
        with self._lock:
            cells = [self._cells.get(reference, b"") for reference in references]
            for reference, cell in zip(references, cells, strict=True):
                if cell:
                    self._cells.move_to_end(reference)
            return cells
