"""Flood events: very many copies of one story have arrived within a short time, counted over all consumers."""

from typing import Annotated, Final, Literal

import msgspec

from consumer.model.verdict import Timestamp

FLOOD_SCHEMA: Final = "dupwatch.flood/1"

Count = Annotated[int, msgspec.Meta(ge=1)]


class FloodEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a flood; ``docs/use/events.md`` describes the fields. It is sent at least once.

    ``original`` is the article that the copies repeat. ``source`` is its source, null if unknown. ``copies`` counts the
    copies since ``began_at``. The console assigns the numbers ``flood`` and ``story``.
    """

    schema: Literal["dupwatch.flood/1"] = FLOOD_SCHEMA
    flood: Count
    story: Count
    original: str
    source: str | None
    copies: Count
    began_at: Timestamp
    noted_at: Timestamp


def encode_flood(event: FloodEvent) -> bytes:
    """Return the event as JSON without a line end; equal events give equal bytes."""
    return msgspec.json.encode(event)
