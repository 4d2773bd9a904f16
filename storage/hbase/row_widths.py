"""The widths of posting rows: which rows are too wide to be read together with others, and counts for ``stats``.

A gateway answers with whole rows, so wide rows must be known before they are read. A process remembers how much it has
read from a row or written into it, and marks wide rows in ``meta`` for other processes. A missing mark costs one big
answer, which ``GatewayConnection.row_cells`` aborts; a needless mark costs a scanner.
"""

import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Final, NamedTuple

from storage.hbase import posting_cells
from storage.hbase.calls import Calls, Gateways
from storage.hbase.connection import CellChange, Columns, ScanSelection
from storage.hbase.posting_cells import FRESH_FAMILY, PACKED, SET_FAMILY, DamagedSetError, damaged_set_error
from storage.postings import all_keys
from storage.records import Record

WIDE_CELLS: Final = 4_096
"""Rows with more cells than this are read in pieces, so that an answer is not much larger than rows of this width."""
MARKS_ROW: Final = b"wide"
_FAMILY: Final = b"m"
_KEYS_MAX: Final = 10_000
_REFRESH_S: Final = 30.0
_BATCH: Final = 500
_AHEAD: Final = 200
_CELLS: Final = 200_000
"""Cells in a piece, pieces per request, and cells after which the counting of rows starts a new scan."""


class WideRows:
    """The keys of wide rows; the least recently noted keys are forgotten first. Thread-safe."""

    def __init__(self, meta: bytes, *, readonly: bool) -> None:
        self._meta = meta
        self._readonly = readonly
        self._keys: OrderedDict[bytes, None] = OrderedDict()
        self._added: OrderedDict[bytes, int] = OrderedDict()
        self._lock = Lock()
        self._refresh_at_s = 0.0

    def __contains__(self, key: bytes) -> bool:
        return key in self._keys

    def refresh(self, calls: Calls) -> None:
        """Read the marks of other processes, at most twice a minute."""
        with self._lock:
            now_s = time.monotonic()
            if now_s < self._refresh_at_s:
                return
            self._refresh_at_s = now_s + _REFRESH_S
        marks = calls.rows(self._meta, [MARKS_ROW], [_FAMILY], 1).get(MARKS_ROW, {})
        self.remember_here(column.partition(b":")[2] for column in marks)

    def remember(self, calls: Calls, keys: Iterable[bytes]) -> None:
        """Remember that these rows are wide, and mark them for other processes."""
        new = [key for key in keys if key not in self._keys]
        if not new:
            return
        self.remember_here(new)
        if not self._readonly:
            calls.change(self._meta, [CellChange(MARKS_ROW, _FAMILY + b":" + key, b"") for key in new])

    def count(self, calls: Calls, records: Sequence[Record]) -> None:
        """Count the postings written into rows. So a process that only writes a row learns that the row is wide."""
        wide: list[bytes] = []
        with self._lock:
            for key in (key for record in records for key in all_keys(record)):
                count = self._added[key] = self._added.get(key, 0) + 1
                self._added.move_to_end(key)
                if count == WIDE_CELLS:
                    wide.append(key)
            while len(self._added) > _KEYS_MAX:
                self._added.popitem(last=False)
        self.remember(calls, wide)

    def remember_here(self, keys: Iterable[bytes]) -> None:
        """Remember that these rows are wide, without marking them for other processes."""
        with self._lock:
            for key in keys:
                self._keys[key] = None
                self._keys.move_to_end(key)
            while len(self._keys) > _KEYS_MAX:
                self._keys.popitem(last=False)


class PostingCounts(NamedTuple):
    """The number of postings, of their rows, and of rows over the cap, and the width of the widest row."""

    postings: int = 0
    rows: int = 0
    crowded: int = 0
    widest: int = 0

    def plus(self, other: "PostingCounts") -> "PostingCounts":
        """Add the counts of other rows."""
        return PostingCounts(
            self.postings + other.postings,
            self.rows + other.rows,
            self.crowded + other.crowded,
            max(self.widest, other.widest),
        )


def count_postings(table: bytes, gateways: Gateways) -> PostingCounts:
    """Count the postings of this table, each as often as it is stored, and their distribution over rows."""
    count = partial(_count_rows, postings_max=gateways.options.row_postings_max)
    counts = PostingCounts()
    start: bytes | None = b""
    while start is not None:
        selection = ScanSelection(table, (FRESH_FAMILY, SET_FAMILY), start, batch=_BATCH, pieces_per_request=_AHEAD)
        part, start = gateways.calls().scan(selection, count)
        counts = counts.plus(part)
    return counts


def _count_rows(row_pieces: Iterator[tuple[bytes, Columns]], postings_max: int) -> tuple[PostingCounts, bytes | None]:
    """Count whole rows until enough cells are read; return the counts and the next row, None at the end."""
    widths: dict[bytes, int] = {}
    cells = 0
    for row, columns in row_pieces:
        if row not in widths and cells >= _CELLS:
            return _counts(widths, postings_max), row
        cells += len(columns)
        packed = [column for column in columns if column.startswith(PACKED)]
        width = len(columns) - len(packed)
        width += sum(_set_count(row, column, columns[column].value) for column in packed)
        widths[row] = widths.get(row, 0) + width
    return _counts(widths, postings_max), None


def _counts(widths: Mapping[bytes, int], postings_max: int) -> PostingCounts:
    crowded = sum(width > postings_max for width in widths.values())
    return PostingCounts(sum(widths.values()), len(widths), crowded, max(widths.values(), default=0))


def _set_count(key: bytes, column: bytes, value: bytes) -> int:
    try:
        return posting_cells.set_count(value)
    except DamagedSetError as error:
        raise damaged_set_error(key, column, error) from error
