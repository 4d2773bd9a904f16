"""Splits a flagged version off its story, and undoes splits.

The version becomes the root of a new story with its own copies. Its flag moves there, and keeps its state and
original.
"""

from typing import Any, Literal

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from consumer.reviews.flag_row import IN_FORCE
from consumer.reviews.kinds.rules import COPY_KINDS
from consumer.reviews.lineage import Descent, homes_of, move_with_copies, with_copies
from consumer.reviews.outbox.story_events import StoryChange
from consumer.reviews.people import Person
from consumer.reviews.portable import Lock, acquire_lock
from consumer.reviews.repairs.in_force import showing_story, split_versions
from consumer.reviews.repairs.outcome import RepairRefusal, RepairRefused, write_repair_events
from consumer.reviews.story_changes import home, stories_by_root
from consumer.reviews.tables import FLAGS, STORIES, STORY_SPLITS


def split(connection: Connection, flag_id: int, person: Person, now_ms: int) -> int:
    """Split the version of a flag off its story; return the story that shows the flag now.

    Raises ``RepairRefused`` for the reason that ``split_refusal`` returns.
    """
    acquire_lock(connection, Lock.FLAGS)
    flag = _flag(connection, flag_id)
    why = _refusal(connection, flag)
    if flag is None or why is not None:
        raise RepairRefused(why or "gone")
    values = {"article_id": flag.article_id, "version": flag.version, "from_root_id": flag.root_id}
    connection.execute(insert(STORY_SPLITS).values(**values, person_id=person.person_id, at_ms=now_ms))
    new_story_id = stories_by_root(connection, [flag.article_id])[flag.article_id]
    # Often only this flag tells the source of the new root, since few flags have copies.
    without_source = (STORIES.c.story_id == new_story_id, STORIES.c.root_source_id.is_(None))
    connection.execute(update(STORIES).where(*without_source).values(root_source_id=flag.source_id))
    move_with_copies(connection, flag_id, new_story_id)
    return _write_events(connection, flag, person, "split", now_ms)


def undo_split(connection: Connection, flag_id: int, person: Person, now_ms: int) -> int:
    """Move a version back into the story of its original; return the story that shows it.

    Raises ``RepairRefused``, ``gone``, if the flag is unknown or its version is not split off.
    """
    acquire_lock(connection, Lock.FLAGS)
    flag = _flag(connection, flag_id)
    if flag is None:
        raise RepairRefused("gone")
    copy = flag.article_id, flag.version
    of_version = (STORY_SPLITS.c.article_id == copy[0], STORY_SPLITS.c.version == copy[1])
    undone = delete(STORY_SPLITS).where(*of_version).returning(STORY_SPLITS.c.from_root_id)
    root = connection.execute(undone).scalar()
    if root is None:
        raise RepairRefused("gone")
    # If the original has no flag, the former root is known only from the split.
    descent = Descent(flag.kind, copy, (flag.original_id, flag.original_version), root)
    move_with_copies(connection, flag_id, homes_of(connection, [descent])[copy])
    return _write_events(connection, flag, person, "merged", now_ms)


def split_refusal(connection: Connection, flag_id: int) -> RepairRefusal | None:
    """Return why a split would be refused, or None."""
    return _refusal(connection, _flag(connection, flag_id))


def moving_copies(connection: Connection, flag_id: int) -> int:
    """Return how many other copies in force would move with a flag that is split off."""
    moving = with_copies(flag_id)
    copies = (FLAGS.c.kind.in_(COPY_KINDS), FLAGS.c.state.in_(IN_FORCE), FLAGS.c.flag_id != flag_id)
    counted = select(func.count()).where(FLAGS.c.flag_id.in_(select(moving.c.flag_id)), *copies)
    return connection.execute(counted).scalar_one()


def _flag(connection: Connection, flag_id: int) -> Row[Any] | None:
    """Return an entry with the root of its story by lineage."""
    columns = select(FLAGS, STORIES.c.root_id).join_from(FLAGS, STORIES, STORIES.c.story_id == home())
    return connection.execute(columns.where(FLAGS.c.flag_id == flag_id)).one_or_none()


def _refusal(connection: Connection, flag: Row[Any] | None) -> RepairRefusal | None:
    if flag is None:
        return "gone"
    if flag.kind not in COPY_KINDS:
        return "kind"
    if split_versions(connection, [(flag.article_id, flag.version)]):
        return "split"
    if flag.released_ms is not None:
        return "released"
    if flag.article_id == flag.root_id:
        return "root"
    own_story_id = connection.execute(select(STORIES.c.story_id).where(STORIES.c.root_id == flag.article_id)).scalar()
    # The article's own story is merged into the story that shows the flag, so a split would change nothing.
    return "merged" if own_story_id is not None and showing_story(connection, own_story_id) == flag.story_id else None


def _write_events(
    connection: Connection, before: Row[Any], person: Person, cause: Literal["split", "merged"], now_ms: int
) -> int:
    """Write the events of a flag that has left a story; return the story that shows it now."""
    shown = select(FLAGS.c.story_id).where(FLAGS.c.flag_id == before.flag_id)
    story_id: int = connection.execute(shown).scalar_one()
    member = (before.article_id, before.version) if cause == "split" else None
    write_repair_events(connection, StoryChange(before.story_id, cause, person.name, member, story_id), now_ms)
    return story_id
