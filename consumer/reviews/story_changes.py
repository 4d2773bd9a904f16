"""Changes of stories: new ones, their flags, what they count of these, and when the first and the last of them came."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, bindparam, case, func, insert, literal, or_, select, update
from sqlalchemy.sql.selectable import FromClause

from consumer.reviews.flag_row import IN_FORCE, UNDECIDED, State
from consumer.reviews.kinds.rules import RULES, Kind
from consumer.reviews.portable import portions
from consumer.reviews.tables import FLAGS, STORIES

NO_FLAGS: Final = 0
"""The times of a story that has lost all its flags to another one."""
_MOVED_AT_ONCE: Final = 5_000


class CountChange(NamedTuple):
    """By how much the counts of a story change."""

    copies: int = 0
    open_copies: int = 0

    def __add__(self, other: object) -> "CountChange":
        """Return both changes in one."""
        if not isinstance(other, CountChange):
            return NotImplemented
        return CountChange(self.copies + other.copies, self.open_copies + other.open_copies)


class Growth(NamedTuple):
    """The growth of a story: new copies, none of them decided, and the times of the first and the last article."""

    copies: int
    first_ms: int
    last_ms: int


def home(flags: FromClause = FLAGS) -> ColumnElement[int]:
    """Return the story of flags by lineage, whichever story shows them."""
    return func.coalesce(flags.c.home_id, flags.c.story_id)


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


class MovedFlags(NamedTuple):
    """The stories that moved flags belonged to by lineage, and the stories that they were and are shown in."""

    homes: set[int]
    stories: set[int]


def move_flags(
    connection: Connection, flags: ColumnElement[bool], story_id: int, home_id: int | None = None
) -> MovedFlags:
    """Show and count flags in a story.

    With ``home_id`` they belong to that one from now on. Whoever calls this holds ``Lock.FLAGS``.
    """
    columns = (home(), FLAGS.c.story_id, FLAGS.c.kind, FLAGS.c.state)
    flag_ids: list[int] = []
    numbers: Counter[tuple[int, int, Kind, State]] = Counter()
    for flag_id, former_home, former_id, kind, state in connection.execute(
        select(FLAGS.c.flag_id, *columns).where(flags)
    ):
        flag_ids.append(flag_id)
        numbers[former_home, former_id, kind, state] += 1
    if not flag_ids:
        return MovedFlags(set(), set())
    shown = literal(story_id, FLAGS.c.story_id.type)
    by_lineage = func.nullif(home() if home_id is None else literal(home_id, shown.type), shown)
    # Each statement of PostgreSQL has to end in time.
    for portion in portions(flag_ids, _MOVED_AT_ONCE):
        moved = update(FLAGS).where(FLAGS.c.flag_id.in_(portion))
        connection.execute(moved.values(story_id=story_id, home_id=by_lineage))
    changes: dict[int, CountChange] = {story_id: CountChange()}
    for (_, former_id, kind, state), number in numbers.items():
        is_copy = RULES[kind].is_copy
        counted = CountChange(number * (is_copy and state in IN_FORCE), number * (is_copy and state in UNDECIDED))
        changes[former_id] = changes.get(former_id, CountChange()) + CountChange(-counted.copies, -counted.open_copies)
        changes[story_id] += counted
    change_stories(connection, changes)
    measure_stories(connection, changes)
    return MovedFlags({former_home for former_home, *_ in numbers}, set(changes))


def change_stories(connection: Connection, changes: Mapping[int, CountChange]) -> None:
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
