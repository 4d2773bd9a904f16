"""Writes events of floods into the outbox."""

from typing import Final

from sqlalchemy import Connection

from consumer.model.flood import FloodEvent, encode_flood
from consumer.reviews import floods, stories
from consumer.reviews.floods import Flood
from consumer.reviews.outbox.events import NewEvent, append
from consumer.reviews.outbox.story_events import StoryChange, tell_of_stories
from consumer.text.timestamps import rfc3339
from storage.clock import MS_PER_S

FRESH_S: Final = 3_600.0
"""A flood that ended longer ago is not told of: the console reads its flags again, or was away."""
FLOODS_MAX: Final = 100


def tell_of_floods(connection: Connection, now_ms: int) -> list[Flood]:
    """Write the events of floods that were not told of yet, and return these; those of long ago are passed over.

    Whoever calls this holds ``Lock.FLAGS``.
    """
    untold = floods.unannounced_floods(connection, FLOODS_MAX)
    fresh = [flood for flood in untold if flood.last_ms >= now_ms - FRESH_S * MS_PER_S]
    append(connection, [_event(connection, flood) for flood in fresh], now_ms)
    if fresh:
        tell_of_stories(connection, [StoryChange(flood.story_id, "flood") for flood in fresh], now_ms)
    for flood in untold:
        floods.mark_announced(connection, flood.flood_id, now_ms)
    return fresh


def _event(connection: Connection, flood: Flood) -> NewEvent:
    story = stories.story(connection, flood.story_id)
    source = None if story is None else story.root_source
    payload = encode_flood(
        FloodEvent(
            flood=flood.flood_id,
            story=flood.story_id,
            original=flood.root_id,
            source=source,
            copies=flood.copies,
            began_at=rfc3339(flood.began_ms),
            noted_at=rfc3339(flood.noted_ms),
        )
    )
    return NewEvent("flood", flood.story_id, frozenset({source} if source else ()), lambda _: payload)
