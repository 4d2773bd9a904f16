"""The table ``meta``: facts about the whole store, such as its settings and layout, and the state of packing.

Look-ups read the state of packing too. Its progress may be lost without harm, but the row of the bucket length may not.
This row is written before the first posting is packed and never deleted, so a store without the row has no sets.
"""

import struct
from typing import Final

from storage.clock import MS_PER_S
from storage.errors import StoreRefused, StoreUnavailable
from storage.hbase.calls import Calls
from storage.hbase.connection import CellAddress, CellChange, Swap
from storage.hbase.failures import damage_error
from storage.hbase.swapping import SwapDecision, read_cells, swap_all

CODE_BYTES_ROW: Final = b"code_bytes"
LAYOUT_ROW: Final = b"layout"

_COLUMN: Final = b"m:v"
_BUCKET_ROW: Final = b"pack_bucket_ms"
_PROGRESS_ROW: Final = b"pack"
_UNBOUND: Final = b"0"
_CLOCK: Final = b"m:clock"
_FAMILY: Final = b"m"
_TIME: Final = struct.Struct(">Q")


class Meta:
    """The operations on this table. Each method sends its requests through the given ``Calls``."""

    def __init__(self, table: bytes) -> None:
        self._table = table

    def read(self, calls: Calls, row: bytes) -> bytes | None:
        """Return the value of a row, or None if there is none yet."""
        return read_cells(calls, self._table, [(row, _COLUMN)])[0]

    def agree(self, calls: Calls, row: bytes, value: bytes) -> bytes:
        """Write a value unless the row already has one, and return the stored value."""
        swap_all(calls, self._table, [Swap(row, _COLUMN, None, value)])
        stored = self.read(calls, row)
        if stored is None:
            raise StoreUnavailable(f"The row {row.decode()} of meta was deleted while it was being written.")
        return stored

    def replace(self, calls: Calls, row: bytes, before: bytes, value: bytes) -> None:
        """Replace ``before`` with a value by compare-and-set. Do nothing if a third value is stored."""
        swap_all(calls, self._table, [Swap(row, _COLUMN, before, value)])


class PackMeta(Meta):
    """The table with the rows about packing."""

    def server_ms(self, calls: Calls) -> int:
        """Return the time by a server's clock, which stamps cells: write a cell and read its time stamp."""
        calls.change(self._table, [CellChange(_PROGRESS_ROW, _CLOCK, b"")])
        written: int = calls.rows(self._table, [_PROGRESS_ROW], [_FAMILY], 1)[_PROGRESS_ROW][_CLOCK].timestamp
        return written

    @property
    def pack_mark(self) -> CellAddress:
        """The cell that exists once any packer has begun on this store. From then on there may be sets."""
        return CellAddress(self._table, _BUCKET_ROW, _COLUMN)

    def next_row(self, calls: Calls, pack_before_ms: int) -> bytes:
        """Return the row where a run with this ``pack_before_ms`` stopped, or the first row if no such run did."""
        stored = self.read(calls, _PROGRESS_ROW)
        if stored is None or stored[: _TIME.size] != _TIME.pack(pack_before_ms):
            return b""
        return stored[_TIME.size :]

    def save_next_row(self, calls: Calls, pack_before_ms: int, row: bytes) -> None:
        """Save that all rows before this one are done. An empty ``row`` means that the run is complete."""
        calls.change(self._table, [CellChange(_PROGRESS_ROW, _COLUMN, _TIME.pack(pack_before_ms) + row)])

    def bind_bucket(self, calls: Calls, bucket_ms: int) -> None:
        """Bind the store to this length of buckets. Raises ``StoreRefused`` if it is bound to another one.

        The length tells when a bucket ended: with a shorter one, sets of longer buckets would be deleted too early.
        This must be called before anything is packed. From then on the cell ``pack_mark`` exists.
        """
        bind = Swap(_BUCKET_ROW, _COLUMN, None, b"%d" % bucket_ms)
        stored = self.read(calls, _BUCKET_ROW)
        if stored == bind.value or swap_all(calls, self._table, [bind], [_decide_bind])[0]:
            return
        stored = self.read(calls, _BUCKET_ROW) or _UNBOUND
        if not stored.isdigit():
            raise damage_error(
                f"The row {_BUCKET_ROW.decode()} of meta", f"it must be a number, but is {stored[:32]!r}"
            )
        raise StoreRefused(
            f"The posting sets of {calls.gateways.place} have buckets of {int(stored) / MS_PER_S:g} seconds, not "
            f"{bucket_ms / MS_PER_S:g}. Pack with that length, or unpack all sets first."
        )

    def unbind_bucket(self, calls: Calls) -> None:
        """Unbind the store from its length of buckets. No set may be left."""
        # The cell must stay, and deleting it would hide a put within the same millisecond.
        calls.change(self._table, [CellChange(_BUCKET_ROW, _COLUMN, _UNBOUND)])


def _decide_bind(swap: Swap, cell: bytes | None) -> SwapDecision:
    return swap._replace(expected=cell) if cell in (None, _UNBOUND) else cell == swap.value
