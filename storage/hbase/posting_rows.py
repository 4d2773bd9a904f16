"""The table ``postings``: under each key fresh postings, a cell each, and posting sets, which are read together."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Final, NamedTuple

import numpy as np

from storage.errors import StoreDamaged
from storage.hbase import sets, wide_rows
from storage.hbase.calls import Calls, Gateways
from storage.hbase.connection import Change, Columns, Selection
from storage.hbase.failures import AnswerTooBig, Lost, RowTooBig, damaged
from storage.hbase.sets import DamagedSetError
from storage.hbase.wide_rows import WideRows
from storage.postings import KeyedCode, PostingLayout, Row, cut_of, postings_of
from storage.records import Record

FRESH_FAMILY: Final = b"p"
_FAMILIES: Final = (FRESH_FAMILY, sets.FAMILY)
_FRESH: Final = b"p:"
_SET: Final = b"s:"
_ROWS_AT_ONCE: Final = 128
_CELLS_AT_ONCE: Final = 4_096
ANSWER_BYTES_MAX: Final = 16 << 20
"""How big the answer to a question for several rows may get: beyond it some of them are wide, and nobody knew."""
_WITHOUT_VALUES: Final = b"KeyOnlyFilter()"
_SETS_SOUGHT_MAX: Final = 2
"""How many of a row's sets are unpacked to find the postings with one code."""
_COUNT_BATCH: Final = 500
_COUNT_AHEAD: Final = 200
_COUNT_CELLS: Final = 200_000
"""When counting: cells of a piece, pieces fetched at once, and cells after which work is not done again."""


class PostingCounts(NamedTuple):
    """Postings and the rows they are in, how many of these are over the cap, and how wide the widest is."""

    postings: int = 0
    rows: int = 0
    crowded: int = 0
    widest: int = 0

    def plus(self, other: "PostingCounts") -> "PostingCounts":
        """Those of other rows too."""
        return PostingCounts(
            self.postings + other.postings,
            self.rows + other.rows,
            self.crowded + other.crowded,
            max(self.widest, other.widest),
        )


class PostingRows:
    """What the store's calls do in this table; each takes the calls to HBase that it may make."""

    def __init__(self, table: bytes, meta: bytes, gateways: Gateways) -> None:
        self._table = table
        self._gateways = gateways
        self._postings_max = gateways.options.row_postings_max
        self._wide = WideRows(meta, readonly=gateways.options.readonly)
        self._rows_at_once = _ROWS_AT_ONCE

    def add(self, calls: Calls, records: Sequence[Record]) -> None:
        """Write the postings of these records as fresh ones."""
        calls.change(self._table, chain.from_iterable(map(_puts, records)))
        self._wide.count(calls, records)

    def remove(self, calls: Calls, records: Sequence[Record]) -> None:
        """Delete the fresh postings of these records.

        One that was packed into a set stays: it does no harm, since a posting counts for nothing without a kept record.
        """
        puts = chain.from_iterable(map(_puts, records))
        calls.change(self._table, [Change(row, column, None) for row, column, _ in puts])

    def look_up(self, calls: Calls, keys: Sequence[bytes], layout: PostingLayout) -> list[Row]:
        """The rows of these keys."""
        self._wide.refresh(calls)
        narrow = [key for key in keys if key not in self._wide]
        try:
            found = calls.rows(self._table, narrow, _FAMILIES, self._rows_at_once, ANSWER_BYTES_MAX)
        except RowTooBig:
            # Which row it was is not said: all are read in pieces once, and those that are wide are remembered.
            found, narrow = {}, []
        except AnswerTooBig:
            # It may also have been many rows of a moderate width.
            self._rows_at_once = max(self._rows_at_once // 2, 1)
            found, narrow = {}, []
        asked = set(narrow)
        parts = {key: _parts(key, found.get(key, {}), layout) for key in narrow}
        in_pieces = [key for key in keys if key not in asked]
        works = [partial(self._in_pieces, calls, key, layout) for key in in_pieces]
        parts |= zip(in_pieces, self._gateways.spread(works), strict=True)
        rows = self._rows([parts[key] for key in keys], layout)
        wide = {key for key, columns in found.items() if len(columns) > wide_rows.WIDE_CELLS}
        # Of a row that was read in pieces, its postings are counted: most are cells.
        wide |= {key for key in in_pieces if sum(map(len, parts[key])) > wide_rows.WIDE_CELLS * layout.posting_bytes}
        wide |= {key for key, row in zip(keys, rows, strict=True) if row.truncated}
        self._wide.remember(calls, wide)
        return rows

    def seek(self, calls: Calls, places: Sequence[KeyedCode], postings_max: int, layout: PostingLayout) -> list[Row]:
        """The postings at these places: of the fresh ones all, of the packed ones those in the first few sets."""
        return self._gateways.spread([partial(self._with_code, calls, place, postings_max, layout) for place in places])

    def count(self) -> PostingCounts:
        """How many postings there are, each as often as it is stored, and how they are spread over rows."""
        counts = PostingCounts()
        start: bytes | None = b""
        while start is not None:
            selection = Selection(self._table, _FAMILIES, start, batch=_COUNT_BATCH, ahead=_COUNT_AHEAD)
            part, start = self._gateways.calls().scan(selection, self._count_some)
            counts = counts.plus(part)
        return counts

    def _rows(self, found: Sequence[Sequence[bytes]], layout: PostingLayout) -> list[Row]:
        """Join each row's fresh postings and its sets. Of one over the cap, those of the lowest codes are taken."""
        width = layout.posting_bytes
        cut_bytes = cut_of(self._postings_max) * width
        return [
            Row(postings, truncated=False, layout=layout)
            if len(postings) <= self._postings_max * width
            else Row(sets.distinct(postings, layout)[:cut_bytes], truncated=True, layout=layout)
            for postings in sets.joined(found, layout)
        ]

    def _in_pieces(self, calls: Calls, key: bytes, layout: PostingLayout) -> list[bytes]:
        """The parts of a row of any width: no more of it is read than the cap, and one set.

        One scanner sees the row as it was at one moment: its fresh postings, and the names of its sets. These are read
        after it, one by one. A set is never changed, so all of them together are that moment's row; where one is gone,
        a packer was faster, and the row is looked at again.
        """
        while True:
            fresh, names = calls.scan(self._names(key), self._up_to_cap)
            parts = [_fresh(key, fresh, layout)] if fresh else []
            count = len(fresh)
            for name in names:
                if count > self._postings_max:
                    return parts
                value = self._set_value(calls, key, name)
                if value is None:
                    calls.pause(Lost(f"the sets of the row {key.hex()} of postings were packed anew while it was read"))
                    break
                parts.append(_set(key, name, value, layout))
                count += len(parts[-1]) // layout.posting_bytes
            else:
                return parts

    def _names(self, key: bytes) -> Selection:
        batch = min(_CELLS_AT_ONCE, self._postings_max + 1)
        return Selection(self._table, _FAMILIES, key, key + b"\0", batch=batch, only=_WITHOUT_VALUES)

    def _up_to_cap(self, found: Iterator[tuple[bytes, Columns]]) -> tuple[list[bytes], list[bytes]]:
        """The columns of fresh postings, which come first, and of sets, unless the former alone are over the cap."""
        fresh: list[bytes] = []
        names: list[bytes] = []
        for _, piece in found:
            for column in piece:
                (fresh if column.startswith(_FRESH) else names).append(column)
            if len(fresh) > self._postings_max:
                return fresh, []
        return fresh, sorted(names)

    def _set_value(self, calls: Calls, key: bytes, name: bytes) -> bytes | None:
        cell = calls.rows(self._table, [key], [name], 1).get(key, {}).get(name)
        return None if cell is None else cell.value

    def _with_code(self, calls: Calls, place: KeyedCode, postings_max: int, layout: PostingLayout) -> Row:
        key, code = place
        only = b"ColumnPrefixFilter('" + code.replace(b"'", b"''") + b"')"
        selection = Selection(self._table, [FRESH_FAMILY], key, key + b"\0", batch=postings_max + 1, only=only)
        columns = calls.scan(selection, lambda found: [column for _, piece in islice(found, 1) for column in piece])
        postings = [_fresh(key, columns, layout)] if columns else []
        _, names = calls.scan(self._names_of_sets(key), self._up_to_cap)
        for name in names[:_SETS_SOUGHT_MAX]:
            value = self._set_value(calls, key, name)
            if value is not None:
                postings.append(_of_code(_set(key, name, value, layout), code, layout))
        alike = sets.distinct(b"".join(postings), layout) if any(postings) else b""
        bytes_max = postings_max * layout.posting_bytes
        return Row(alike[:bytes_max], len(alike) > bytes_max or len(names) > _SETS_SOUGHT_MAX, layout)

    def _names_of_sets(self, key: bytes) -> Selection:
        return Selection(self._table, [sets.FAMILY], key, key + b"\0", batch=_CELLS_AT_ONCE, only=_WITHOUT_VALUES)

    def _count_some(self, found: Iterator[tuple[bytes, Columns]]) -> tuple[PostingCounts, bytes | None]:
        """Count whole rows until enough was read, and return the row to go on with, None at the end."""
        widths: dict[bytes, int] = {}
        cells = 0
        for row, columns in found:
            if row not in widths and cells >= _COUNT_CELLS:
                return self._counts(widths), row
            cells += len(columns)
            packed = [column for column in columns if column.startswith(_SET)]
            width = len(columns) - len(packed)
            width += sum(_set_count(row, column, columns[column].value) for column in packed)
            widths[row] = widths.get(row, 0) + width
        return self._counts(widths), None

    def _counts(self, widths: Mapping[bytes, int]) -> PostingCounts:
        crowded = sum(width > self._postings_max for width in widths.values())
        return PostingCounts(sum(widths.values()), len(widths), crowded, max(widths.values(), default=0))


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
        raise damaged(
            f"The row {key.hex()} of postings",
            f"a posting has {layout.posting_bytes} bytes, and there are some of "
            f"{', '.join(str(width - len(_FRESH)) for width in sorted(widths))}",
        )
    return np.frombuffer(b"".join(columns), np.uint8).reshape(-1, column_bytes)[:, len(_FRESH) :].tobytes()


def _set(key: bytes, column: bytes, value: bytes, layout: PostingLayout) -> bytes:
    try:
        postings, theirs = sets.decode_set(value)
    except DamagedSetError as error:
        raise _damaged(key, column, error) from error
    if theirs != layout:
        why = f"its codes have {theirs.code_bytes} bytes, those of the store {layout.code_bytes}"
        raise _damaged(key, column, why)
    return postings


def _of_code(postings: bytes, code: bytes, layout: PostingLayout) -> bytes:
    """Those of a set with this code: its postings are in order."""
    width = layout.posting_bytes
    places = range(0, len(postings), width)
    start = bisect_left(places, code, key=lambda place: postings[place : place + len(code)])
    end = bisect_right(places, code, key=lambda place: postings[place : place + len(code)])
    return postings[start * width : end * width]


def _set_count(key: bytes, column: bytes, value: bytes) -> int:
    try:
        return sets.set_count(value)
    except DamagedSetError as error:
        raise _damaged(key, column, error) from error


def _damaged(key: bytes, column: bytes, why: object) -> StoreDamaged:
    return damaged(f"The posting set {column[len(_SET) :].hex()} in the row {key.hex()} of postings", why)
