"""Finds the story that a flag belongs to, also when a later event changes that.

A flag names the version it repeats. Where that version has a flag too, both are in one story; where that flag was
released, the version is kept, and so the root of a story; where there is no such flag, the root is what the event says.
So a flag that comes late takes over the copies of its version, with all of theirs, and a release lets them go.

A version that somebody has split off is the root of its copies as well, and its own flag is part of that story.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import CTE, ColumnElement, Connection, Select, and_, func, select, update

from consumer.reviews.flag_row import State
from consumer.reviews.kinds.rules import COPIES, RULES, Kind
from consumer.reviews.portable import portions
from consumer.reviews.repairs.in_force import IS_SPLIT, places, split_versions
from consumer.reviews.story_changes import home, move_flags, name_roots, stories_by_root
from consumer.reviews.tables import FLAGS, FLOODS

ArticleVersion = tuple[str, str]
_COPIES = FLAGS.alias("copies")


class Descent(NamedTuple):
    """A version that is to be placed, and the one that it repeats. ``cluster`` is the root as the judge knew it."""

    kind: Kind
    copy: ArticleVersion
    original: ArticleVersion
    cluster: str | None
    arrived_ms: int


class StoredFlag(NamedTuple):
    """The columns of a stored flag. ``home_id`` is its story by lineage, whichever story shows it."""

    flag_id: int
    story_id: int
    home_id: int
    state: State
    released_ms: int | None
    distance: int | None


def known_flags(
    connection: Connection, versions: Collection[ArticleVersion], *kinds: Kind
) -> dict[ArticleVersion, StoredFlag]:
    """Return the entries of these versions that are of one of these kinds."""
    columns = select(
        FLAGS.c.article_id,
        FLAGS.c.version,
        FLAGS.c.flag_id,
        FLAGS.c.story_id,
        home(),
        FLAGS.c.state,
        FLAGS.c.released_ms,
        FLAGS.c.distance,
    )
    found: dict[ArticleVersion, StoredFlag] = {}
    wanted = set(versions)
    # By article alone: pairs within IN would have SQLite read all flags. An article has few versions.
    for portion in portions({article_id for article_id, _ in wanted}):
        named = columns.where(FLAGS.c.article_id.in_(portion), FLAGS.c.kind.in_(kinds))
        for article_id, version, *known in connection.execute(named):
            if (article_id, version) in wanted:
                found[article_id, version] = StoredFlag(*known)
    return found


def homes_of(connection: Connection, rows: Sequence[Descent]) -> dict[ArticleVersion, int]:
    """Return the story of each row by lineage, made if need be."""
    originals = known_flags(connection, {row.original for row in rows}, *COPIES)
    own = {row.copy: row for row in rows if RULES[row.kind].is_copy}
    splits = split_versions(connection, {version for row in rows for version in (row.copy, row.original)})
    found = {row.copy: _home(row, originals, own, splits) for row in rows}
    spans: dict[str, tuple[int, int]] = {}
    for row in rows:
        root = found[row.copy]
        if isinstance(root, str):
            first_ms, last_ms = spans.get(root, (row.arrived_ms, row.arrived_ms))
            spans[root] = (min(first_ms, row.arrived_ms), max(last_ms, row.arrived_ms))
    stories = stories_by_root(connection, spans)
    return {copy: stories[each] if isinstance(each, str) else each for copy, each in found.items()}


def _home(
    row: Descent,
    originals: Mapping[ArticleVersion, StoredFlag],
    own: Mapping[ArticleVersion, Descent],
    splits: Collection[ArticleVersion],
) -> int | str:
    """Return the story of a row, or its root where that decides."""
    if row.copy in splits and RULES[row.kind].is_copy:
        return row.copy[0]
    passed = {row.copy}
    while True:
        original = originals.get(row.original)
        if row.original in splits or (original is not None and original.released_ms is not None):
            return row.original[0]
        if original is not None:
            return original.home_id
        above = own.get(row.original)
        if above is None or above.copy in passed:
            return row.cluster or row.original[0]
        passed.add(above.copy)
        row = above


def take_over_copies(connection: Connection, flag_ids: Sequence[int]) -> set[int]:
    """Bring the copies of versions whose flags are new into the stories of these flags.

    Return the stories that flags have joined or left.
    """
    touched: set[int] = set()
    of_it = and_(_COPIES.c.original_id == FLAGS.c.article_id, _COPIES.c.original_version == FLAGS.c.version)
    for portion in portions(flag_ids):
        apart = (
            select(FLAGS.c.flag_id, FLAGS.c.article_id, FLAGS.c.version)
            .join_from(FLAGS, _COPIES, of_it)
            .where(FLAGS.c.flag_id.in_(portion), FLAGS.c.kind.in_(COPIES), FLAGS.c.released_ms.is_(None))
            .where(home(_COPIES) != home())
            .distinct()
        )
        for row in connection.execute(apart).all():
            # Another of them may have taken this one over in the meantime.
            own = connection.execute(select(home()).where(FLAGS.c.flag_id == row.flag_id)).scalar_one()
            touched |= _move(connection, _below(_copies_of((row.article_id, row.version))), own)
    return touched


def part_from_released(connection: Connection, released: Sequence[tuple[ArticleVersion, int]]) -> set[int]:
    """Let versions whose flags were released be the roots of their copies.

    Return the stories that flags have joined or left.
    """
    touched: set[int] = set()
    versions = {flag_id: version for version, flag_id in released}
    of_it = and_(_COPIES.c.original_id == FLAGS.c.article_id, _COPIES.c.original_version == FLAGS.c.version)
    for portion in portions(versions):
        copied = (
            select(FLAGS.c.flag_id, FLAGS.c.source_id, func.min(_COPIES.c.arrived_ms), func.max(_COPIES.c.arrived_ms))
            .join_from(FLAGS, _COPIES, of_it)
            .where(FLAGS.c.flag_id.in_(portion))
            .group_by(FLAGS.c.flag_id, FLAGS.c.source_id)
        )
        found = connection.execute(copied).all()
        spans: dict[str, tuple[int, int]] = {}
        for flag_id, _, first_ms, last_ms in found:
            root = versions[flag_id][0]
            known = spans.get(root, (first_ms, last_ms))
            spans[root] = (min(known[0], first_ms), max(known[1], last_ms))
        stories = stories_by_root(connection, spans)
        sources = {versions[flag_id][0]: source_id for flag_id, source_id, *_ in found if source_id is not None}
        name_roots(connection, sources)
        for flag_id, *_ in found:
            touched |= _move(connection, _below(_copies_of(versions[flag_id])), stories[versions[flag_id][0]])
    return touched


def move_with_copies(connection: Connection, flag_id: int, home_id: int) -> None:
    """Bring a flag into a story by lineage, with the copies of its version unless the flag was released."""
    _move(connection, with_copies(flag_id), home_id)


def with_copies(flag_id: int) -> CTE:
    """Return a query for a flag and what goes with it: the copies of its version, the copies of these, and so on.

    A release, or a split, lets the copies of its version go.
    """
    return _below(_columns().where(FLAGS.c.flag_id == flag_id))


def _move(connection: Connection, moving: CTE, home_id: int) -> set[int]:
    """Bring flags into a story by lineage, and show them where that is shown.

    Return the stories that they have joined or left.
    """
    place = places(connection, [home_id])[home_id]
    inside = and_(FLAGS.c.flag_id.in_(select(moving.c.flag_id)), home() != home_id)
    moved = move_flags(connection, inside, place.story_id, home_id)
    for former, shown in places(connection, moved.homes).items():
        left = select(FLAGS.c.flag_id).where(FLAGS.c.story_id == shown.story_id, home() == former).limit(1)
        # A flood goes on in the story that has taken over all of its own.
        if connection.execute(left).scalar() is None:
            connection.execute(update(FLOODS).where(FLOODS.c.story_id == former).values(story_id=home_id))
    return moved.stories


def _copies_of(version: ArticleVersion) -> Select[Any]:
    """Return the query for the copies of a version, without those that are split off."""
    return _columns().where(FLAGS.c.original_id == version[0], FLAGS.c.original_version == version[1], _is_below())


def _below(first: Select[Any]) -> CTE:
    """Return a query for some flags, the copies of their versions, the copies of these, and so on."""
    below = first.cte("below", recursive=True)
    of_these = and_(FLAGS.c.original_id == below.c.article_id, FLAGS.c.original_version == below.c.version)
    # UNION, not UNION ALL: damaged events may lead in a circle.
    return below.union(_columns().join(below, of_these).where(below.c.leads_on, _is_below()))


def _columns() -> Select[Any]:
    leads_on = and_(FLAGS.c.kind.in_(COPIES), FLAGS.c.released_ms.is_(None))
    return select(FLAGS.c.flag_id, FLAGS.c.article_id, FLAGS.c.version, leads_on.label("leads_on"))


def _is_below() -> ColumnElement[bool]:
    """Return the condition for flags that go with the version they repeat."""
    return ~and_(FLAGS.c.kind.in_(COPIES), IS_SPLIT)
