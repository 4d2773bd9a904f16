"""The table ``postings``: a row for each key, with fresh postings and posting sets, which are read together."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby, islice, takewhile
from threading import Event, Lock
from typing import Final, NamedTuple

import numpy as np

from storage.hbase import posting_cells, row_widths
from storage.hbase.calls import Calls, Gateways, pieces
from storage.hbase.connection import CellChange, Columns, ScanSelection
from storage.hbase.failures import AnswerTooBig, ConnectionLost, RowTooBig, damage_error
from storage.hbase.meta import PackMeta
from storage.hbase.posting_cells import (
    FRESH,
    FRESH_FAMILY,
    PACKED,
    SET_FAMILY,
    fresh_cell,
    set_postings,
)
from storage.hbase.row_answers import CellShape, RowCells
from storage.hbase.row_widths import PostingCounts, WideRows, count_postings
from storage.postings import KeyedCode, PostingLayout, PostingRow, postings_of, truncated_to
from storage.records import Record

_FRESH_ONLY: Final[tuple[bytes, ...]] = (FRESH_FAMILY,)
_FAMILIES: Final = (FRESH_FAMILY, SET_FAMILY)
_ROWS_AT_ONCE: Final = 128
_CELLS_AT_ONCE: Final = 4_096
ANSWER_BYTES_MAX: Final = 16 << 20
"""The maximum size of an answer with several rows. A larger one usually has wide rows that no process has marked."""
_WITHOUT_VALUES: Final = b"KeyOnlyFilter()"
_SETS_SOUGHT_MAX: Final = 2
"""The maximum number of sets of a row that are searched for postings with one code."""


class _RowParts(NamedTuple):
    """The postings read from a row: one entry for its fresh cells and one for each set, each with joined postings.

    ``cells`` is the number of the row's cells. A row over the cap is ``truncated``, and has only the postings to be
    returned.
    """

    postings: list[bytes]
    cells: int
    truncated: bool = False


_NO_CELLS: Final = RowCells(b"", {})


class _Budget:
    """The limit on the bytes of postings in one look-up. A ``bytes_max`` of None means no limit. Thread-safe."""

    def __init__(self, bytes_max: int | None) -> None:
        self._bytes_max = bytes_max
        self._spent = 0
        self._lock = Lock()

    @property
    def is_spent(self) -> bool:
        """Whether no further rows should be read."""
        return self._bytes_max is not None and self._spent > self._bytes_max

    def spend(self, rows: Iterable[_RowParts]) -> None:
        """Add the bytes of these rows."""
        size_bytes = sum(len(part) for row in rows for part in row.postings)
        with self._lock:
            self._spent += size_bytes


class _Reading(NamedTuple):
    """The parameters and state of one look-up.

    ``packed`` is set if only fresh postings were read, but a packer had begun by then.
    """

    calls: Calls
    families: Sequence[bytes]
    layout: PostingLayout
    budget: _Budget
    packed: Event


class PostingRows:
    """The operations on this table. Each method sends its requests through the given ``Calls``."""

    def __init__(self, table: bytes, meta: bytes, gateways: Gateways) -> None:
        self._table = table
        self._gateways = gateways
        self._postings_max = gateways.options.row_postings_max
        self._wide = WideRows(meta, readonly=gateways.options.readonly)
        self._packing = PackMeta(meta)
        self._families = _FRESH_ONLY
        self._rows_at_once = _ROWS_AT_ONCE

    def add(self, calls: Calls, records: Sequence[Record]) -> None:
        """Write the postings of these records as fresh postings."""
        calls.change(self._table, chain.from_iterable(map(_puts, records)))
        self._wide.count(calls, records)

    def remove(self, calls: Calls, records: Sequence[Record]) -> None:
        """Delete the fresh postings of these records.

        Postings in sets stay, which is harmless: without a kept record a posting does not count.
        """
        puts = chain.from_iterable(map(_puts, records))
        calls.change(self._table, [CellChange(row, column, None) for row, column, _ in puts])

    def look_up(
        self, calls: Calls, keys: Sequence[bytes], layout: PostingLayout, bytes_max: int | None
    ) -> list[PostingRow]:
        """Read the rows of these keys, or only the first ones if they have more than ``bytes_max`` bytes.

        A family costs time even if it has no cells, so sets are read only if the store was ever packed. A cell in
        ``meta`` says whether it was. That cell is read after each request for rows: if no packer had begun by then,
        none had deleted anything (docs/decisions/0017-posting-sets.md).
        """
        self._wide.refresh(calls)
        reading = _Reading(calls, self._families, layout, _Budget(bytes_max), Event())
        parts = self._read_rows(reading, keys)
        if reading.packed.is_set():
            self._families = _FAMILIES
            parts = self._read_rows(reading._replace(families=_FAMILIES, budget=_Budget(bytes_max)), keys)
        self._wide.remember(calls, {key for key, part in parts.items() if part.cells > row_widths.WIDE_CELLS})
        read_keys = list(takewhile(parts.__contains__, keys))
        postings = posting_cells.join_parts([parts[key].postings for key in read_keys], layout)
        rows = [
            PostingRow(packed, parts[key].truncated, layout) for key, packed in zip(read_keys, postings, strict=True)
        ]
        self._wide.remember(calls, {key for key, row in zip(read_keys, rows, strict=True) if row.truncated})
        return rows

    def seek(
        self, calls: Calls, codes: Sequence[KeyedCode], postings_max: int, layout: PostingLayout
    ) -> list[PostingRow]:
        """Read up to ``postings_max`` postings with each code: fresh ones, and those in the first few sets of each row.

        The sets of a row are read once for all of its codes.
        """
        by_key = groupby(sorted(codes), key=lambda keyed: keyed.key)
        fresh = self._gateways.spread(
            [partial(self._fresh_with_code, calls, keyed, postings_max, layout) for keyed in codes]
        )
        packed = self._gateways.spread(
            [partial(self._sets_with_codes, calls, key, list(group), postings_max, layout) for key, group in by_key]
        )
        in_sets = {keyed: row for rows_by_code in packed for keyed, row in rows_by_code.items()}
        bytes_max = postings_max * layout.posting_bytes
        rows: list[PostingRow] = []
        for keyed, fresh_postings in zip(codes, fresh, strict=True):
            matching = fresh_postings + in_sets[keyed].packed
            matching = posting_cells.deduplicate(matching, layout) if matching else b""
            truncated = len(matching) > bytes_max or in_sets[keyed].truncated
            rows.append(PostingRow(matching[:bytes_max], truncated, layout))
        return rows

    def count(self) -> PostingCounts:
        """Count the postings, each as often as it is stored, and their distribution over rows."""
        return count_postings(self._table, self._gateways)

    def _read_rows(self, reading: "_Reading", keys: Sequence[bytes]) -> dict[bytes, "_RowParts"]:
        narrow = [key for key in keys if key not in self._wide]
        in_order = [
            *pieces(narrow, reading.calls.share(len(narrow), self._rows_at_once)),
            *([key] for key in keys if key in self._wide),
        ]
        # The group of the first key is read even if the budget is spent.
        in_order.sort(key=lambda group: group[0] != keys[0])
        tasks = [partial(self._read_group, reading, group, first=number == 0) for number, group in enumerate(in_order)]
        return {key: part for parts in self._gateways.spread(tasks) for key, part in parts.items()}

    def _read_group(self, reading: "_Reading", keys: Sequence[bytes], *, first: bool) -> dict[bytes, "_RowParts"]:
        """Read some rows with one request, or one by one if they are wide. Return them by key.

        If the budget is spent, only the ``first`` group is read.
        """
        calls, families, layout, budget, packed = reading
        if budget.is_spent and not first:
            return {}
        if keys[0] in self._wide:
            return self._read_one_by_one(reading, keys)
        shape = CellShape(FRESH, layout.posting_bytes)
        check_after = self._packing.pack_mark if families == _FRESH_ONLY else None
        try:
            rows, has_begun = calls.row_cells(self._table, keys, families, shape, ANSWER_BYTES_MAX, check_after)
        except RowTooBig:
            # HBase does not say which row is too big: all are read in pieces, and wide ones are remembered.
            return self._read_one_by_one(reading, keys)
        except AnswerTooBig:
            # The cause may also be many rows of moderate width.
            self._rows_at_once = max(self._rows_at_once // 2, 1)
            return self._read_one_by_one(reading, keys)
        if has_begun:
            packed.set()
        parts = {key: _parts(key, rows.get(key, _NO_CELLS), layout, self._postings_max) for key in keys}
        budget.spend(parts.values())
        return parts

    def _read_one_by_one(self, reading: "_Reading", keys: Sequence[bytes]) -> dict[bytes, "_RowParts"]:
        """Read rows one by one, always with their sets, until the budget is spent; at least one."""
        calls, layout, budget = reading.calls, reading.layout, reading.budget
        parts: dict[bytes, _RowParts] = {}
        for key in keys:
            if parts and budget.is_spent:
                break
            parts[key] = self._read_in_pieces(calls, key, layout)
            budget.spend([parts[key]])
        return parts

    def _read_in_pieces(self, calls: Calls, key: bytes, layout: PostingLayout) -> _RowParts:
        """Read a row of any width, but hold at most one set and as many postings as the cap in memory.

        One scanner sees the row at one moment: its fresh postings, and the names of its sets, which are then read one
        by one. Sets never change, so together they are the row at that moment. If one is missing, a packer has replaced
        it, and the row is read again. Each posting in a set counts as a cell.
        """
        while True:
            fresh, names = calls.scan(self._names(key), self._up_to_cap)
            row = _cap(
                _RowParts([_fresh_postings(key, fresh, layout)] if fresh else [], len(fresh)),
                layout,
                self._postings_max,
            )
            for name in names:
                if row.truncated:
                    return row
                value = self._set_value(calls, key, name)
                if value is None:
                    calls.pause(
                        ConnectionLost(f"the sets of the row {key.hex()} of postings were repacked while it was read")
                    )
                    break
                more = _lowest_postings(key, name, value, layout, self._postings_max)
                cells = row.cells + len(more) // layout.posting_bytes
                row = _cap(_RowParts([*row.postings, more], cells), layout, self._postings_max)
            else:
                return row

    def _names(self, key: bytes) -> ScanSelection:
        batch = min(_CELLS_AT_ONCE, self._postings_max + 1)
        return ScanSelection(self._table, _FAMILIES, key, key + b"\0", batch=batch, filter_string=_WITHOUT_VALUES)

    def _up_to_cap(self, row_pieces: Iterator[tuple[bytes, Columns]]) -> tuple[list[bytes], list[bytes]]:
        """Return the columns of fresh postings and of sets, without those of sets if fresh postings exceed the cap."""
        fresh: list[bytes] = []
        names: list[bytes] = []
        for _, piece in row_pieces:
            for column in piece:
                (fresh if column.startswith(FRESH) else names).append(column)
            if len(fresh) > self._postings_max:
                return fresh, []
        return fresh, sorted(names)

    def _set_value(self, calls: Calls, key: bytes, name: bytes) -> bytes | None:
        cell = calls.rows(self._table, [key], [name], 1).get(key, {}).get(name)
        return None if cell is None else cell.value

    def _fresh_with_code(self, calls: Calls, keyed: KeyedCode, postings_max: int, layout: PostingLayout) -> bytes:
        key, code = keyed
        filter_string = b"ColumnPrefixFilter('" + code.replace(b"'", b"''") + b"')"
        selection = ScanSelection(
            self._table, [FRESH_FAMILY], key, key + b"\0", batch=postings_max + 1, filter_string=filter_string
        )
        columns = calls.scan(selection, lambda rows: [column for _, piece in islice(rows, 1) for column in piece])
        return _fresh_postings(key, columns, layout) if columns else b""

    def _sets_with_codes(
        self, calls: Calls, key: bytes, codes: Sequence[KeyedCode], postings_max: int, layout: PostingLayout
    ) -> dict[KeyedCode, PostingRow]:
        """Return the postings with each of these codes in a row's first sets.

        From each set, at most ``postings_max + 1`` with each code are returned; the last one shows that there are too
        many.
        """
        _, names = calls.scan(self._names_of_sets(key), self._up_to_cap)
        matching: dict[KeyedCode, bytes] = dict.fromkeys(codes, b"")
        for name in names[:_SETS_SOUGHT_MAX]:
            value = self._set_value(calls, key, name)
            postings = b"" if value is None else set_postings(key, name, value, layout)
            for keyed in codes:
                matching[keyed] += layout.with_code(postings, keyed.code)[: (postings_max + 1) * layout.posting_bytes]
        return {
            keyed: PostingRow(postings, len(names) > _SETS_SOUGHT_MAX, layout) for keyed, postings in matching.items()
        }

    def _names_of_sets(self, key: bytes) -> ScanSelection:
        return ScanSelection(
            self._table, [SET_FAMILY], key, key + b"\0", batch=_CELLS_AT_ONCE, filter_string=_WITHOUT_VALUES
        )


def _puts(record: Record) -> Iterator[CellChange]:
    for key, posting in postings_of(record):
        yield fresh_cell(key, posting)


def _parts(key: bytes, cells: RowCells, layout: PostingLayout, postings_max: int) -> _RowParts:
    """Return the fresh postings of a row and those of each of its sets, up to the cap."""
    # Fresh cells after one of another width, which is damage, were not joined with the others.
    unjoined = [column for column in cells.values if column.startswith(FRESH)]
    fresh = cells.qualifiers + (_fresh_postings(key, unjoined, layout) if unjoined else b"")
    parts = [
        _lowest_postings(key, column, value, layout, postings_max)
        for column, value in cells.values.items()
        if column.startswith(PACKED)
    ]
    count = len(cells.qualifiers) // layout.posting_bytes + len(cells.values)
    return _cap(_RowParts([*parts, fresh] if fresh else parts, count), layout, postings_max)


def _lowest_postings(key: bytes, column: bytes, value: bytes, layout: PostingLayout, postings_max: int) -> bytes:
    """Return the first postings of a set, up to one more than the cap. One more shows that the row is over the cap."""
    return set_postings(key, column, value, layout)[: (postings_max + 1) * layout.posting_bytes]


def _cap(row: _RowParts, layout: PostingLayout, postings_max: int) -> _RowParts:
    """Reduce a row over the cap to the postings with the lowest codes, since many wide rows may be in memory."""
    if sum(map(len, row.postings)) <= postings_max * layout.posting_bytes:
        return row
    postings = posting_cells.deduplicate(b"".join(row.postings), layout)
    if len(postings) <= postings_max * layout.posting_bytes:
        return row._replace(postings=[postings])
    lowest = postings[: truncated_to(postings_max) * layout.posting_bytes]
    return row._replace(postings=[lowest], truncated=True)


def _fresh_postings(key: bytes, columns: Sequence[bytes], layout: PostingLayout) -> bytes:
    widths = set(map(len, columns))
    column_bytes = len(FRESH) + layout.posting_bytes
    if widths - {column_bytes}:
        raise damage_error(
            f"The row {key.hex()} of postings",
            f"a posting has {layout.posting_bytes} bytes, but some have "
            f"{', '.join(str(width - len(FRESH)) for width in sorted(widths - {column_bytes}))}",
        )
    return np.frombuffer(b"".join(columns), np.uint8).reshape(-1, column_bytes)[:, len(FRESH) :].tobytes()
