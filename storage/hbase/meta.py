"""The table ``meta``: a few values. Consumers write each once; ``dupwatch store init`` writes the plan."""

from typing import Final

from storage.errors import StoreUnavailable
from storage.hbase.calls import Calls
from storage.hbase.connection import Swap
from storage.hbase.swapping import Decision, read_cells, swap_all

CODE_BYTES_ROW: Final = b"code_bytes"
LAYOUT_ROW: Final = b"layout"
LAYOUT: Final = b"1"
"""Incremented whenever a byte of any table changes its meaning; stores with another layout are refused."""

_COLUMN: Final = b"m:v"


class Meta:
    """Reads and writes this table; every method sends its requests through the given ``Calls``."""

    def __init__(self, table: bytes) -> None:
        self._table = table

    def read(self, calls: Calls, row: bytes) -> bytes | None:
        """Return the value of a row, None if there is none yet."""
        return read_cells(calls, self._table, [(row, _COLUMN)])[0]

    def agree(self, calls: Calls, row: bytes, value: bytes) -> bytes:
        """Write a value by compare-and-set from absent, and return the one stored now."""
        swap_all(calls, self._table, [Swap(row, _COLUMN, None, value)], [_decide])
        stored = self.read(calls, row)
        if stored is None:
            raise StoreUnavailable(f"The row {row.decode()} of meta was deleted while it was being written.")
        return stored


def _decide(swap: Swap, found: bytes | None) -> Decision:
    return swap if found is None else found == swap.value
