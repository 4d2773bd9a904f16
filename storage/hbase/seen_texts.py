"""The table ``seen``, which remembers texts beyond the window: one row with one cell for each digest.

The cell is rewritten whenever its text is seen, so HBase's time to live counts from then.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from storage.errors import StoreDamaged
from storage.hbase.calls import Calls, take
from storage.hbase.connection import ScanSelection, Swap
from storage.hbase.failures import damage_error
from storage.hbase.schema import SEEN_FAMILY
from storage.hbase.swapping import read_cells, swap_all
from storage.seen import SeenChange, SeenTimes, decode_seen, encode_seen

_FAMILY: Final = SEEN_FAMILY.encode()
_COLUMN: Final = _FAMILY + b":v"
_SCAN_PAGE: Final = 1_024


class SeenTexts:
    """The operations on this table. Each method sends its requests through the given ``Calls``."""

    def __init__(self, table: bytes) -> None:
        self._table = table

    def table_exists(self, calls: Calls) -> bool:
        """Return whether the table exists. A store whose consumers never remembered texts has none."""
        return calls.ask(lambda connection: self._table in connection.table_names())

    def read(self, calls: Calls, digests: Sequence[bytes]) -> list[SeenTimes | None]:
        """Return the entries of these texts; None for a text without one. Raises ``StoreDamaged``."""
        cells = read_cells(calls, self._table, [(digest, _COLUMN) for digest in digests])
        return [None if cell is None else _decode(digest, cell) for digest, cell in zip(digests, cells, strict=True)]

    def change(self, calls: Calls, changes: Sequence[SeenChange]) -> list[bool]:
        """Carry out each compare-and-set. Return True for each whose ``after`` is stored now."""
        return swap_all(calls, self._table, [_swap(change) for change in changes])

    def scan(self, calls: Calls) -> Iterator[tuple[bytes, SeenTimes]]:
        """Iterate over all entries, page by page."""
        start = b""
        while True:
            selection = ScanSelection(self._table, [_FAMILY], start, pieces_per_request=_SCAN_PAGE)
            page = calls.scan(selection, partial(take, count_max=_SCAN_PAGE))
            for digest, columns in page:
                if _COLUMN not in columns:
                    raise _damaged(digest, f"it has no cell {_COLUMN.decode()}")
                yield digest, _decode(digest, columns[_COLUMN].value)
            if len(page) < _SCAN_PAGE:
                return
            start = page[-1][0] + b"\0"


def _swap(change: SeenChange) -> Swap:
    before = None if change.before is None else encode_seen(change.before)
    return Swap(change.digest, _COLUMN, before, encode_seen(change.after))


def _decode(digest: bytes, value: bytes) -> SeenTimes:
    try:
        return decode_seen(value)
    except ValueError as error:
        raise _damaged(digest, error) from error


def _damaged(digest: bytes, why: object) -> StoreDamaged:
    return damage_error(f"The row {digest.hex()} of seen", why)
