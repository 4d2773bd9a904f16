"""Finds the story that a flag belongs to, and moves flags when a later event changes it.

A flag names the version it repeats, its original:

- If the original has a flag too, both are in one story.
- If that flag was released, the original is kept, and is the root of a story.
- Without such a flag, the event says which article is the root.

So a late flag takes over the copies of its version, and their copies. A release detaches them.

A version that somebody has split off is also the root of its copies, and its own flag is part of that story.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import CTE, ColumnElement, Connection, Select, and_, select, update

from consumer.reviews.flag_row import State
from consumer.reviews.kinds.rules import COPY_KINDS, RULES, Kind
from consumer.reviews.portable import among, portions
from consumer.reviews.repairs.in_force import IS_SPLIT, split_versions, story_places
from consumer.reviews.story_changes import home, move_flags, store_root_sources, stories_by_root
from consumer.reviews.tables import FLAGS, FLOODS

ArticleVersion = tuple[str, str]
_COPIES = FLAGS.alias("copies")


class Descent(NamedTuple):
    """A version to assign to a story, and its original. ``cluster`` is the root, as far as the judge knew."""

    kind: Kind
    copy: ArticleVersion
    original: ArticleVersion
    cluster: str | None


class StoredFlag(NamedTuple):
    """Columns of a stored flag. ``home_id`` is its story by lineage, whichever story shows it."""

    flag_id: int
    story_id: int
    home_id: int
    state: State
    released_ms: int | None
    distance: int | None


def known_flags(
    connection: Connection, versions: Collection[ArticleVersion], *kinds: Kind
) -> dict[ArticleVersion, StoredFlag]:
    """Return the entries of these kinds that these versions have."""
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
    version_set = set(versions)
    # By article alone: with pairs in IN, SQLite would read all flags. An article has few versions.
    for portion in portions({article_id for article_id, _ in version_set}):
        named = columns.where(among(connection, FLAGS.c.article_id, portion), FLAGS.c.kind.in_(kinds))
        for article_id, version, *known in connection.execute(named):
            if (article_id, version) in version_set:
                found[article_id, version] = StoredFlag(*known)
    return found


def homes_of(connection: Connection, rows: Sequence[Descent]) -> dict[ArticleVersion, int]:
    """Return the story of each row by lineage. Missing stories are created."""
    originals = known_flags(connection, {row.original for row in rows}, *COPY_KINDS)
    same_batch = {row.copy: row for row in rows if RULES[row.kind].is_copy}
    splits = split_versions(connection, {version for row in rows for version in (row.copy, row.original)})
    found = {row.copy: _home_or_root(row, originals, same_batch, splits) for row in rows}
    stories = stories_by_root(connection, dict.fromkeys(each for each in found.values() if isinstance(each, str)))
    return {copy: stories[each] if isinstance(each, str) else each for copy, each in found.items()}


def _home_or_root(
    row: Descent,
    originals: Mapping[ArticleVersion, StoredFlag],
    same_batch: Mapping[ArticleVersion, Descent],
    splits: Collection[ArticleVersion],
) -> int | str:
    """Return a row's story: its id if the original has a flag that belongs to it, otherwise the root of the story."""
    if row.copy in splits and RULES[row.kind].is_copy:
        return row.copy[0]
    visited = {row.copy}
    while True:
        original = originals.get(row.original)
        if row.original in splits or (original is not None and original.released_ms is not None):
            return row.original[0]
        if original is not None:
            return original.home_id
        above = same_batch.get(row.original)
        if above is None or above.copy in visited:
            return row.cluster or row.original[0]
        visited.add(above.copy)
        row = above


def take_over_copies(connection: Connection, flag_ids: Sequence[int]) -> set[int]:
    """Move the copies of newly flagged versions into the stories of the new flags.

    Return the stories that flags have joined or left.
    """
    touched: set[int] = set()
    is_copy_of = and_(_COPIES.c.original_id == FLAGS.c.article_id, _COPIES.c.original_version == FLAGS.c.version)
    for portion in portions(flag_ids):
        separated = (
            select(FLAGS.c.flag_id, FLAGS.c.article_id, FLAGS.c.version)
            .join_from(FLAGS, _COPIES, is_copy_of)
            .where(among(connection, FLAGS.c.flag_id, portion))
            .where(FLAGS.c.kind.in_(COPY_KINDS), FLAGS.c.released_ms.is_(None))
            .where(home(_COPIES) != home())
            .distinct()
        )
        for row in connection.execute(separated).all():
            # An earlier pass of this loop may have moved this flag.
            home_id = connection.execute(select(home()).where(FLAGS.c.flag_id == row.flag_id)).scalar_one()
            touched |= _move(connection, _with_descendants(_copies_of((row.article_id, row.version))), home_id)
    return touched


def detach_copies_of_released(connection: Connection, released: Sequence[tuple[ArticleVersion, int]]) -> set[int]:
    """Make released versions the roots of their copies.

    Return the stories that flags have joined or left.
    """
    touched: set[int] = set()
    versions = {flag_id: version for version, flag_id in released}
    is_copy_of = and_(_COPIES.c.original_id == FLAGS.c.article_id, _COPIES.c.original_version == FLAGS.c.version)
    for portion in portions(versions):
        copied = (
            select(FLAGS.c.flag_id, FLAGS.c.source_id)
            .join_from(FLAGS, _COPIES, is_copy_of)
            .where(among(connection, FLAGS.c.flag_id, portion))
            .distinct()
        )
        found = connection.execute(copied).all()
        stories = stories_by_root(connection, dict.fromkeys(versions[flag_id][0] for flag_id, _ in found))
        sources = {versions[flag_id][0]: source_id for flag_id, source_id in found if source_id is not None}
        store_root_sources(connection, sources)
        for flag_id, _ in found:
            touched |= _move(
                connection, _with_descendants(_copies_of(versions[flag_id])), stories[versions[flag_id][0]]
            )
    return touched


def move_with_copies(connection: Connection, flag_id: int, home_id: int) -> None:
    """Move a flag and its descendants (``with_copies``) into a story, which becomes their story by lineage."""
    _move(connection, with_copies(flag_id), home_id)


def with_copies(flag_id: int) -> CTE:
    """Return a query for a flag and its descendants: the copies of its version, their copies, and so on.

    The copies of released versions, and versions that are split off, are left out with their descendants.
    """
    return _with_descendants(_columns().where(FLAGS.c.flag_id == flag_id))


def _move(connection: Connection, moving: CTE, home_id: int) -> set[int]:
    """Move flags into a story by lineage, and show them where that story is shown.

    Return the stories that flags have joined or left.
    """
    place = story_places(connection, [home_id])[home_id]
    inside = and_(FLAGS.c.flag_id.in_(select(moving.c.flag_id)), home() != home_id)
    moved = move_flags(connection, inside, place.story_id, home_id)
    for former, shown in story_places(connection, moved.homes).items():
        left = select(FLAGS.c.flag_id).where(FLAGS.c.story_id == shown.story_id, home() == former).limit(1)
        # If a story has lost all its flags, its floods continue in the new one.
        if connection.execute(left).scalar() is None:
            connection.execute(update(FLOODS).where(FLOODS.c.story_id == former).values(story_id=home_id))
    return moved.stories


def _copies_of(version: ArticleVersion) -> Select[Any]:
    """Return the query for the copies of a version, except those that are split off."""
    return _columns().where(
        FLAGS.c.original_id == version[0], FLAGS.c.original_version == version[1], _follows_original()
    )


def _with_descendants(first: Select[Any]) -> CTE:
    """Return a query for some flags and their descendants: copies of their versions, their copies, and so on."""
    below = first.cte("below", recursive=True)
    of_these = and_(FLAGS.c.original_id == below.c.article_id, FLAGS.c.original_version == below.c.version)
    # UNION, not UNION ALL: damaged events may form a cycle.
    return below.union(_columns().join(below, of_these).where(below.c.leads_on, _follows_original()))


def _columns() -> Select[Any]:
    leads_on = and_(FLAGS.c.kind.in_(COPY_KINDS), FLAGS.c.released_ms.is_(None))
    return select(FLAGS.c.flag_id, FLAGS.c.article_id, FLAGS.c.version, leads_on.label("leads_on"))


def _follows_original() -> ColumnElement[bool]:
    """Return the condition for flags that move with their original."""
    return ~and_(FLAGS.c.kind.in_(COPY_KINDS), IS_SPLIT)
