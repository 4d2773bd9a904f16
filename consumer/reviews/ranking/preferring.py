"""Brings the preferred members of stories up to date, and tells of those that changed."""

from collections.abc import Iterable

from sqlalchemy import Connection

from consumer.reviews.outbox.story_events import StoryChange, tell_of_stories
from consumer.reviews.ranking.preferred import MemberChanges, update_preferred, update_stories


def prefer_again(connection: Connection, changes: MemberChanges, now_ms: int) -> None:
    """Update the preferred members of the stories that changes concern, in the transaction of these changes.

    Whoever calls this holds ``Lock.FLAGS``.
    """
    _tell(connection, update_preferred(connection, changes), now_ms)


def prefer_in(connection: Connection, story_ids: Iterable[int], now_ms: int) -> None:
    """Update the preferred members of stories after ranks have changed, also where no rank is left.

    Whoever calls this holds ``Lock.FLAGS``.
    """
    _tell(connection, update_stories(connection, story_ids), now_ms)


def _tell(connection: Connection, story_ids: Iterable[int], now_ms: int) -> None:
    changes = [StoryChange(story_id, "preferred") for story_id in sorted(story_ids)]
    if changes:
        tell_of_stories(connection, changes, now_ms)
