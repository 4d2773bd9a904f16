"""The table ``meta``: a few values, each written once."""

from typing import Final

from storage.errors import StoreUnavailable
from storage.hbase.calls import Calls
from storage.hbase.connection import Swap
from storage.hbase.swapping import Decision, read_cells, swap_all

SETTINGS_ROW: Final = b"settings"
CODE_BYTES_ROW: Final = b"code_bytes"
LAYOUT_ROW: Final = b"layout"
LAYOUT: Final = b"1"
"""Raised whenever a byte of any table changes its meaning; a store of another layout is refused."""

_COLUMN: Final = b"m:v"


class Meta:
    """What the store's calls do in this table; each takes the calls to HBase that it may make."""

    def __init__(self, table: bytes) -> None:
        self._table = table

    def read(self, calls: Calls, row: bytes) -> bytes | None:
        """The value of a row, None where there is none yet."""
        return read_cells(calls, self._table, [(row, _COLUMN)])[0]

    def agree(self, calls: Calls, row: bytes, value: bytes) -> bytes:
        """Write a value unless there is one; return what is there then."""
        swap_all(calls, self._table, [Swap(row, _COLUMN, None, value)], [_decide])
        stored = self.read(calls, row)
        if stored is None:
            raise StoreUnavailable(f"The row {row.decode()} of meta was deleted while it was written.")
        return stored


def _decide(swap: Swap, found: bytes | None) -> Decision:
    return swap if found is None else found == swap.value
