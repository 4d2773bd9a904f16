"""Kept versions that this process has seen repeated: what a flood of copies is recognised by before it costs a write.

Copies of a known original never get postings at all: deleted postings would cost every later reader of their rows.
Whatever is recalled here is only a hint, read again from the store before it is acted upon.
"""

from collections import OrderedDict, defaultdict

from storage.records import Record

KNOWN_ORIGINALS_MAX = 10_000
"""Originals that one process remembers."""
FLOOD_COPIES_MIN = 100
"""An original has a flood of copies from this one on."""
ORIGINALS_A_KEY_MAX = 64
"""A key that more originals share says nothing about a copy of one of them: it is not asked."""


class KnownOriginals:
    """References of kept versions by posting key, the least recently repeated one forgotten first."""

    def __init__(self, originals_max: int) -> None:
        self._originals_max = originals_max
        self._copies: dict[bytes, int] = {}
        self._keys: OrderedDict[bytes, tuple[bytes, ...]] = OrderedDict()
        # Tuples: nearly every key has one reference, and a dictionary for each would be half of a consumer's objects.
        self._by_key: dict[bytes, tuple[bytes, ...]] = {}

    def remember(self, record: Record) -> int:
        """Note that this kept version was repeated; return how often it was since it was first remembered."""
        reference = record.reference
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
        """Drop a version that is kept no longer, or no longer there."""
        self._copies.pop(reference, None)
        for key in self._keys.pop(reference, ()):
            others = tuple(one for one in self._by_key.pop(key) if one != reference)
            if others:
                self._by_key[key] = others

    def recall(self, record: Record, originals_max: int) -> list[bytes]:
        """References of originals that share a key with the record, those that share most keys first.

        Keys of a crowd, where many originals share one, are passed over: a copy shares all keys with its original.
        """
        shared: defaultdict[bytes, int] = defaultdict(int)
        for key in record.keys:
            references = self._by_key.get(key, ())
            for reference in references if len(references) <= ORIGINALS_A_KEY_MAX else ():
                shared[reference] += 1
        return sorted(shared, key=lambda reference: (-shared[reference], reference))[:originals_max]
