"""Near misses: pairs just under the threshold. A sample is sent, so that people can say which duplicates are missed.

Unlike verdicts, these events are not stored. As with verdict events, readers skip unknown members, and new members are
optional.
"""

from typing import Annotated, Final, Literal

import msgspec

from consumer.model.verdict import Distance, Similarity, Timestamp, VersionName

SCHEMA: Final = "dupwatch.near-miss/1"


class NearMiss(msgspec.Struct, frozen=True, kw_only=True):
    """A near miss; ``docs/use/events.md`` describes the fields."""

    schema: Literal["dupwatch.near-miss/1"] = SCHEMA
    id: str
    version: VersionName
    original: str
    original_version: VersionName
    source: str
    original_source: str
    similarity: Similarity
    threshold: Similarity
    distance: Distance
    sampled_in: Annotated[float, msgspec.Meta(ge=1.0)]
    truncated: bool
    arrived_at: Timestamp
    decided_at: Timestamp


def encode(near_miss: NearMiss) -> bytes:
    """Return the event as JSON without a line end; equal near misses give equal bytes."""
    return msgspec.json.encode(near_miss)


def decode_near_miss(data: bytes) -> NearMiss:
    """Decode an event. Raises ``msgspec.DecodeError``, ``UnicodeDecodeError`` or ``RecursionError`` for other bytes."""
    return msgspec.json.decode(data, type=NearMiss)
