"""What packers know of each other: rows of the table ``meta``. All of it may be lost without harm to a posting."""

import struct
from typing import Final, NamedTuple

from storage.errors import StoreRefused
from storage.hbase.calls import Calls
from storage.hbase.connection import Change, Swap
from storage.hbase.failures import damaged
from storage.hbase.swapping import Decision, read_cells, swap_all

BUCKET_ROW: Final = b"pack_bucket_ms"
PROGRESS_ROW: Final = b"pack"
UNBOUND: Final = b"0"
_VALUE: Final = b"m:v"
_CLOCK: Final = b"m:clock"
_FAMILY: Final = b"m"
_CUT: Final = struct.Struct(">Q")


class PackMeta(NamedTuple):
    """The rows of packing, in the table of this name."""

    table: bytes

    def server_ms(self, calls: Calls) -> int:
        """What the time is by a server's clock, which cells are dated by: that of a cell written just now."""
        calls.change(self.table, [Change(PROGRESS_ROW, _CLOCK, b"")])
        written: int = calls.rows(self.table, [PROGRESS_ROW], [_FAMILY], 1)[PROGRESS_ROW][_CLOCK].timestamp
        return written

    def resume(self, calls: Calls, cut_ms: int) -> bytes:
        """The row where a run with this cut was stopped; the first one where there was none such."""
        stored = read_cells(calls, self.table, [(PROGRESS_ROW, _VALUE)])[0]
        if stored is None or stored[: _CUT.size] != _CUT.pack(cut_ms):
            return b""
        return stored[_CUT.size :]

    def keep(self, calls: Calls, cut_ms: int, row: bytes) -> None:
        """Note that all rows before this one are done; the empty row says that a run came to its end."""
        calls.change(self.table, [Change(PROGRESS_ROW, _VALUE, _CUT.pack(cut_ms) + row)])

    def agree(self, calls: Calls, bucket_ms: int) -> None:
        """Bind the store to this width of buckets, or refuse another one than it is bound to.

        By the width it is known when a bucket ended: a set of a wider one would be expired too early.
        """
        bind = Swap(BUCKET_ROW, _VALUE, None, b"%d" % bucket_ms)
        there = read_cells(calls, self.table, [(BUCKET_ROW, _VALUE)])[0]
        if there == bind.value or swap_all(calls, self.table, [bind], [_bind])[0]:
            return
        there = read_cells(calls, self.table, [(BUCKET_ROW, _VALUE)])[0] or UNBOUND
        if not there.isdigit():
            raise damaged(f"The row {BUCKET_ROW.decode()} of meta", f"it should be a number, and is {there[:32]!r}")
        raise StoreRefused(
            f"The posting sets of {calls.gateways.place} have buckets of {int(there) / 1000:g} seconds, not "
            f"{bucket_ms / 1000:g}. Pack with that width, or unpack all of them first."
        )

    def release(self, calls: Calls) -> None:
        """Forget the width: there are no sets any more."""
        # A delete would hide what is put in the same millisecond.
        calls.change(self.table, [Change(BUCKET_ROW, _VALUE, UNBOUND)])


def _bind(swap: Swap, found: bytes | None) -> Decision:
    return swap._replace(expected=found) if found in (None, UNBOUND) else found == swap.value
