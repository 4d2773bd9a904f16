"""Remembers pending cells that this process has seen, so that they can be settled without being read again."""

from collections import OrderedDict
from threading import Lock


class CellCache:
    """The last pending cells seen, by reference; the least recently used goes first. Thread-safe.

    A cell may be out of date; then its compare-and-set fails.
    """

    def __init__(self, cells_max: int) -> None:
        self._cells_max = cells_max
        self._cells: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = Lock()

    def remember(self, reference: bytes, cell: bytes) -> None:
        """Store a cell."""
        with self._lock:
            self._cells[reference] = cell
            self._cells.move_to_end(reference)
            if len(self._cells) > self._cells_max:
                self._cells.popitem(last=False)

    def take(self, reference: bytes) -> bytes | None:
        """Remove a cell and return it as last seen, None if it is unknown."""
        with self._lock:
            return self._cells.pop(reference, None)
