"""The table ``postings``: under each key fresh postings, a cell each, and posting sets, which are read together."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from threading import Lock
from typing import Final, TypeVar

from storage.errors import StoreError
from storage.hbase import sets
from storage.hbase.calls import Calls, Gateways
from storage.hbase.connection import Change, Columns, Selection
from storage.hbase.failures import RowTooBig
from storage.hbase.sets import DamagedSetError
from storage.postings import PostingLayout, Row, postings_of
from storage.records import Record

_T = TypeVar("_T")

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
        works = [partial(self._in_pieces, calls, key, layout) for key in in_pieces]
        rows = dict(zip(in_pieces, self._gateways.spread(works), strict=True))
        self._wide.remember(key for key, columns in found.items() if len(columns) > WIDE_CELLS)
        return [rows[key] if key in rows else self._row(key, found.get(key, {}), layout) for key in keys]

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

    def _row(self, key: bytes, columns: Columns, layout: PostingLayout) -> Row:
        """Join a row's fresh postings and its sets. Those up to the cap are the ones of the lowest codes."""
        postings = sets.joined([_fresh(key, columns, layout), *_sets(key, columns, layout)], layout)
        bytes_max = self._postings_max * layout.posting_bytes
        if len(postings) <= bytes_max:
            return Row(postings, truncated=False, layout=layout)
        return Row(sets.distinct(postings, layout)[:bytes_max], truncated=True, layout=layout)

    def _in_pieces(self, calls: Calls, key: bytes, layout: PostingLayout) -> Row:
        """A row of any width: no more of it is read than the cap and one piece.

        One scanner reads both families, and sees the row as it was at one moment: a posting that is being packed or
        unpacked meanwhile is in one of them. Fresh ones come first; where they are over the cap, the sets are left out.
        """
        selection = Selection(self._table, _FAMILIES, key, key + b"\0", batch=_CELLS_AT_ONCE)
        columns = calls.scan(selection, self._up_to_cap)
        if len(columns) > WIDE_CELLS:
            self._wide.remember([key])
        return self._row(key, columns, layout)

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
            postings += sum(_of_set(row, column, columns, sets.set_count) for column in packed)
        return postings, rows, None


def _puts(record: Record) -> Iterator[Change]:
    """A record's postings as cells. The whole posting names the cell, so that one added again changes nothing."""
    for key, posting in postings_of(record):
        yield Change(key, _FRESH + posting, b"")


def _fresh(key: bytes, columns: Columns, layout: PostingLayout) -> bytes:
    cells = [column[len(_FRESH) :] for column in columns if column.startswith(_FRESH)]
    widths = set(map(len, cells))
    if widths - {layout.posting_bytes}:
        raise StoreError(
            f"The row {key.hex()} of postings is damaged: a posting has {layout.posting_bytes} bytes, and there are "
            f"some of {', '.join(map(str, sorted(widths)))}."
        )
    return b"".join(cells)


def _sets(key: bytes, columns: Columns, layout: PostingLayout) -> Iterator[bytes]:
    for column in columns:
        if column.startswith(_SET):
            postings, theirs = _of_set(key, column, columns, sets.decode_set)
            if theirs != layout:
                raise StoreError(f"The posting set {key.hex()} {column!r} has codes of {theirs.code_bytes} bytes.")
            yield postings


def _of_set(key: bytes, column: bytes, columns: Columns, read: Callable[[bytes], _T]) -> _T:
    try:
        return read(columns[column].value)
    except DamagedSetError as error:
        name = f"{column[len(_SET) :].hex()} in the row {key.hex()}"
        raise StoreError(f"The posting set {name} of postings is damaged: {error}.") from error
