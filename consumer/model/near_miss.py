"""Near misses: pairs just under the threshold, of which a sample is sent, so that people can say what is missed.

Unlike a verdict the event is stored nowhere. What is said of verdict events holds here, too: readers skip members that
they do not know, and a new member is optional.
"""

from typing import Annotated, Final, Literal

import msgspec

from consumer.model.verdict import Distance, Similarity, Timestamp, VersionName

SCHEMA: Final = "dupwatch.near-miss/1"


class NearMiss(msgspec.Struct, frozen=True, kw_only=True):
    """All fields of the event, which ``docs/use/events.md`` describes."""

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
    """Return the near miss of an event. Raises ``msgspec.DecodeError`` for anything else."""
    return msgspec.json.decode(data, type=NearMiss)
