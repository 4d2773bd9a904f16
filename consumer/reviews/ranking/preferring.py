"""Updates the preferred members of stories, and writes events of those that changed."""

from collections.abc import Iterable

from sqlalchemy import Connection

from consumer.reviews.outbox.story_events import StoryChange, write_story_events
from consumer.reviews.ranking.preferred import MemberChanges, update_preferred, update_stories


def refresh_preferred(connection: Connection, changes: MemberChanges, now_ms: int) -> None:
    """Update the preferred members of the stories that changes concern, in the same transaction.

    The caller must hold ``Lock.FLAGS``.
    """
    _tell(connection, update_preferred(connection, changes), now_ms)


def refresh_preferred_in(connection: Connection, story_ids: Iterable[int], now_ms: int) -> None:
    """Update the preferred members of stories after ranks have changed, even if no rank is left.

    The caller must hold ``Lock.FLAGS``.
    """
    _tell(connection, update_stories(connection, story_ids), now_ms)


def _tell(connection: Connection, story_ids: Iterable[int], now_ms: int) -> None:
    changes = [StoryChange(story_id, "preferred") for story_id in sorted(story_ids)]
    if changes:
        write_story_events(connection, changes, now_ms)
