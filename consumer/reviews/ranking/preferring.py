"""Updates the preferred members of stories, and writes an event of each new preferred member."""

from collections.abc import Iterable

from sqlalchemy import Connection

from consumer.reviews.outbox.story_events import StoryChange, write_story_events
from consumer.reviews.ranking.preferred import MemberChanges, update_preferred, update_preferred_in


def refresh_preferred(connection: Connection, changes: MemberChanges, now_ms: int) -> None:
    """Update the preferred members of stories after changes, and write an event of each new one.

    The caller must hold ``Lock.FLAGS``.
    """
    _write_events(connection, update_preferred(connection, changes), now_ms)


def refresh_preferred_in(connection: Connection, story_ids: Iterable[int], now_ms: int) -> None:
    """Update the preferred members of these stories after ranks have changed, even if no rank is left.

    The caller must hold ``Lock.FLAGS``.
    """
    _write_events(connection, update_preferred_in(connection, story_ids), now_ms)


def _write_events(connection: Connection, story_ids: Iterable[int], now_ms: int) -> None:
    changes = [StoryChange(story_id, "preferred") for story_id in sorted(story_ids)]
    if changes:
        write_story_events(connection, changes, now_ms)
