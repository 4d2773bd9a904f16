"""Finds the story that a flag belongs to, also when a later event changes that.

A flag names the version it repeats. Where that version has a flag too, both are in one story; where that flag was
released, the version is kept, and so the root of a story; where there is no such flag, the root is what the event says.
So a flag that comes late takes over the copies of its version, with all of theirs, and a release lets them go.
"""

from collections.abc import Sequence

from sqlalchemy import CTE, Connection, and_, func, select, update

from consumer.reviews.flag_row import IN_FORCE, UNDECIDED
from consumer.reviews.kinds.rules import COPIES, RULES
from consumer.reviews.portable import portions
from consumer.reviews.story_changes import Change, change_stories, measure_stories, name_roots, stories_by_root
from consumer.reviews.tables import FLAGS, FLOODS

Version = tuple[str, str]
_COPIES = FLAGS.alias("copies")


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
            .where(_COPIES.c.story_id != FLAGS.c.story_id)
            .distinct()
        )
        for row in connection.execute(apart).all():
            # Another of them may have taken this one over meanwhile.
            own = connection.execute(select(FLAGS.c.story_id).where(FLAGS.c.flag_id == row.flag_id)).scalar_one()
            touched |= _move(connection, (row.article_id, row.version), own)
    return touched


def part_from_released(connection: Connection, released: Sequence[tuple[Version, int]]) -> set[int]:
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
            touched |= _move(connection, versions[flag_id], stories[versions[flag_id][0]])
    return touched


def _move(connection: Connection, version: Version, story_id: int) -> set[int]:
    """Bring the copies of a version, theirs, and so on, into a story; return the stories that they joined or left."""
    below = _below(version)
    inside = FLAGS.c.flag_id.in_(select(below.c.flag_id))
    counted = (
        select(FLAGS.c.story_id, FLAGS.c.kind, FLAGS.c.state, func.count())
        .where(inside, FLAGS.c.story_id != story_id)
        .group_by(FLAGS.c.story_id, FLAGS.c.kind, FLAGS.c.state)
    )
    changes: dict[int, Change] = {story_id: Change()}
    for former, kind, state, number in connection.execute(counted):
        is_copy = RULES[kind].is_copy
        moved = Change(number * (is_copy and state in IN_FORCE), number * (is_copy and state in UNDECIDED))
        changes[former] = changes.get(former, Change()) + Change(-moved.copies, -moved.open_copies)
        changes[story_id] += moved
    formers = [former for former in changes if former != story_id]
    if not formers:
        return set()
    connection.execute(update(FLAGS).where(inside, FLAGS.c.story_id != story_id).values(story_id=story_id))
    change_stories(connection, changes)
    measure_stories(connection, changes)
    # A flood goes on in the story that has taken over all of its own.
    is_empty = ~select(FLAGS.c.flag_id).where(FLAGS.c.story_id == FLOODS.c.story_id).exists()
    connection.execute(update(FLOODS).where(FLOODS.c.story_id.in_(formers), is_empty).values(story_id=story_id))
    return set(changes)


def _below(version: Version) -> CTE:
    """Return a query for the copies of a version, the copies of these, and so on."""
    leads_on = and_(FLAGS.c.kind.in_(COPIES), FLAGS.c.released_ms.is_(None))
    columns = select(FLAGS.c.flag_id, FLAGS.c.article_id, FLAGS.c.version, leads_on.label("leads_on"))
    first = columns.where(FLAGS.c.original_id == version[0], FLAGS.c.original_version == version[1])
    below = first.cte("below", recursive=True)
    of_these = and_(FLAGS.c.original_id == below.c.article_id, FLAGS.c.original_version == below.c.version)
    # UNION, not UNION ALL: damaged events may lead in a circle.
    return below.union(columns.join(below, of_these).where(below.c.leads_on))
