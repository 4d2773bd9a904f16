"""Changes of stories: new ones, what they count of their flags, and when the first and the last of them came."""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, bindparam, case, func, insert, or_, select, update

from consumer.reviews.portable import portions
from consumer.reviews.tables import FLAGS, STORIES

NO_FLAGS: Final = 0
"""The times of a story that has lost all its flags to another one."""


class Change(NamedTuple):
    """By how much the counts of a story change."""

    copies: int = 0
    open_copies: int = 0

    def __add__(self, other: object) -> "Change":
        """Return both changes in one."""
        if not isinstance(other, Change):
            return NotImplemented
        return Change(self.copies + other.copies, self.open_copies + other.open_copies)


class Growth(NamedTuple):
    """The growth of a story: new copies, none of them decided, and the times of the first and the last article."""

    copies: int
    first_ms: int
    last_ms: int


def stories_by_root(connection: Connection, spans: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """Return the story of each root; one that is new begins with the span of time that is given."""
    found: dict[str, int] = {}
    for portion in portions(spans):
        rows = connection.execute(select(STORIES.c.root_id, STORIES.c.story_id).where(STORIES.c.root_id.in_(portion)))
        found |= {row.root_id: row.story_id for row in rows}
    new = [
        {"root_id": root, "copies": 0, "open_copies": 0, "first_ms": span[0], "last_ms": span[1]}
        for root, span in spans.items()
        if root not in found
    ]
    statement = insert(STORIES).returning(STORIES.c.root_id, STORIES.c.story_id)
    for part in portions(new):
        found |= {row.root_id: row.story_id for row in connection.execute(statement, part)}
    return found


def name_roots(connection: Connection, sources: Mapping[str, int]) -> None:
    """Store the sources of articles, for those that are roots."""
    if sources:
        of_root = (STORIES.c.root_id == bindparam("root"), STORIES.c.root_source_id.is_(None))
        connection.execute(
            update(STORIES).where(*of_root).values(root_source_id=bindparam("number")),
            [{"root": article_id, "number": number} for article_id, number in sources.items()],
        )


def change_stories(connection: Connection, changes: Mapping[int, Change]) -> None:
    """Change the counts of stories. Whoever does holds ``Lock.FLAGS``."""
    rows = [
        {"this": story_id, "more": change.copies, "more_open": change.open_copies}
        for story_id, change in changes.items()
        if any(change)
    ]
    if rows:
        counts = {
            "copies": STORIES.c.copies + bindparam("more"),
            "open_copies": STORIES.c.open_copies + bindparam("more_open"),
        }
        connection.execute(update(STORIES).where(STORIES.c.story_id == bindparam("this")).values(counts), rows)


def grow_stories(connection: Connection, growths: Mapping[int, Growth]) -> None:
    """Count new flags and near misses in their stories, by the number of the story."""
    first: ColumnElement[int] = bindparam("first")
    last: ColumnElement[int] = bindparam("last")
    values = {
        "copies": STORIES.c.copies + bindparam("more"),
        "open_copies": STORIES.c.open_copies + bindparam("more"),
        "first_ms": case(
            (or_(STORIES.c.first_ms > first, STORIES.c.first_ms == NO_FLAGS), first), else_=STORIES.c.first_ms
        ),
        "last_ms": case((STORIES.c.last_ms < last, last), else_=STORIES.c.last_ms),
    }
    rows = [
        {"this": story_id, "more": growth.copies, "first": growth.first_ms, "last": growth.last_ms}
        for story_id, growth in growths.items()
    ]
    if rows:
        connection.execute(update(STORIES).where(STORIES.c.story_id == bindparam("this")).values(values), rows)


def measure_stories(connection: Connection, story_ids: Collection[int]) -> None:
    """Find out anew when the flags of these stories came."""
    of_story = FLAGS.c.story_id == STORIES.c.story_id
    first = select(func.min(FLAGS.c.arrived_ms)).where(of_story).scalar_subquery()
    last = select(func.max(FLAGS.c.arrived_ms)).where(of_story).scalar_subquery()
    times = {
        "first_ms": func.coalesce(first, NO_FLAGS),
        "last_ms": func.coalesce(last, NO_FLAGS),
    }
    if story_ids:
        statement = update(STORIES).where(STORIES.c.story_id == bindparam("this")).values(times)
        connection.execute(statement, [{"this": story_id} for story_id in story_ids])
