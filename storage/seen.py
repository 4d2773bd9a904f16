"""The memory of texts beyond the window: when each was seen first and last, and how often.

A text is named by the digest of its normalised form (``Record.text_digest``, 16 bytes), whatever its article's id.
"""

import struct
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

from storage.records import DIGEST_BYTES

TEXT_DIGEST_BYTES: Final = DIGEST_BYTES
_FORM: Final = struct.Struct(">QQQQ")
SEEN_BYTES: Final = _FORM.size


class SeenTimes(NamedTuple):
    """The times at which a text was seen: arrivals of its articles, in milliseconds since 1970.

    ``last_sequence`` is the sequence of the last arrival. ``times`` counts an arrival only if it is later than all
    counted before, so that repeating a batch changes nothing. The true number may be higher.
    """

    first_ms: int
    last_ms: int
    last_sequence: int
    times: int


class SeenChange(NamedTuple):
    """A compare-and-set of the entry of a text: from ``before`` (None: no entry) to ``after``."""

    digest: bytes
    before: SeenTimes | None
    after: SeenTimes


def encode_seen(seen: SeenTimes) -> bytes:
    """Return the 32 bytes that stores hold: four numbers of 8 bytes, big-endian."""
    return _FORM.pack(*seen)


def decode_seen(value: bytes) -> SeenTimes:
    """Decode the stored bytes. Raises ``ValueError`` if ``encode_seen`` cannot have written them."""
    try:
        seen = SeenTimes(*_FORM.unpack(value))
    except struct.error as error:
        raise ValueError(f"it has {len(value)} bytes instead of {SEEN_BYTES}") from error
    if seen.first_ms > seen.last_ms or not seen.times:
        raise ValueError(f"first {seen.first_ms}, last {seen.last_ms} and {seen.times} times contradict each other")
    return seen


def merge_entries(one: SeenTimes, other: SeenTimes) -> SeenTimes:
    """Merge two entries of a text. The greater count is used, because both may have counted the same arrivals."""
    last = max((one.last_ms, one.last_sequence), (other.last_ms, other.last_sequence))
    return SeenTimes(min(one.first_ms, other.first_ms), *last, max(one.times, other.times))


class SeenEntries:
    """The entries of a store in memory, by digest, each with the time of writing. Not thread-safe."""

    def __init__(self) -> None:
        # In order of writing, except that ``forget`` moves entries that it keeps to the end.
        self._entries: OrderedDict[bytes, tuple[int, SeenTimes]] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._entries)

    def items(self) -> list[tuple[bytes, SeenTimes]]:
        """Return all entries."""
        return [(digest, seen) for digest, (_, seen) in self._entries.items()]

    def read(self, digests: Sequence[bytes]) -> list[SeenTimes | None]:
        """Return the entry of each of these texts, or None where there is none."""
        entries = (self._entries.get(digest) for digest in digests)
        return [None if entry is None else entry[1] for entry in entries]

    def change(self, changes: Sequence[SeenChange], now_ms: int) -> list[bool]:
        """Carry out each compare-and-set; return True where ``after`` is stored now."""
        stored = self.read([change.digest for change in changes])
        for change, current in zip(changes, stored, strict=True):
            if current == change.before:
                self._entries[change.digest] = now_ms, change.after
                self._entries.move_to_end(change.digest)
        return [current in (change.before, change.after) for change, current in zip(changes, stored, strict=True)]

    def forget(self, before_ms: int, texts_max: int) -> int:
        """Look at up to ``texts_max`` entries, and delete those last seen and last written before ``before_ms``.

        Stops at the first entry written later. Returns the number of deleted entries.
        """
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
