"""Repeats compare-and-sets until the outcome of each is known.

A compare-and-set that failed, or whose answer was lost, is resolved by reading the cell again: what is stored is the
truth. One whose answer was lost may still be carried out later; it then finds another cell than it expects, and changes
nothing.
"""

from collections.abc import Callable, Sequence
from typing import Final

from storage.hbase.calls import Calls
from storage.hbase.connection import Swap
from storage.hbase.failures import ConnectionLost

SwapDecision = bool | Swap
"""Whether the wanted state holds, or the swap to try next."""
Decide = Callable[[Swap, bytes | None], SwapDecision]
"""Decides what the cell read after a failed swap means, None for no cell."""

ROWS_AT_ONCE: Final = 128
"""Rows of a few cells read with one request."""


def unless_changed(swap: Swap, found: bytes | None) -> SwapDecision:
    """Try again where nothing has changed, as after a lost answer; else what is stored decides."""
    return swap if found == swap.expected else found == swap.value


def swap_all(calls: Calls, table: bytes, swaps: Sequence[Swap], decides: Sequence[Decide] | None = None) -> list[bool]:
    """Carry out each swap; its decider says what a failure means. The cells of one call differ."""
    decides = [unless_changed] * len(swaps) if decides is None else decides
    outcomes = [False] * len(swaps)
    under_way = dict(enumerate(swaps))
    while under_way:
        answers = calls.swap(table, list(under_way.values()))
        failed = {index: under_way[index] for index, answer in zip(under_way, answers, strict=True) if not answer}
        for index in under_way.keys() - failed.keys():
            outcomes[index] = True
        under_way = {}
        places = [(swap.row, swap.column) for swap in failed.values()]
        for index, found in zip(failed, read_cells(calls, table, places), strict=True):
            decision = decides[index](failed[index], found)
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
    """Return the value at each (row, column), None where there is no cell."""
    rows = list(dict.fromkeys(row for row, _ in places))
    families = sorted({column.partition(b":")[0] for _, column in places})
    found = calls.rows(table, rows, families, ROWS_AT_ONCE)
    cells = [found.get(row, {}).get(column) for row, column in places]
    return [None if cell is None else cell.value for cell in cells]
