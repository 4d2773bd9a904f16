"""A flood: very many copies of one story within a short time, over all consumers. The event that says it has begun."""

from typing import Annotated, Final, Literal

import msgspec

from consumer.model.verdict import Timestamp

FLOOD_SCHEMA: Final = "dupwatch.flood/1"

Count = Annotated[int, msgspec.Meta(ge=1)]


class FloodEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A flood has begun; ``docs/use/events.md`` describes the fields. It is sent at least once.

    ``original`` is the article that the copies go back to, ``source`` where that came from, null where that is not
    known. ``copies`` have come since ``began_at``. ``flood`` and ``story`` are numbers of the console.
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
