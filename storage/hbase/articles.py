"""The table ``articles``: one row for each id, with its versions, verdicts, tombstones and bodies."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from storage.bodies import pack_body
from storage.hbase import cells
from storage.hbase.calls import Calls, Gateways, take
from storage.hbase.cells import ArticleRow, CellCache
from storage.hbase.connection import CellChange, ScanSelection, Swap
from storage.hbase.swapping import ROWS_AT_ONCE, Decide, SwapDecision, read_cells, swap_all
from storage.records import ID_HASH_BYTES, Release, StoredVersion, Tombstone, Version

_BODIES_AT_ONCE: Final = 16
"""The number of rows of bodies that one request reads.

These rows are big: each has the bodies of all versions of an id.
"""
_SCAN_PAGE: Final = 256


class Articles:
    """The operations on this table. Every method except ``scan`` sends its requests through the given ``Calls``."""

    def __init__(self, table: bytes, gateways: Gateways) -> None:
        self._table = table
        self._gateways = gateways
        self._keep_bodies = gateways.options.keep_bodies
        self._pending = CellCache(gateways.options.pending_cells_max)

    def create(self, calls: Calls, versions: Sequence[Version]) -> list[StoredVersion | None]:
        """Write the versions that are missing, with their bodies; return all of them as stored.

        A crash may leave a record without its body. Such a version has no verdict, since nobody else finds it before
        this method has returned. So it will be created again, and its body is written then.

        The new cells are not read again: the result comes from the rows read before, with the new versions added. These
        rows lack only the cells that others wrote in between. If another process created a version first, the row is
        read again.
        """
        references = [version.record.reference for version in versions]
        rows = self._rows(calls, references)
        absent = [version for version in versions if version.record.reference not in _row_of(version, rows).versions]
        new = {version.record.reference: cells.pending_cell(version.record) for version in absent}
        swaps = [
            Swap(reference[:ID_HASH_BYTES], cells.version_column(reference), None, cell)
            for reference, cell in new.items()
        ]
        written, _ = self._gateways.side_by_side(
            partial(swap_all, calls, self._table, swaps),
            partial(self._write_bodies, calls, absent, [version for version in versions if _is_pending(version, rows)]),
        )
        created_elsewhere = [reference for reference, done in zip(new, written, strict=True) if not done]
        for version, done in zip(absent, written, strict=True):
            if done:
                id_hash = version.record.reference[:ID_HASH_BYTES]
                rows[id_hash] = rows[id_hash].with_pending(version.record)
                self._pending.remember(version.record.reference, new[version.record.reference])
        rows |= self._rows(calls, created_elsewhere)
        return [rows[reference[:ID_HASH_BYTES]].stored(reference) for reference in references]

    def retract(self, calls: Calls, tombstones: Sequence[Tombstone]) -> list[Tombstone | None]:
        """Write the tombstones that are missing; return all of them as stored."""
        swaps = [
            Swap(tombstone.id_hash, cells.tombstone_column(tombstone.reference), None, cells.tombstone_cell(tombstone))
            for tombstone in tombstones
        ]
        swap_all(calls, self._table, swaps)
        rows = self._rows(calls, [tombstone.reference for tombstone in tombstones])
        return [rows[tombstone.id_hash].tombstones.get(tombstone.reference) for tombstone in tombstones]

    def read(self, calls: Calls, references: Sequence[bytes]) -> list[StoredVersion | None]:
        """Return these versions as stored; None for a missing one. Cache pending cells for ``settle``."""
        rows = self._rows(calls, references)
        return [rows[reference[:ID_HASH_BYTES]].stored(reference) for reference in references]

    def histories(self, calls: Calls, id_hashes: Sequence[bytes]) -> list[list[StoredVersion | Tombstone]]:
        """Read all versions and tombstones of these ids, in order of arrival."""
        rows = self._rows(calls, id_hashes)
        return [rows[id_hash].history() for id_hash in id_hashes]

    def bodies(self, calls: Calls, references: Sequence[bytes]) -> list[str | None]:
        """Return the texts of these versions; None for a missing one."""
        ids = list(dict.fromkeys(reference[:ID_HASH_BYTES] for reference in references))
        rows = calls.rows(self._table, ids, [cells.BODY_FAMILY], _BODIES_AT_ONCE)
        packed = [rows.get(reference[:ID_HASH_BYTES], {}).get(cells.body_column(reference)) for reference in references]
        return [
            None if cell is None else cells.body_in(cell.value, reference)
            for reference, cell in zip(references, packed, strict=True)
        ]

    def settle(self, calls: Calls, verdicts: Sequence[tuple[bytes, bytes]]) -> list[bool]:
        """Replace pending cells with settled ones. Return True where the stored verdict is the given one.

        Cells that are not in the cache are read first.
        """
        stored = {reference: self._pending.take(reference) for reference, _ in verdicts}
        uncached = [reference for reference, cell in stored.items() if cell is None]
        places = [(reference[:ID_HASH_BYTES], cells.version_column(reference)) for reference in uncached]
        stored |= zip(uncached, read_cells(calls, self._table, places), strict=True)
        verdict_of = dict(verdicts)
        outcomes = {
            reference: _is_settled_with(reference, cell, verdict_of[reference])
            for reference, cell in stored.items()
            if cell is None or cells.verdict_in(cell, reference) is not None
        }
        swaps = {
            reference: _verdict_swap(reference, cell, verdict_of[reference])
            for reference, cell in stored.items()
            if reference not in outcomes and cell is not None
        }
        deciders = [partial(_decide_verdict, reference, verdict_of[reference]) for reference in swaps]
        outcomes |= zip(swaps, swap_all(calls, self._table, list(swaps.values()), deciders), strict=True)
        return [outcomes[reference] for reference, _ in verdicts]

    def release(self, calls: Calls, releases: Sequence[Release]) -> list[bytes | None]:
        """Replace settled cells with released ones. Return the events of all releases, or None where there is none."""
        places = [(release.reference[:ID_HASH_BYTES], cells.version_column(release.reference)) for release in releases]
        before = zip(releases, read_cells(calls, self._table, places), strict=True)
        swaps = {release: swap for release, cell in before if isinstance(swap := _decide_release(release, cell), Swap)}
        deciders = [_release_decider(release) for release in swaps]
        swap_all(calls, self._table, list(swaps.values()), deciders)
        stored = read_cells(calls, self._table, places)
        return [_release_event(release.reference, cell) for release, cell in zip(releases, stored, strict=True)]

    def scan(self) -> Iterator[tuple[bytes, ArticleRow]]:
        """Iterate over all rows, page by page, so that no scanner is open while the caller works."""
        start = b""
        while True:
            selection = ScanSelection(self._table, [cells.RECORD_FAMILY], start, pieces_per_request=_SCAN_PAGE)
            page = self._gateways.calls().scan(selection, partial(take, count_max=_SCAN_PAGE))
            for row, columns in page:
                yield row, cells.decode_row(row, columns)
            if len(page) < _SCAN_PAGE:
                return
            start = page[-1][0] + b"\0"

    def _write_bodies(self, calls: Calls, absent: Sequence[Version], pending: Sequence[Version]) -> None:
        """Write the bodies of absent versions, and those of pending ones where they are missing."""
        if not self._keep_bodies:
            return
        with_body = [version for version in pending if version.body is not None]
        stored = self.bodies(calls, [version.record.reference for version in with_body])
        missing = [version for version, body in zip(with_body, stored, strict=True) if body is None]
        calls.change(
            self._table,
            (
                CellChange(version.record.id_hash, cells.body_column(version.reference), pack_body(version.body))
                for version in (*absent, *missing)
                if version.body is not None
            ),
        )

    def _rows(self, calls: Calls, references: Sequence[bytes]) -> dict[bytes, ArticleRow]:
        """Read the rows of these references or id hashes, empty for ids that are not stored. Cache pending cells."""
        ids = list(dict.fromkeys(reference[:ID_HASH_BYTES] for reference in references))
        rows = calls.rows(self._table, ids, [cells.RECORD_FAMILY], ROWS_AT_ONCE)
        for reference in references:
            cell = rows.get(reference[:ID_HASH_BYTES], {}).get(cells.version_column(reference))
            if cell is not None and cells.verdict_in(cell.value, reference) is None:
                self._pending.remember(reference, cell.value)
        return {id_hash: cells.decode_row(id_hash, rows.get(id_hash, {})) for id_hash in ids}


def _row_of(version: Version, rows: Mapping[bytes, ArticleRow]) -> ArticleRow:
    return rows[version.record.reference[:ID_HASH_BYTES]]


def _is_pending(version: Version, rows: Mapping[bytes, ArticleRow]) -> bool:
    stored = _row_of(version, rows).versions.get(version.record.reference)
    return stored is not None and stored.verdict is None


def _verdict_swap(reference: bytes, pending: bytes, verdict: bytes) -> Swap:
    column = cells.version_column(reference)
    return Swap(reference[:ID_HASH_BYTES], column, pending, cells.settled_cell(pending, verdict))


def _decide_verdict(reference: bytes, verdict: bytes, swap: Swap, cell: bytes | None) -> SwapDecision:
    """Accept the same verdict from any process. Retry if the cell is still pending, even if its bytes have changed."""
    del swap
    if cell is None or cells.verdict_in(cell, reference) is not None:
        return _is_settled_with(reference, cell, verdict)
    return _verdict_swap(reference, cell, verdict)


def _release_decider(release: Release) -> Decide:
    return lambda _, cell: _decide_release(release, cell)


def _decide_release(release: Release, cell: bytes | None) -> SwapDecision:
    """Release a settled cell, even if its bytes have changed; accept one that any process has released."""
    if cell is None or cells.verdict_in(cell, release.reference) is None:
        return False
    if cells.is_released(cell, release.reference):
        return True
    row, column = release.reference[:ID_HASH_BYTES], cells.version_column(release.reference)
    return Swap(row, column, cell, cells.released_cell(cell, release.event, release.released_from))


def _release_event(reference: bytes, cell: bytes | None) -> bytes | None:
    """Return the event of a cell's release, or None if it has none."""
    return cells.verdict_in(cell, reference) if cell is not None and cells.is_released(cell, reference) else None


def _is_settled_with(reference: bytes, cell: bytes | None, verdict: bytes) -> bool:
    return cell is not None and cells.verdict_in(cell, reference) == verdict
