"""Changes of stories: creating them, moving flags between them, and updating their counts and times."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Update, bindparam, case, func, insert, literal, or_, select, update
from sqlalchemy.sql.selectable import FromClause

from consumer.reviews.flag_row import IN_FORCE, UNDECIDED, State
from consumer.reviews.kinds.rules import RULES, Kind
from consumer.reviews.portable import among, insert_rows, portions, update_rows
from consumer.reviews.tables import FLAGS, STORIES

NO_FLAGS: Final = 0
"""``first_ms`` and ``last_ms`` of a story that has no flags."""
_MOVED_AT_ONCE: Final = 5_000
# Built once: every decision executes it.
_COUNT_CHANGE: Final = (
    update(STORIES)
    .where(STORIES.c.story_id == bindparam("this"))
    .values(
        copies=STORIES.c.copies + bindparam("more"),
        open_copies=STORIES.c.open_copies + bindparam("more_open"),
    )
)


class CountChange(NamedTuple):
    """The numbers to add to the counts of a story, below 0 to subtract."""

    copies: int = 0
    open_copies: int = 0

    def __add__(self, other: object) -> "CountChange":
        """Return the sum of both changes."""
        if not isinstance(other, CountChange):
            return NotImplemented
        return CountChange(self.copies + other.copies, self.open_copies + other.open_copies)


class Growth(NamedTuple):
    """The growth of a story: its new copies, all undecided, and when the first and last new entries arrived."""

    copies: int
    first_ms: int
    last_ms: int


def home(flags: FromClause = FLAGS) -> ColumnElement[int]:
    """Return the column with a flag's story by lineage, whichever story shows the flag."""
    return func.coalesce(flags.c.home_id, flags.c.story_id)


def stories_by_root(connection: Connection, roots: Collection[str]) -> dict[str, int]:
    """Return the id of each root's story. Missing stories are created, without flags."""
    found: dict[str, int] = {}
    for portion in portions(roots):
        is_root = among(connection, STORIES.c.root_id, portion)
        rows = connection.execute(select(STORIES.c.root_id, STORIES.c.story_id).where(is_root))
        found |= {row.root_id: row.story_id for row in rows}
    new = [
        {"root_id": root, "copies": 0, "open_copies": 0, "first_ms": NO_FLAGS, "last_ms": NO_FLAGS}
        for root in roots
        if root not in found
    ]
    statement = insert(STORIES).returning(STORIES.c.root_id, STORIES.c.story_id)
    return found | {row.root_id: row.story_id for row in insert_rows(connection, statement, new)}


def store_root_sources(connection: Connection, sources: Mapping[str, int]) -> None:
    """Store the sources of roots whose sources are unknown. Articles that are not roots are ignored."""
    update_rows(
        connection,
        {"root": STORIES.c.root_id.type, "number": STORIES.c.root_source_id.type},
        [{"root": article_id, "number": number} for article_id, number in sources.items()],
        lambda row: (
            update(STORIES)
            .where(STORIES.c.root_id == row["root"], STORIES.c.root_source_id.is_(None))
            .values(root_source_id=row["number"])
        ),
    )


class MovedFlags(NamedTuple):
    """The stories to which moved flags belonged by lineage, and the stories that showed them or show them now."""

    homes: set[int]
    stories: set[int]


def move_flags(
    connection: Connection, flags: ColumnElement[bool], story_id: int, home_id: int | None = None
) -> MovedFlags:
    """Make another story show and count the flags that meet a condition.

    With ``home_id``, that story becomes their story by lineage; without, they keep theirs. The caller must hold
    ``Lock.FLAGS``.
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
    # In portions, to stay within PostgreSQL's statement timeout.
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
    update_story_times(connection, changes)
    return MovedFlags({former_home for former_home, *_ in numbers}, set(changes))


def change_stories(connection: Connection, changes: Mapping[int, CountChange]) -> None:
    """Change the counts of stories. The caller must hold ``Lock.FLAGS``."""
    rows = [
        {"this": story_id, "more": change.copies, "more_open": change.open_copies}
        for story_id, change in changes.items()
        if any(change)
    ]
    if rows:
        connection.execute(_COUNT_CHANGE, rows)


def grow_stories(connection: Connection, growths: Mapping[int, Growth]) -> None:
    """Add new entries to the counts and times of their stories, given by story number."""

    def grown(row: Mapping[str, ColumnElement[int]]) -> Update:
        first, last = row["first"], row["last"]
        is_first = or_(STORIES.c.first_ms > first, STORIES.c.first_ms == NO_FLAGS)
        values = {
            "copies": STORIES.c.copies + row["more"],
            "open_copies": STORIES.c.open_copies + row["more"],
            "first_ms": case((is_first, first), else_=STORIES.c.first_ms),
            "last_ms": case((STORIES.c.last_ms < last, last), else_=STORIES.c.last_ms),
        }
        return update(STORIES).where(STORIES.c.story_id == row["this"]).values(values)

    rows = [
        {"this": story_id, "more": growth.copies, "first": growth.first_ms, "last": growth.last_ms}
        for story_id, growth in growths.items()
    ]
    types = {
        "this": STORIES.c.story_id.type,
        "more": STORIES.c.copies.type,
        "first": STORIES.c.first_ms.type,
        "last": STORIES.c.last_ms.type,
    }
    update_rows(connection, types, rows, grown)


def update_story_times(connection: Connection, story_ids: Collection[int]) -> None:
    """Recompute when the first and last articles of these stories' entries arrived."""
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
