"""Remembers sketches of versions that this process has read: candidates of one article are often those of another."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Lock

from storage.records import Stored


class SketchCache:
    """The sketches of the last versions that were read, by reference; the least recently used goes first. Thread-safe.

    A sketch never changes, so none is ever out of date.
    """

    def __init__(self, sketches_max: int) -> None:
        self._sketches_max = sketches_max
        self._sketches: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = Lock()

    def note(self, read: Iterable[Stored | None]) -> None:
        """Remember the sketches of these versions."""
        with self._lock:
            for stored in read:
                if stored is not None and stored.record.sketch:
                    self._sketches[stored.record.reference] = stored.record.sketch
                    self._sketches.move_to_end(stored.record.reference)
            while len(self._sketches) > self._sketches_max:
                self._sketches.popitem(last=False)

    def known(self, references: Sequence[bytes]) -> list[bytes]:
        """Return the sketches of these versions, empty where they are not remembered."""
        with self._lock:
            found = [self._sketches.get(reference, b"") for reference in references]
            for reference, sketch in zip(references, found, strict=True):
                if sketch:
                    self._sketches.move_to_end(reference)
            return found
