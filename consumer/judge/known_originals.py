"""Remembers kept versions that were repeated, so that copies in a flood are recognised without a write.

Copies of a known original never get postings, since deleted postings slow down every later read of their rows. What is
remembered here is only a hint: it is read again from the store before it is used.
"""

from collections import OrderedDict, defaultdict
from threading import RLock

from storage.records import Record

KNOWN_ORIGINALS_MAX = 10_000
"""Originals that one process remembers."""
FLOOD_COPIES_MIN = 100
"""The number of copies from which on an original has a flood."""
ORIGINALS_A_KEY_MAX = 64
"""A key that more originals share is ignored, since it hardly helps to recognise a copy."""


class KnownOriginals:
    """References of kept versions by posting key; the least recently repeated one is forgotten first. Thread-safe."""

    def __init__(self, originals_max: int) -> None:
        self._originals_max = originals_max
        self._copies: dict[bytes, int] = {}
        self._keys: OrderedDict[bytes, tuple[bytes, ...]] = OrderedDict()
        # Tuples: nearly every key has one reference, and a set for each would be half of all objects in the process.
        self._by_key: dict[bytes, tuple[bytes, ...]] = {}
        self._lock = RLock()

    def remember(self, record: Record) -> int:
        """Note that a kept version was repeated; return the number of repeats since it was first remembered."""
        reference = record.reference
        with self._lock:
            copies = self._copies[reference] = self._copies.get(reference, 0) + 1
            if reference in self._keys:
                self._keys.move_to_end(reference)
                return copies
            self._keys[reference] = record.keys
            for key in record.keys:
                self._by_key[key] = (*self._by_key.get(key, ()), reference)
            if len(self._keys) > self._originals_max:
                self.forget(next(iter(self._keys)))
            return copies

    def forget(self, reference: bytes) -> None:
        """Forget a version that is no longer kept, or no longer stored."""
        with self._lock:
            self._copies.pop(reference, None)
            for key in self._keys.pop(reference, ()):
                others = tuple(other for other in self._by_key.pop(key) if other != reference)
                if others:
                    self._by_key[key] = others

    def recall(self, record: Record, originals_max: int) -> list[bytes]:
        """Return originals that share a key with the record, by reference; those that share the most keys come first.

        Keys that many originals share are skipped: a copy has all keys of its original, so others remain.
        """
        shared: defaultdict[bytes, int] = defaultdict(int)
        for key in record.keys:
            references = self._by_key.get(key, ())
            for reference in references if len(references) <= ORIGINALS_A_KEY_MAX else ():
                shared[reference] += 1
        return sorted(shared, key=lambda reference: (-shared[reference], reference))[:originals_max]
