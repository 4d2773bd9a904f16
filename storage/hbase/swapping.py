"""Repeats compare-and-sets until the outcome of each is known.

A compare-and-set that failed, or whose answer was lost, is resolved by reading the cell: what is stored is the truth.
If the answer was lost, HBase may still carry out the request later. By then the cell has another value, so the late
request changes nothing.
"""

from collections.abc import Callable, Sequence
from typing import Final

from storage.hbase.calls import Calls
from storage.hbase.connection import Swap
from storage.hbase.failures import ConnectionLost

SwapDecision = bool | Swap
"""Whether the cell is in the desired state, or the swap to try next."""
Decide = Callable[[Swap, bytes | None], SwapDecision]
"""Decides, from the cell (or None) that was read after a failed swap, how to go on."""

ROWS_AT_ONCE: Final = 128
"""The maximum number of rows with few cells that one request reads."""


def retry_if_unchanged(swap: Swap, cell: bytes | None) -> SwapDecision:
    """Try again if the cell has not changed, as after a lost answer. If it has, compare it with the new value."""
    return swap if cell == swap.expected else cell == swap.value


def swap_all(calls: Calls, table: bytes, swaps: Sequence[Swap], deciders: Sequence[Decide] | None = None) -> list[bool]:
    """Carry out each swap, and return which cells are in the desired state.

    After a failure the swap's decider says how to go on. The cells of one call must be distinct.
    """
    deciders = [retry_if_unchanged] * len(swaps) if deciders is None else deciders
    outcomes = [False] * len(swaps)
    under_way = dict(enumerate(swaps))
    while under_way:
        answers = calls.swap(table, list(under_way.values()))
        failed = {index: under_way[index] for index, answer in zip(under_way, answers, strict=True) if not answer}
        for index in under_way.keys() - failed.keys():
            outcomes[index] = True
        under_way = {}
        places = [(swap.row, swap.column) for swap in failed.values()]
        for index, cell in zip(failed, read_cells(calls, table, places), strict=True):
            decision = deciders[index](failed[index], cell)
            if isinstance(decision, bool):
                outcomes[index] = decision
            else:
                under_way[index] = decision
        if under_way:
            calls.pause(
                ConnectionLost(f"{len(under_way)} compare-and-sets got no answer, or their cells changed in between")
            )
    return outcomes


def read_cells(calls: Calls, table: bytes, places: Sequence[tuple[bytes, bytes]]) -> list[bytes | None]:
    """Return the value at each (row, column), or None where there is no cell."""
    rows = list(dict.fromkeys(row for row, _ in places))
    families = sorted({column.partition(b":")[0] for _, column in places})
    columns_by_row = calls.rows(table, rows, families, ROWS_AT_ONCE)
    cells = [columns_by_row.get(row, {}).get(column) for row, column in places]
    return [None if cell is None else cell.value for cell in cells]
