"""Writes events of floods into the outbox."""

from typing import Final

from sqlalchemy import Connection

from consumer.model.flood import FloodEvent, encode_flood
from consumer.reviews import floods, stories
from consumer.reviews.floods import Flood
from consumer.reviews.outbox.events import NewEvent, append
from consumer.reviews.outbox.story_events import StoryChange, write_story_events
from consumer.text.timestamps import rfc3339
from storage.clock import MS_PER_S

FLOOD_AGE_S_MAX: Final = 3_600.0
"""Floods that ended longer ago get no event: the console is reading old flags again, or was down."""
FLOODS_MAX: Final = 100
"""The maximum number of floods to examine at once."""


def write_flood_events(connection: Connection, now_ms: int) -> list[Flood]:
    """Write the events of floods that have none yet, and return these floods. Old floods get no event.

    The caller must hold ``Lock.FLAGS``.
    """
    unannounced = floods.unannounced_floods(connection, FLOODS_MAX)
    fresh = [flood for flood in unannounced if flood.last_ms >= now_ms - FLOOD_AGE_S_MAX * MS_PER_S]
    append(connection, [_event(connection, flood) for flood in fresh], now_ms)
    if fresh:
        write_story_events(connection, [StoryChange(flood.story_id, "flood") for flood in fresh], now_ms)
    for flood in unannounced:
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
