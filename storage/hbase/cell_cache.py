"""What this process has seen of pending cells, so that they can be settled without being read again."""

from collections import OrderedDict
from threading import Lock


class CellCache:
    """The pending cells met last, by reference; the one that was used longest ago goes first. For any thread.

    What it says may be out of date: the compare-and-set finds out.
    """

    def __init__(self, cells_max: int) -> None:
        self._cells_max = cells_max
        self._cells: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = Lock()

    def remember(self, reference: bytes, cell: bytes) -> None:
        """Keep a cell."""
        with self._lock:
            self._cells[reference] = cell
            self._cells.move_to_end(reference)
            if len(self._cells) > self._cells_max:
                self._cells.popitem(last=False)

    def take(self, reference: bytes) -> bytes | None:
        """The cell as it was seen last, which is forgotten with that; None where it is not known."""
        with self._lock:
            return self._cells.pop(reference, None)
