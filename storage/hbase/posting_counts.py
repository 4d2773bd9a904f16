"""Counts the postings of a store, and how they are spread over rows."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

from storage.hbase import sets
from storage.hbase.calls import Gateways
from storage.hbase.connection import Columns, Selection
from storage.hbase.posting_cells import FRESH_FAMILY, PACKED, SET_FAMILY, damaged_set
from storage.hbase.sets import DamagedSetError

_BATCH: Final = 500
_AHEAD: Final = 200
_CELLS: Final = 200_000
"""Cells in a piece, pieces fetched at once, and cells after which progress is kept."""


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
    """Count the postings in this table, each as often as it is stored, and how they are spread over rows."""
    count = partial(_count_some, postings_max=gateways.options.row_postings_max)
    counts = PostingCounts()
    start: bytes | None = b""
    while start is not None:
        selection = Selection(table, (FRESH_FAMILY, SET_FAMILY), start, batch=_BATCH, ahead=_AHEAD)
        part, start = gateways.calls().scan(selection, count)
        counts = counts.plus(part)
    return counts


def _count_some(found: Iterator[tuple[bytes, Columns]], postings_max: int) -> tuple[PostingCounts, bytes | None]:
    """Count whole rows until enough was read; return the row to continue with, None at the end."""
    widths: dict[bytes, int] = {}
    cells = 0
    for row, columns in found:
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
        return sets.set_count(value)
    except DamagedSetError as error:
        raise damaged_set(key, column, error) from error
