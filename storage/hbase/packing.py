"""Packs the older postings of a row from single cells into posting sets, and unpacks them again.

Consumers and other packers may run at the same time, and a kill at any moment is safe
(docs/decisions/0017-posting-sets.md):

1. a set is written under a new name, and acknowledged;
2. only then are the cells of its postings deleted, unless they were written again after they were read;
3. sets are never edited: to merge sets, a new one is written, then exactly the merged ones are deleted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

from storage.clock import MS_PER_S
from storage.hbase import posting_cells
from storage.hbase.calls import Gateways
from storage.hbase.connection import CellChange, Columns, ScanSelection
from storage.hbase.meta import CODE_BYTES_ROW, PackMeta
from storage.hbase.posting_cells import FRESH_FAMILY, PACKED, SET_FAMILY, fresh_cell, set_postings
from storage.hbase.schema import FOREVER_S
from storage.hbase.set_plans import PackRules, PackTally, RowPlan, plan_row
from storage.postings import POSTING_LAYOUTS, PostingLayout

BUCKET_S: Final = 86_400
"""The default length of a bucket: a week takes seven sets per row."""
ROW_POSTINGS_MIN: Final = 8
"""Fewer postings are read faster as cells than as a set."""
CLOCKS_DIFFER_MS: Final = 60_000
"""The maximum difference between the clocks of two servers.

HBase rejects a server whose clock differs from its master's by more than half of this.
"""
PAGE_CELLS: Final = 20_000
PAGE_BYTES: Final = 16 << 20
"""The size of a page in cells and bytes, at which no further row is added. A page is read, and then packed."""
UNPACK_BYTES: Final = 2 << 20
"""How many bytes of sets, some 50,000 postings, are read before they are unpacked."""
ROW_CELLS_MAX: Final = 50_000
ROW_BYTES_MAX: Final = 32 << 20
"""Rows above these limits are packed part by part."""
_PIECE_CELLS: Final = 512
_PIECES_AHEAD: Final = 32
_SETS_AHEAD: Final = 8

Rows = Mapping[bytes, Columns]


@dataclass(frozen=True, slots=True)
class PackOptions:
    """Options for packing postings that were written before ``before_ms``.

    ``before_ms`` is a time of the servers' clock, or None for now. The function ``pack_before_ms`` rounds it down to
    whole buckets.
    """

    before_ms: int | None = None
    bucket_ms: int = BUCKET_S * MS_PER_S
    row_postings_min: int = ROW_POSTINGS_MIN


class PackProgress(NamedTuple):
    """The progress of packing: all rows before ``row`` are done, or all rows if ``row`` is None."""

    tally: PackTally
    row: bytes | None


class UnpackProgress(NamedTuple):
    """The progress of unpacking, with the sets and postings so far; ``row`` as in ``PackProgress``."""

    sets: int
    postings: int
    row: bytes | None


class _Page(NamedTuple):
    """Whole rows; ``wide`` is a row that was left out, if any, ``row`` the row to continue with, None at the end."""

    rows: Rows
    wide: bytes | None
    row: bytes | None


class _Part(NamedTuple):
    """Cells of one row; more follow unless ``is_last``."""

    columns: Columns
    is_last: bool


def pack_before_ms(before_ms: int, bucket_ms: int) -> int:
    """Return the time before which postings are packed: the last end of a bucket a minute or more before ``before_ms``.

    For buckets shorter than a minute, one bucket takes the place of the minute. As long as the clocks of servers
    differ by less than this delay, no posting that is written after its row was read looks older than the returned
    time.
    """
    settled_ms = before_ms - min(bucket_ms, CLOCKS_DIFFER_MS)
    return settled_ms - settled_ms % bucket_ms


class Packer:
    """Packs and unpacks the postings of one store, a page of rows at a time."""

    def __init__(self, gateways: Gateways) -> None:
        namespace = gateways.place.namespace.encode()
        self._gateways = gateways
        self._table = namespace + b":postings"
        self._meta = PackMeta(namespace + b":meta")

    def pack(self, options: PackOptions) -> Iterator[PackProgress]:
        """Pack postings that are old enough, merge the sets of each bucket, and delete sets of expired buckets.

        The next run that packs up to the same time resumes a killed one. Raises ``StoreRefused`` if the store's buckets
        have another length, ``StoreDamaged`` with row and qualifier if a cell is damaged.
        """
        layout = self._layout()
        if layout is None:
            yield PackProgress(PackTally(), None)
            return
        calls = self._gateways.calls()
        self._meta.bind_bucket(calls, options.bucket_ms)
        rules = self._rules(options)
        row: bytes | None = self._meta.next_row(calls, rules.pack_before_ms)
        tally = PackTally()
        while row is not None:
            page = self._page(row)
            tally = tally.plus(self._carry_out(plan_row(key, cells, layout, rules) for key, cells in page.rows.items()))
            if page.wide is not None:
                tally = tally.plus(self._pack_wide(page.wide, layout, rules))
            tally = tally.plus(PackTally(rows=len(page.rows) + (page.wide is not None)))
            row = page.row
            calls = self._gateways.calls()
            # Another packer may have unpacked everything and bound the store to another length of buckets.
            self._meta.bind_bucket(calls, options.bucket_ms)
            self._meta.save_next_row(calls, rules.pack_before_ms, row or b"")
            yield PackProgress(tally, row)

    def unpack(self) -> Iterator[UnpackProgress]:
        """Write the postings of every set as cells again, then delete the set. Can be stopped and repeated."""
        layout = self._layout()
        done = UnpackProgress(0, 0, b"")
        while layout is not None and done.row is not None:
            rows, row = self._sets_from(done.row)
            packed = [(key, column, cell.value) for key, columns in rows.items() for column, cell in columns.items()]
            postings = [(key, set_postings(key, column, value, layout)) for key, column, value in packed]
            self._change(chain.from_iterable(_fresh_cells(key, unpacked, layout) for key, unpacked in postings))
            self._change(CellChange(key, column, None) for key, column, _ in packed)
            count = sum(len(unpacked) for _, unpacked in postings) // layout.posting_bytes
            done = UnpackProgress(done.sets + len(packed), done.postings + count, row)
            yield done
        if not self._sets_from(b"")[0]:
            self._meta.unbind_bucket(self._gateways.calls())
        yield done._replace(row=None)

    def _layout(self) -> PostingLayout | None:
        width = self._meta.read(self._gateways.calls(), CODE_BYTES_ROW)
        return None if width is None else POSTING_LAYOUTS[int(width)]

    def _rules(self, options: PackOptions) -> PackRules:
        calls = self._gateways.calls()
        now_ms = self._meta.server_ms(calls)
        before_ms = now_ms if options.before_ms is None else min(options.before_ms, now_ms)
        # A posting in a set lives as long as it would as a cell: by the table's time to live, not the configured one.
        family = calls.ask(lambda connection: connection.families(self._table))[FRESH_FAMILY + b":"]
        lifetime_ms = family.timeToLive * MS_PER_S if 0 < family.timeToLive < FOREVER_S else now_ms
        return PackRules(
            bucket_ms=options.bucket_ms,
            pack_before_ms=pack_before_ms(before_ms, options.bucket_ms),
            expired_ms=now_ms - lifetime_ms,
            now_ms=now_ms,
            row_postings_min=options.row_postings_min,
        )

    def _carry_out(self, plans: Iterable[RowPlan]) -> PackTally:
        """Write the sets of all these rows. Once all are acknowledged, delete the cells that the sets replace."""
        planned = list(plans)
        self._change(chain.from_iterable(plan.puts for plan in planned))
        # This time is before ``pack_before_ms``, and so before any read: postings added since are newer, and stay.
        newest_ms = max((plan.newest_ms for plan in planned), default=0)
        self._change(chain.from_iterable(plan.fresh_deletes for plan in planned), until_ms=newest_ms)
        self._change(chain.from_iterable(plan.set_deletes for plan in planned))
        return PackTally(*map(sum, zip(PackTally(), *(plan.tally for plan in planned), strict=True)))

    def _change(self, changes: Iterable[CellChange], until_ms: int | None = None) -> None:
        self._gateways.calls().change(self._table, changes, until_ms)

    def _page(self, row: bytes) -> _Page:
        families = [FRESH_FAMILY, SET_FAMILY]
        selection = ScanSelection(self._table, families, row, batch=_PIECE_CELLS, pieces_per_request=_PIECES_AHEAD)
        return self._gateways.calls().scan(selection, _whole_rows)

    def _pack_wide(self, key: bytes, layout: PostingLayout, rules: PackRules) -> PackTally:
        """Pack a row part by part: first its fresh postings, then its sets, including those just written."""
        tally = PackTally()
        for family, take in ((FRESH_FAMILY, _take_cells), (SET_FAMILY, _take_bucket)):
            after: bytes | None = b""
            while after is not None:
                part = self._part(key, family, after, take)
                tally = tally.plus(self._carry_out([plan_row(key, part.columns, layout, rules)]))
                after = None if part.is_last else max(part.columns).removeprefix(family + b":")
        return tally

    def _part(
        self, key: bytes, family: bytes, after: bytes, take: Callable[[Iterator[tuple[bytes, Columns]]], _Part]
    ) -> _Part:
        filter_string = _filter_after(after) if after else b""
        batch = 1 if family == SET_FAMILY else _PIECE_CELLS
        selection = ScanSelection(self._table, [family], key, key + b"\0", batch, _SETS_AHEAD, filter_string)
        return self._gateways.calls().scan(selection, take)

    def _sets_from(self, row: bytes) -> tuple[Rows, bytes | None]:
        """Read some sets from this row on. Return them and the last row, which may have more; None if all were read."""
        selection = ScanSelection(self._table, [SET_FAMILY], row, batch=_SETS_AHEAD, pieces_per_request=_SETS_AHEAD)
        return self._gateways.calls().scan(selection, _take_sets)


def _whole_rows(pieces: Iterator[tuple[bytes, Columns]]) -> _Page:
    """Collect rows until the page is full, or a row is too wide."""
    rows: dict[bytes, dict[bytes, Any]] = {}
    page_cells = page_bytes = row_cells = row_bytes = 0
    for row, piece in pieces:
        if row not in rows:
            if page_cells >= PAGE_CELLS or page_bytes >= PAGE_BYTES:
                return _Page(rows, None, row)
            rows[row] = {}
            row_cells = row_bytes = 0
        rows[row].update(piece)
        size_bytes = _value_bytes(piece)
        row_cells, row_bytes = row_cells + len(piece), row_bytes + size_bytes
        page_cells, page_bytes = page_cells + len(piece), page_bytes + size_bytes
        if row_cells > ROW_CELLS_MAX or row_bytes > ROW_BYTES_MAX:
            del rows[row]
            return _Page(rows, row, row + b"\0")
    return _Page(rows, None, None)


def _take_cells(pieces: Iterator[tuple[bytes, Columns]]) -> _Part:
    columns: dict[bytes, Any] = {}
    for _, piece in pieces:
        columns.update(piece)
        if len(columns) >= ROW_CELLS_MAX:
            return _Part(columns, is_last=False)
    return _Part(columns, is_last=True)


def _take_bucket(pieces: Iterator[tuple[bytes, Columns]]) -> _Part:
    """Collect sets of one bucket, which are adjacent, while they fit into one set."""
    columns: dict[bytes, Any] = {}
    buckets = set()
    postings = 0
    for _, piece in pieces:
        for column, cell in piece.items():
            buckets.add(column[: len(PACKED) + 8])
            postings += _count(cell.value)
            if columns and (len(buckets) > 1 or postings > posting_cells.SET_POSTINGS_MAX):
                return _Part(columns, is_last=False)
            columns[column] = cell
    return _Part(columns, is_last=True)


def _take_sets(pieces: Iterator[tuple[bytes, Columns]]) -> tuple[Rows, bytes | None]:
    rows: dict[bytes, dict[bytes, Any]] = {}
    size_bytes = 0
    for row, piece in pieces:
        rows.setdefault(row, {}).update(piece)
        size_bytes += _value_bytes(piece)
        if size_bytes >= UNPACK_BYTES:
            return rows, row
    return rows, None


def _fresh_cells(key: bytes, postings: bytes, layout: PostingLayout) -> Iterator[CellChange]:
    width = layout.posting_bytes
    return (fresh_cell(key, postings[place : place + width]) for place in range(0, len(postings), width))


def _value_bytes(columns: Columns) -> int:
    return sum(len(cell.value) for cell in columns.values())


def _count(value: bytes) -> int:
    try:
        return posting_cells.set_count(value)
    except posting_cells.DamagedSetError:
        # Planning reports the damage, with row and qualifier.
        return 0


def _filter_after(qualifier: bytes) -> bytes:
    """Return a filter, in HBase's filter language, for cells with a greater qualifier."""
    return b"ColumnRangeFilter('" + qualifier.replace(b"'", b"''") + b"', false, '', true)"
