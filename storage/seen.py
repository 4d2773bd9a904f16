"""What is remembered of a text beyond the window: when it was seen first and last, and how often.

A text is named by the digest of its normalised form (``Record.text_digest``, 16 bytes), whatever the id it comes under.
"""

import struct
from typing import Final, NamedTuple

from storage.records import DIGEST_BYTES

TEXT_DIGEST_BYTES: Final = DIGEST_BYTES
_FORM: Final = struct.Struct(">QQQQ")
SEEN_BYTES: Final = _FORM.size


class Seen(NamedTuple):
    """When a text was seen, by the arrivals of its articles: times in milliseconds since 1970.

    ``last_sequence`` is the sequence of the last arrival. Only an arrival later than the last one adds to ``times``, so
    that repeating a batch changes nothing; the true number may be higher.
    """

    first_ms: int
    last_ms: int
    last_sequence: int
    times: int


class SeenChange(NamedTuple):
    """A compare-and-set of what is remembered of a text: from ``before`` (None: nothing) to ``after``."""

    digest: bytes
    before: Seen | None
    after: Seen


def encode_seen(seen: Seen) -> bytes:
    """Return the 32 bytes that stores hold: four numbers of 8 bytes, big-endian."""
    return _FORM.pack(*seen)


def decode_seen(value: bytes) -> Seen:
    """Decode them. Raises ``ValueError`` for bytes that nobody can have written."""
    try:
        seen = Seen(*_FORM.unpack(value))
    except struct.error as error:
        raise ValueError(f"it has {len(value)} bytes instead of {SEEN_BYTES}") from error
    if seen.first_ms > seen.last_ms or not seen.times:
        raise ValueError(f"first {seen.first_ms}, last {seen.last_ms} and {seen.times} times contradict each other")
    return seen


def merged(one: Seen, other: Seen) -> Seen:
    """Return what both together say at least: two memories of the same arrivals, as after a copy, count them once."""
    last = max((one.last_ms, one.last_sequence), (other.last_ms, other.last_sequence))
    return Seen(min(one.first_ms, other.first_ms), *last, max(one.times, other.times))
