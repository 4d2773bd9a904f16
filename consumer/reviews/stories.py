"""Stories: an original and all its copies, over time and by source."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, bindparam, func, select, union, union_all
from sqlalchemy.sql.selectable import Subquery

from consumer.reviews import search
from consumer.reviews.flag_row import IN_FORCE, FlagRow, flag_row, flag_rows
from consumer.reviews.kinds.rules import COPY_KINDS
from consumer.reviews.paging import Cursor, decode_cursor
from consumer.reviews.portable import among_parameter, portions
from consumer.reviews.queries.scope import RowOrder, Scope
from consumer.reviews.queue import QueuePage, scoped_page
from consumer.reviews.repairs.in_force import showing_story
from consumer.reviews.search import Count
from consumer.reviews.tables import FLAGS, SOURCES, STORIES, STORY_MERGES, STORY_SPLITS

RECENT_MAX: Final = 50_000
"""The number of latest copies counted for the fastest stories and the most frequent pairs of sources."""
_BY_ARRIVAL: Final = RowOrder("arrived_ms", is_descending=False)
_COPIES: Final = (FLAGS.c.kind.in_(COPY_KINDS), FLAGS.c.state.in_(IN_FORCE))


@dataclass(frozen=True, slots=True)
class Story:
    """An original, and the number of its copies."""

    story_id: int
    root_id: str
    # None until known.
    root_source: str | None
    copies: int
    open_copies: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class RecentStory:
    """A story, and the number of new copies it got in a span of time."""

    story: Story
    new_copies: int


@dataclass(frozen=True, slots=True)
class SourcePair:
    """How often one source repeats another. None stands for sources not known yet."""

    source: str | None
    original_source: str | None
    copies: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """The number of copies that came within a span of time, excluding its end."""

    from_ms: int
    to_ms: int
    copies: int


def story(connection: Connection, story_id: int) -> Story | None:
    """Return a story, or the one that shows its flags if it was merged or taken over; None for an unknown id."""
    found = story_by_id(connection, story_id)
    if found is None or _has_flags(connection, story_id):
        return found
    head_id = showing_story(connection, story_id)
    if head_id != story_id:
        return story(connection, head_id)
    # Its root has turned out to be a copy.
    of_root = select(FLAGS.c.story_id).where(FLAGS.c.article_id == found.root_id, FLAGS.c.kind.in_(COPY_KINDS))
    other = connection.execute(of_root.where(FLAGS.c.released_ms.is_(None)).order_by(FLAGS.c.flag_id).limit(1)).scalar()
    return found if other is None else story_by_id(connection, other)


def story_by_id(connection: Connection, story_id: int) -> Story | None:
    """Return the story with an id, even if it shows no flags, or None."""
    row = connection.execute(_story_query(), {"this": story_id}).one_or_none()
    return None if row is None else Story(**row._asdict())


def story_of_article(connection: Connection, article_id: str) -> Story | None:
    """Return the story of an original or a copy, or None for any other article."""
    of_root = select(STORIES.c.story_id).where(STORIES.c.root_id == article_id)
    of_copy = select(FLAGS.c.story_id).where(FLAGS.c.article_id == article_id, FLAGS.c.kind.in_(COPY_KINDS))
    for query in (of_root, of_copy.order_by(FLAGS.c.flag_id.desc()).limit(1)):
        story_id = connection.execute(query).scalar()
        if story_id is not None:
            return story(connection, story_id)
    return None


def copies(connection: Connection, story_id: int, after: str | None, rows_max: int) -> QueuePage:
    """Return a page of all flags of a story in order of arrival, including those not in force.

    Raises ``BadCursor`` if ``after`` is not a cursor.
    """
    scope = Scope(kinds=COPY_KINDS, story_id=story_id)
    return scoped_page(connection, scope, _BY_ARRIVAL, rows_max, None if after is None else decode_cursor(after))


def flags_around(connection: Connection, flag: FlagRow, rows_max: int) -> list[FlagRow]:
    """Return a flag with up to ``rows_max`` flags of its story that arrived before it, and as many after it."""
    scope, here = Scope(kinds=COPY_KINDS, story_id=flag.story_id), Cursor("after", *_BY_ARRIVAL.key(flag))
    before = search.read_rows(connection, scope, _BY_ARRIVAL.reversed(), rows_max, here).rows
    return [*reversed(before), flag, *search.read_rows(connection, scope, _BY_ARRIVAL, rows_max, here).rows]


def timeline(connection: Connection, story: Story, length_ms: int) -> list[Bucket]:
    """Return the number of copies in force per span of ``length_ms``, from ``first_ms`` to ``last_ms`` of the story.

    Spans begin at multiples of their length. Empty spans are included. Without a copy in force, the list is empty.
    """
    if not story.copies:
        return []
    begin_ms = story.first_ms // length_ms * length_ms
    spans = [(at, at + length_ms) for at in range(begin_ms, story.last_ms + 1, length_ms)]
    # Counting index entries per span is much faster than grouping.
    in_span = [
        select(func.count())
        .where(FLAGS.c.story_id == story.story_id, *_COPIES, FLAGS.c.arrived_ms >= begin, FLAGS.c.arrived_ms < end)
        .scalar_subquery()
        for begin, end in spans
    ]
    counted = connection.execute(select(*in_span)).one()
    return [Bucket(begin, end, copies) for (begin, end), copies in zip(spans, counted, strict=True)]


def largest_stories(connection: Connection, since_ms: int, limit: int) -> list[Story]:
    """Return up to ``limit`` stories with the most copies, among stories that got an entry since ``since_ms``."""
    query = _stories().where(STORIES.c.copies > 0, STORIES.c.last_ms >= since_ms)
    return [
        Story(**row._asdict())
        for row in connection.execute(query.order_by(STORIES.c.copies.desc(), STORIES.c.story_id.desc()).limit(limit))
    ]


def fastest_stories(connection: Connection, since_ms: int, limit: int) -> list[RecentStory]:
    """Return up to ``limit`` stories that got the most of the latest ``RECENT_MAX`` copies since ``since_ms``."""
    recent = _recent_copies_query(since_ms)
    number = func.count().label("number")
    counted = select(recent.c.story_id, number).group_by(recent.c.story_id)
    top = counted.order_by(number.desc(), recent.c.story_id.desc()).limit(limit).subquery()
    query = _stories().join(top, top.c.story_id == STORIES.c.story_id).add_columns(top.c.number)
    rows = connection.execute(query.order_by(top.c.number.desc(), STORIES.c.story_id.desc()))
    return [RecentStory(Story(*row[:-1]), row[-1]) for row in rows]


def pairs_of_sources(connection: Connection, since_ms: int, limit: int) -> list[SourcePair]:
    """Return the ``limit`` most frequent pairs of sources of the latest ``RECENT_MAX`` copies since ``since_ms``."""
    recent = _recent_copies_query(since_ms)
    source, original = SOURCES.alias(), SOURCES.alias()
    number = func.count().label("number")
    pair = (recent.c.source_id, recent.c.original_source_id)
    in_order = [column.nulls_last() for column in pair]
    top = select(*pair, number).group_by(*pair).order_by(number.desc(), *in_order).limit(limit).subquery()
    query = (
        select(source.c.name, original.c.name, top.c.number)
        .select_from(top)
        .outerjoin(source, source.c.source_id == top.c.source_id)
        .outerjoin(original, original.c.source_id == top.c.original_source_id)
        .order_by(top.c.number.desc(), top.c.source_id.nulls_last(), top.c.original_source_id.nulls_last())
    )
    return [SourcePair(*row) for row in connection.execute(query)]


def root_versions(connection: Connection, root_ids: Iterable[str]) -> dict[str, str]:
    """Return a version of each original that flags name or that was split off. Other originals are left out."""
    found: dict[str, str] = {}
    for portion in portions(set(root_ids)):
        rows = connection.execute(select(STORIES.c.root_id, root_version()).where(STORIES.c.root_id.in_(portion)))
        found |= {root_id: version for root_id, version in rows if version is not None}
    return found


def root_version() -> ColumnElement[str]:
    """Return the column with an original's version, for a query of stories; it reads one entry of an index."""
    named = select(func.max(FLAGS.c.original_version)).where(FLAGS.c.original_id == STORIES.c.root_id)
    split = select(func.max(STORY_SPLITS.c.version)).where(STORY_SPLITS.c.article_id == STORIES.c.root_id)
    return func.coalesce(named.scalar_subquery(), split.scalar_subquery())


def stories_of_roots(connection: Connection, root_ids: Iterable[str]) -> dict[str, Story]:
    """Return the stories that show the copies of originals, by original. Originals without copies are left out."""
    found: dict[str, Story] = {}
    for portion in portions(list(root_ids)):
        query = _stories().where(STORIES.c.root_id.in_(portion), STORIES.c.copies > 0)
        found |= {row.root_id: Story(**row._asdict()) for row in connection.execute(query)}
        merged = select(STORIES.c.root_id, STORIES.c.story_id).join(
            STORY_MERGES, STORY_MERGES.c.root_id == STORIES.c.root_id
        )
        for root_id, story_id in connection.execute(merged.where(STORIES.c.root_id.in_(portion))).all():
            shown = story(connection, story_id)
            if shown is not None and shown.copies:
                found[root_id] = shown
    return found


def source_names(connection: Connection, story_ids: Iterable[int]) -> dict[int, frozenset[str]]:
    """Return the known sources of each story: of its original and of its copies in force.

    Articles that name no source are left out.
    """
    found: dict[int, frozenset[str]] = dict.fromkeys(story_ids, frozenset())
    for portion in portions(sorted(found)):
        names: dict[int, list[str]] = {}
        for story_id, name in connection.execute(_sources_query(connection.dialect.name), {"these": portion}):
            names.setdefault(story_id, []).append(name)
        found |= {story_id: frozenset(of_story) for story_id, of_story in names.items()}
    return found


@cache
def _sources_query(dialect: str) -> Select[int, str]:
    """Return the query for the sources of stories. Cached, since pages of flags run it."""
    roots, copies = (among_parameter(dialect, table.c.story_id, "these") for table in (STORIES, FLAGS))
    of_roots = select(STORIES.c.story_id, STORIES.c.root_source_id).where(roots)
    of_copies = select(FLAGS.c.story_id, FLAGS.c.source_id).where(copies, *_COPIES)
    taking_part = union(of_roots, of_copies).subquery("taking_part")
    named = select(taking_part.c.story_id, SOURCES.c.name).join(
        SOURCES, SOURCES.c.source_id == taking_part.c.root_source_id
    )
    return named.where(SOURCES.c.name != "")


def count_sources(connection: Connection, stories: Iterable[Story], copies_max: int) -> dict[int, Count]:
    """Return the number of sources of each story, not exact for stories with more than ``copies_max`` copies."""
    distinct = {story.story_id: story for story in stories}
    small = [story_id for story_id, story in distinct.items() if story.copies <= copies_max]
    found = {story_id: Count(len(names)) for story_id, names in source_names(connection, small).items()}
    for story_id in distinct.keys() - found.keys():
        some = select(FLAGS.c.source_id).where(FLAGS.c.story_id == story_id, *_COPIES).limit(copies_max).subquery()
        of_root = select(STORIES.c.root_source_id).where(STORIES.c.story_id == story_id)
        taking_part = union(select(some.c.source_id), of_root).subquery("taking_part")
        query = select(func.count()).join_from(taking_part, SOURCES, SOURCES.c.source_id == taking_part.c.source_id)
        sources = connection.execute(query.where(SOURCES.c.name != "")).scalar_one()
        found[story_id] = Count(sources, is_exact=False)
    return found


def open_flags(connection: Connection, story_ids: Sequence[int], limit: int) -> list[FlagRow]:
    """Return up to ``limit`` open flags of some stories, the oldest first."""
    query = flag_rows().where(FLAGS.c.story_id.in_(story_ids), FLAGS.c.state == "open", FLAGS.c.kind.in_(COPY_KINDS))
    rows = connection.execute(query.order_by(FLAGS.c.arrived_ms, FLAGS.c.flag_id).limit(limit))
    return [flag_row(row) for row in rows]


def _recent_copies_query(since_ms: int) -> Subquery:
    """Return the query for the latest copies in force since ``since_ms``, at most ``RECENT_MAX``."""
    columns = select(FLAGS.c.story_id, FLAGS.c.source_id, FLAGS.c.original_source_id, FLAGS.c.arrived_ms)
    latest = FLAGS.c.arrived_ms.desc()
    # An index orders the rows of one state, but not of several states together.
    of_states = [
        columns.where(FLAGS.c.kind.in_(COPY_KINDS), FLAGS.c.state == state, FLAGS.c.arrived_ms >= since_ms)
        .order_by(latest)
        .limit(RECENT_MAX)
        .subquery()
        for state in IN_FORCE
    ]
    together = union_all(*(select(of_state) for of_state in of_states)).subquery()
    return select(together).order_by(together.c.arrived_ms.desc()).limit(RECENT_MAX).subquery()


@cache
def _stories() -> Select[*tuple[Any, ...]]:
    return select(
        STORIES.c.story_id,
        STORIES.c.root_id,
        SOURCES.c.name.label("root_source"),
        STORIES.c.copies,
        STORIES.c.open_copies,
        STORIES.c.first_ms,
        STORIES.c.last_ms,
    ).outerjoin_from(STORIES, SOURCES, SOURCES.c.source_id == STORIES.c.root_source_id)


def _has_flags(connection: Connection, story_id: int) -> bool:
    return connection.execute(_any_flag_query(), {"this": story_id}).scalar() is not None


@cache
def _story_query() -> Select[*tuple[Any, ...]]:
    """Return the query for a story. Cached, like ``_any_flag_query``, since pages of flags run both."""
    return _stories().where(STORIES.c.story_id == bindparam("this"))


@cache
def _any_flag_query() -> Select[int]:
    """Return the query for any flag of a story."""
    return select(FLAGS.c.flag_id).where(FLAGS.c.story_id == bindparam("this")).limit(1)
