"""The table ``meta``: values that consumers and ``dupwatch store init`` write once, and what packers share.

Of the latter look-ups must know, too. Progress may be lost without harm. The row of the bucket width may not: it is
there before the first posting is packed, and stays for ever, so a store without it has no sets.
"""

import struct
from typing import Final, NamedTuple

from storage.clock import MS_PER_S
from storage.errors import StoreRefused, StoreUnavailable
from storage.hbase.calls import Calls
from storage.hbase.connection import Cell, Change, Swap
from storage.hbase.failures import damaged
from storage.hbase.swapping import Decision, read_cells, swap_all

CODE_BYTES_ROW: Final = b"code_bytes"
LAYOUT_ROW: Final = b"layout"
LAYOUT: Final = b"1"
LAYOUT_WITH_PARTS: Final = b"2"
"""Of a store in which parts were ever looked for: programs that do not know lane 2 would leave its postings behind."""
LAYOUTS: Final = (LAYOUT, LAYOUT_WITH_PARTS)
"""Those that this program knows; stores with another one are refused."""

_COLUMN: Final = b"m:v"
BUCKET_ROW: Final = b"pack_bucket_ms"
PROGRESS_ROW: Final = b"pack"
UNBOUND: Final = b"0"
_VALUE: Final = b"m:v"
_CLOCK: Final = b"m:clock"
_FAMILY: Final = b"m"
_TIME: Final = struct.Struct(">Q")


class Meta:
    """Reads and writes this table; every method sends its requests through the given ``Calls``."""

    def __init__(self, table: bytes) -> None:
        self._table = table

    def read(self, calls: Calls, row: bytes) -> bytes | None:
        """Return the value of a row, None if there is none yet."""
        return read_cells(calls, self._table, [(row, _COLUMN)])[0]

    def agree(self, calls: Calls, row: bytes, value: bytes) -> bytes:
        """Write a value by compare-and-set from absent, and return the one stored now."""
        swap_all(calls, self._table, [Swap(row, _COLUMN, None, value)])
        stored = self.read(calls, row)
        if stored is None:
            raise StoreUnavailable(f"The row {row.decode()} of meta was deleted while it was being written.")
        return stored

    def replace(self, calls: Calls, row: bytes, before: bytes, value: bytes) -> None:
        """Write a value by compare-and-set from ``before``; another value that is stored stays."""
        swap_all(calls, self._table, [Swap(row, _COLUMN, before, value)])


class PackMeta(NamedTuple):
    """The rows about packing, in the table of this name."""

    table: bytes

    def server_ms(self, calls: Calls) -> int:
        """Return the time by a server's clock, which sets the time stamps of cells: write a cell and read its own."""
        calls.change(self.table, [Change(PROGRESS_ROW, _CLOCK, b"")])
        written: int = calls.rows(self.table, [PROGRESS_ROW], [_FAMILY], 1)[PROGRESS_ROW][_CLOCK].timestamp
        return written

    @property
    def begun(self) -> Cell:
        """The cell that is there once any packer has begun on this store; from then on there may be sets."""
        return Cell(self.table, BUCKET_ROW, _VALUE)

    def next_row(self, calls: Calls, pack_before_ms: int) -> bytes:
        """Return the row where a run up to this time stopped, or the first row if there was no such run."""
        stored = read_cells(calls, self.table, [(PROGRESS_ROW, _VALUE)])[0]
        if stored is None or stored[: _TIME.size] != _TIME.pack(pack_before_ms):
            return b""
        return stored[_TIME.size :]

    def save_next_row(self, calls: Calls, pack_before_ms: int, row: bytes) -> None:
        """Note that all rows before this one are done; the empty row means that a run is complete."""
        calls.change(self.table, [Change(PROGRESS_ROW, _VALUE, _TIME.pack(pack_before_ms) + row)])

    def bind_bucket(self, calls: Calls, bucket_ms: int) -> None:
        """Bind the store to this width of buckets. Raises ``StoreRefused`` if it is bound to another one.

        The width says when a bucket ended: a set of a wider bucket would be expired too early. Called before anything
        is packed: ``begun`` is there from then on.
        """
        bind = Swap(BUCKET_ROW, _VALUE, None, b"%d" % bucket_ms)
        stored = read_cells(calls, self.table, [(BUCKET_ROW, _VALUE)])[0]
        if stored == bind.value or swap_all(calls, self.table, [bind], [_bind])[0]:
            return
        stored = read_cells(calls, self.table, [(BUCKET_ROW, _VALUE)])[0] or UNBOUND
        if not stored.isdigit():
            raise damaged(f"The row {BUCKET_ROW.decode()} of meta", f"it must be a number, but is {stored[:32]!r}")
        raise StoreRefused(
            f"The posting sets of {calls.gateways.place} have buckets of {int(stored) / MS_PER_S:g} seconds, not "
            f"{bucket_ms / MS_PER_S:g}. Pack with that width, or unpack all sets first."
        )

    def unbind_bucket(self, calls: Calls) -> None:
        """Unbind the store from its width, when no set is left."""
        # Not deleted: it must stay there, and a delete would hide a put within the same millisecond.
        calls.change(self.table, [Change(BUCKET_ROW, _VALUE, UNBOUND)])


def _bind(swap: Swap, found: bytes | None) -> Decision:
    return swap._replace(expected=found) if found in (None, UNBOUND) else found == swap.value
