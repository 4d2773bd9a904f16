"""What a store in memory remembers of texts. Not thread-safe: the store has a lock around every call."""

from collections import OrderedDict
from collections.abc import Sequence

from storage.seen import Seen, SeenChange


class SeenEntries:
    """Entries by digest, each with the time at which it was written."""

    def __init__(self) -> None:
        # In order of writing: the front is what may be forgotten next.
        self._entries: OrderedDict[bytes, tuple[int, Seen]] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._entries)

    def items(self) -> list[tuple[bytes, Seen]]:
        """Return all entries."""
        return [(digest, seen) for digest, (_, seen) in self._entries.items()]

    def read(self, digests: Sequence[bytes]) -> list[Seen | None]:
        """Return what is remembered of these texts."""
        entries = (self._entries.get(digest) for digest in digests)
        return [None if entry is None else entry[1] for entry in entries]

    def change(self, changes: Sequence[SeenChange], now_ms: int) -> list[bool]:
        """Carry out each compare-and-set; return where ``after`` is stored now."""
        stored = self.read([change.digest for change in changes])
        for change, found in zip(changes, stored, strict=True):
            if found == change.before:
                self._entries[change.digest] = now_ms, change.after
                self._entries.move_to_end(change.digest)
        return [found in (change.before, change.after) for change, found in zip(changes, stored, strict=True)]

    def forget(self, before_ms: int, texts_max: int) -> int:
        """Delete what was last seen and last written before that; look at no more than ``texts_max``."""
        forgotten = 0
        for _ in range(min(texts_max, len(self._entries))):
            digest, (written_ms, seen) = next(iter(self._entries.items()))
            if written_ms >= before_ms:
                break
            if seen.last_ms < before_ms:
                del self._entries[digest]
                forgotten += 1
            else:
                self._entries.move_to_end(digest)
        return forgotten
