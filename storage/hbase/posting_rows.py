"""The table ``postings``: under each key fresh postings, a cell each, and posting sets, which are read together."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from threading import Lock
from typing import Final

import numpy as np

from storage.errors import StoreError
from storage.hbase import sets
from storage.hbase.calls import Calls, Gateways
from storage.hbase.connection import Change, Columns, Selection
from storage.hbase.failures import RowTooBig
from storage.hbase.sets import DamagedSetError
from storage.postings import PostingLayout, Row, postings_of
from storage.records import Record

FRESH_FAMILY: Final = b"p"
_FAMILIES: Final = (FRESH_FAMILY, sets.FAMILY)
_FRESH: Final = b"p:"
_SET: Final = b"s:"
_ROWS_AT_ONCE: Final = 128
WIDE_CELLS: Final = 4_096
"""A row seen with more cells than this is read in pieces from then on: so no answer is bigger than a few of them."""
_WIDE_ROWS_MAX: Final = 10_000
_CELLS_AT_ONCE: Final = 4_096
_COUNT_BATCH: Final = 500
_COUNT_AHEAD: Final = 200
_COUNT_CELLS: Final = 200_000
"""When counting: cells of a piece, pieces fetched at once, and cells after which work is not done again."""


class _WideRows:
    """The keys of rows that were seen wide, the one seen longest ago is forgotten first. For any thread."""

    def __init__(self) -> None:
        self._keys: OrderedDict[bytes, None] = OrderedDict()
        self._lock = Lock()

    def remember(self, keys: Iterable[bytes]) -> None:
        with self._lock:
            for key in keys:
                self._keys[key] = None
                self._keys.move_to_end(key)
            while len(self._keys) > _WIDE_ROWS_MAX:
                self._keys.popitem(last=False)

    def __contains__(self, key: bytes) -> bool:
        return key in self._keys


class PostingRows:
    """What the store's calls do in this table; each takes the calls to HBase that it may make."""

    def __init__(self, table: bytes, gateways: Gateways) -> None:
        self._table = table
        self._gateways = gateways
        self._postings_max = gateways.options.row_postings_max
        self._wide = _WideRows()

    def add(self, calls: Calls, records: Sequence[Record]) -> None:
        """Write the postings of these records as fresh ones."""
        calls.change(self._table, chain.from_iterable(map(_puts, records)))

    def remove(self, calls: Calls, records: Sequence[Record]) -> None:
        """Delete the fresh postings of these records.

        One that was packed into a set stays: it does no harm, since a posting counts for nothing without a kept record.
        """
        puts = chain.from_iterable(map(_puts, records))
        calls.change(self._table, [Change(row, column, None) for row, column, _ in puts])

    def look_up(self, calls: Calls, keys: Sequence[bytes], layout: PostingLayout) -> list[Row]:
        """The rows of these keys."""
        narrow = [key for key in keys if key not in self._wide]
        try:
            found = calls.rows(self._table, narrow, _FAMILIES, _ROWS_AT_ONCE)
        except RowTooBig:
            # Which row it was is not said: all are read in pieces once, and those that are wide are remembered.
            found, narrow = {}, []
        asked = set(narrow)
        in_pieces = [key for key in keys if key not in asked]
        works = [partial(self._in_pieces, calls, key) for key in in_pieces]
        found |= zip(in_pieces, self._gateways.spread(works), strict=True)
        self._wide.remember(key for key, columns in found.items() if len(columns) > WIDE_CELLS)
        return self._rows([(key, found.get(key, {})) for key in keys], layout)

    def count(self) -> tuple[int, int]:
        """How many postings there are, each as often as it is stored, and in how many rows."""
        postings = rows = 0
        start: bytes | None = b""
        while start is not None:
            selection = Selection(self._table, _FAMILIES, start, batch=_COUNT_BATCH, ahead=_COUNT_AHEAD)
            part, some, start = self._gateways.calls().scan(selection, self._count_some)
            postings += part
            rows += some
        return postings, rows

    def _rows(self, found: Sequence[tuple[bytes, Columns]], layout: PostingLayout) -> list[Row]:
        """Join each row's fresh postings and its sets. Those up to the cap are the ones of the lowest codes."""
        joined = sets.joined([_parts(key, columns, layout) for key, columns in found], layout)
        bytes_max = self._postings_max * layout.posting_bytes
        return [
            Row(postings, truncated=False, layout=layout)
            if len(postings) <= bytes_max
            else Row(sets.distinct(postings, layout)[:bytes_max], truncated=True, layout=layout)
            for postings in joined
        ]

    def _in_pieces(self, calls: Calls, key: bytes) -> Columns:
        """A row of any width: no more of it is read than the cap and one piece.

        One scanner reads both families, and sees the row as it was at one moment: a posting that is being packed or
        unpacked meanwhile is in one of them. Fresh ones come first; where they are over the cap, the sets are left out.
        """
        selection = Selection(self._table, _FAMILIES, key, key + b"\0", batch=_CELLS_AT_ONCE)
        return calls.scan(selection, self._up_to_cap)

    def _up_to_cap(self, found: Iterator[tuple[bytes, Columns]]) -> Columns:
        columns: dict[bytes, object] = {}
        for _, piece in found:
            columns |= piece
            if len(columns) > self._postings_max:
                break
        return columns

    def _count_some(self, found: Iterator[tuple[bytes, Columns]]) -> tuple[int, int, bytes | None]:
        """Count whole rows until enough was read: postings, rows, and the row to go on with, None at the end."""
        postings = rows = cells = 0
        last: bytes | None = None
        for row, columns in found:
            if row != last:
                if cells >= _COUNT_CELLS:
                    return postings, rows, row
                rows += 1
                last = row
            cells += len(columns)
            packed = [column for column in columns if column.startswith(_SET)]
            postings += len(columns) - len(packed)
            postings += sum(_set_count(row, column, columns[column].value) for column in packed)
        return postings, rows, None


def _puts(record: Record) -> Iterator[Change]:
    """A record's postings as cells. The whole posting names the cell, so that one added again changes nothing."""
    for key, posting in postings_of(record):
        yield Change(key, _FRESH + posting, b"")


def _parts(key: bytes, columns: Columns, layout: PostingLayout) -> list[bytes]:
    """A row's fresh postings, and those of each of its sets."""
    fresh: list[bytes] = []
    parts: list[bytes] = []
    for column, cell in columns.items():
        if column.startswith(_FRESH):
            fresh.append(column)
        elif column.startswith(_SET):
            parts.append(_set(key, column, cell.value, layout))
    if fresh:
        parts.append(_fresh(key, fresh, layout))
    return parts


def _fresh(key: bytes, columns: Sequence[bytes], layout: PostingLayout) -> bytes:
    widths = set(map(len, columns))
    column_bytes = len(_FRESH) + layout.posting_bytes
    if widths - {column_bytes}:
        raise StoreError(
            f"The row {key.hex()} of postings is damaged: a posting has {layout.posting_bytes} bytes, and there are "
            f"some of {', '.join(str(width - len(_FRESH)) for width in sorted(widths))}."
        )
    return np.frombuffer(b"".join(columns), np.uint8).reshape(-1, column_bytes)[:, len(_FRESH) :].tobytes()


def _set(key: bytes, column: bytes, value: bytes, layout: PostingLayout) -> bytes:
    try:
        postings, theirs = sets.decode_set(value)
    except DamagedSetError as error:
        raise _damaged(key, column, error) from error
    if theirs != layout:
        raise StoreError(f"The posting set {key.hex()} {column!r} has codes of {theirs.code_bytes} bytes.")
    return postings


def _set_count(key: bytes, column: bytes, value: bytes) -> int:
    try:
        return sets.set_count(value)
    except DamagedSetError as error:
        raise _damaged(key, column, error) from error


def _damaged(key: bytes, column: bytes, error: DamagedSetError) -> StoreError:
    name = f"{column[len(_SET) :].hex()} in the row {key.hex()}"
    return StoreError(f"The posting set {name} of postings is damaged: {error}.")
