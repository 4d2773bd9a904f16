"""Remembers cells and parts of them that this process has seen, so that they need not be read again."""

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock


class CellCache:
    """The last values seen, by reference; the least recently used goes first. Thread-safe.

    A pending cell may be out of date; then its compare-and-set fails. A sketch never changes.
    """

    def __init__(self, cells_max: int) -> None:
        self._cells_max = cells_max
        self._cells: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = Lock()

    def remember(self, reference: bytes, cell: bytes) -> None:
        """Store a value."""
        with self._lock:
            self._cells[reference] = cell
            self._cells.move_to_end(reference)
            if len(self._cells) > self._cells_max:
                self._cells.popitem(last=False)

    def take(self, reference: bytes) -> bytes | None:
        """Remove a value and return it as last seen, None if it is unknown."""
        with self._lock:
            return self._cells.pop(reference, None)

    def known(self, references: Sequence[bytes]) -> list[bytes]:
        """Return values as last seen, empty where they are unknown; they stay."""
        with self._lock:
            found = [self._cells.get(reference, b"") for reference in references]
            for reference, cell in zip(references, found, strict=True):
                if cell:
                    self._cells.move_to_end(reference)
            return found
