"""The table ``meta``: a few values. Consumers write each once; ``dupwatch store init`` writes the plan."""

from typing import Final

from storage.errors import StoreUnavailable
from storage.hbase.calls import Calls
from storage.hbase.connection import Swap
from storage.hbase.swapping import Decision, read_cells, swap_all

CODE_BYTES_ROW: Final = b"code_bytes"
LAYOUT_ROW: Final = b"layout"
LAYOUT: Final = b"1"
LAYOUT_WITH_PARTS: Final = b"2"
"""Of a store in which parts were ever looked for: programs that do not know lane 2 would leave its postings behind."""
LAYOUTS: Final = (LAYOUT, LAYOUT_WITH_PARTS)
"""Those that this program knows; stores with another one are refused."""

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

    def replace(self, calls: Calls, row: bytes, before: bytes, value: bytes) -> None:
        """Write a value by compare-and-set from ``before``; another value that is stored stays."""
        swap_all(calls, self._table, [Swap(row, _COLUMN, before, value)], [_decide_replaced])


def _decide_replaced(swap: Swap, found: bytes | None) -> Decision:
    return swap if found == swap.expected else found == swap.value


def _decide(swap: Swap, found: bytes | None) -> Decision:
    return swap if found is None else found == swap.value
