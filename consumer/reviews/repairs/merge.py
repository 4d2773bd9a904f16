"""Merges stories, and undoes merges.

The flags of a merged story keep it as their story by lineage, so that an undo moves exactly these flags back.
"""

from typing import NamedTuple

from sqlalchemy import Connection, and_, delete, insert

from consumer.reviews.outbox.story_events import StoryChange
from consumer.reviews.people import Person
from consumer.reviews.portable import Lock, acquire_lock
from consumer.reviews.repairs.in_force import merged_stories, showing_story
from consumer.reviews.repairs.outcome import RepairRefused, write_repair_events
from consumer.reviews.stories import Story, story, story_by_id
from consumer.reviews.story_changes import move_flags
from consumer.reviews.tables import FLAGS, STORY_MERGES


class MergedStories(NamedTuple):
    """Two stories as they were before a merge or its undo. While merged, ``into`` shows the flags of ``story``."""

    story: Story
    into: Story


def merge(connection: Connection, story_id: int, into_id: int, person: Person, now_ms: int) -> MergedStories:
    """Merge a story into another one. Raises ``RepairRefused``: ``gone`` or ``merged``.

    The id of a merged story stands for the story that shows its flags, so merges cannot form a cycle. A merge takes
    time in proportion to the number of flags in the first story.
    """
    acquire_lock(connection, Lock.FLAGS)
    merged, into = story(connection, story_id), story(connection, into_id)
    if merged is None or into is None:
        raise RepairRefused("gone")
    if merged.story_id == into.story_id:
        raise RepairRefused("merged")
    roots = {"root_id": merged.root_id, "into_root_id": into.root_id}
    connection.execute(insert(STORY_MERGES).values(**roots, person_id=person.person_id, at_ms=now_ms))
    move_flags(connection, FLAGS.c.story_id == merged.story_id, into.story_id)
    write_repair_events(connection, StoryChange(merged.story_id, "merged", person.name, into=into.story_id), now_ms)
    return MergedStories(merged, into)


def undo_merge(connection: Connection, story_id: int, person: Person, now_ms: int) -> MergedStories:
    """Undo a merge, so that the story again shows its flags, and those of stories merged into it.

    Raises ``RepairRefused``: ``gone``.
    """
    acquire_lock(connection, Lock.FLAGS)
    merged, head = story_by_id(connection, story_id), story_by_id(connection, showing_story(connection, story_id))
    if merged is None or head is None or merged.story_id == head.story_id:
        raise RepairRefused("gone")
    connection.execute(delete(STORY_MERGES).where(STORY_MERGES.c.root_id == merged.root_id))
    homes = [story_id, *merged_stories(connection, story_id)]
    own = (FLAGS.c.story_id == head.story_id, FLAGS.c.home_id.in_(homes))
    move_flags(connection, and_(*own), story_id)
    write_repair_events(connection, StoryChange(head.story_id, "split", person.name, into=story_id), now_ms)
    return MergedStories(merged, head)
