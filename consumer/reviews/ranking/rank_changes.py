"""Changes ranks: people set and remove them, and a console stores its configured ranks when it starts.

If a person changes the rank of a source with few flags and copies, its stories are updated in the same transaction.
After any other change, a thread of the console updates all stories in portions. ``SOURCE_RANKS.applied_to`` records its
progress, so the work continues after a restart, and several consoles can share it.
"""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import Connection, delete, select, update

from consumer.reviews.portable import Lock, acquire_lock, dialect_insert, portions, storable_text
from consumer.reviews.ranking.preferring import refresh_preferred_in
from consumer.reviews.ranking.ranks import SourceRank, listed_ranks, rank_of, rank_progress
from consumer.reviews.sources import source_ids
from consumer.reviews.tables import FLAGS, SOURCE_RANKS, STORIES

FLAGS_AT_ONCE_MAX: Final = 500
"""If a source has more flags than this, or its articles have more copies, its stories are not updated immediately."""
STORIES_AT_ONCE: Final = 500
"""Stories updated in one transaction after a rank has changed."""
_BEFORE_FIRST_STORY: Final = 0
"""A number below every story's id: the rank has not been applied to any story."""


def set_rank(connection: Connection, source: str, rank: int, person_id: int, now_ms: int) -> None:
    """Set the rank of a source, which overrides a configured one. The source may be new."""
    acquire_lock(connection, Lock.FLAGS)
    _change(connection, source_ids(connection, [source])[source], rank, person_id, now_ms)


def remove_rank(connection: Connection, known: SourceRank, configured: Mapping[str, int], now_ms: int) -> None:
    """Remove a rank that a person has set. The configured rank, if any, applies again."""
    acquire_lock(connection, Lock.FLAGS)
    rank = {storable_text(name): rank for name, rank in configured.items()}.get(known.source, 0)
    _change(connection, known.source_id, rank, None, now_ms)


def configure_ranks(connection: Connection, configured: Mapping[str, int], now_ms: int) -> int:
    """Store the configured ranks, and return how many of them are new, changed or removed.

    Ranks that people have set remain. ``apply_ranks`` applies the ranks to stories.
    """
    acquire_lock(connection, Lock.FLAGS)
    wanted = {storable_text(name): rank for name, rank in configured.items() if rank}
    known = {each.source: each for each in listed_ranks(connection)}
    removed = {name: 0 for name in known if name not in wanted}
    changed = {
        name: rank
        for name, rank in {**removed, **wanted}.items()
        if name not in known or (known[name].person is None and known[name].rank != rank)
    }
    numbers = source_ids(connection, changed)
    for name, rank in changed.items():
        _upsert_rank(connection, numbers[name], rank, None, now_ms, _BEFORE_FIRST_STORY)
    return len(changed)


def apply_ranks(connection: Connection, now_ms: int) -> bool:
    """Update the next stories after ranks have changed, and return whether more stories may follow."""
    acquire_lock(connection, Lock.FLAGS)
    after_id = rank_progress(connection)
    if after_id is None:
        return False
    query = select(STORIES.c.story_id).where(STORIES.c.story_id > after_id).order_by(STORIES.c.story_id)
    story_ids = list(connection.execute(query.limit(STORIES_AT_ONCE)).scalars())
    refresh_preferred_in(connection, story_ids, now_ms)
    if len(story_ids) == STORIES_AT_ONCE:
        reached = story_ids[-1]
        behind = update(SOURCE_RANKS).where(SOURCE_RANKS.c.applied_to < reached)
        connection.execute(behind.values(applied_to=reached))
        return True
    connection.execute(update(SOURCE_RANKS).values(applied_to=None))
    connection.execute(delete(SOURCE_RANKS).where(SOURCE_RANKS.c.rank == 0, SOURCE_RANKS.c.person_id.is_(None)))
    return False


def _change(connection: Connection, source_id: int, rank: int, person_id: int | None, now_ms: int) -> None:
    """Store a rank, and update the stories of its source. If there are too many, ``apply_ranks`` updates them later."""
    known = rank_of(connection, source_id)
    is_same = rank == (0 if known is None else known.rank)
    # An earlier change may not have been applied to all stories yet.
    applied_to = None if known is None else known.applied_to
    story_ids = set() if is_same else _stories_of(connection, source_id)
    if story_ids is None:
        applied_to = _BEFORE_FIRST_STORY
    if rank == 0 and person_id is None and applied_to is None:
        connection.execute(delete(SOURCE_RANKS).where(SOURCE_RANKS.c.source_id == source_id))
    else:
        _upsert_rank(connection, source_id, rank, person_id, now_ms, applied_to)
    if story_ids:
        refresh_preferred_in(connection, story_ids, now_ms)


def _upsert_rank(
    connection: Connection, source_id: int, rank: int, person_id: int | None, now_ms: int, applied_to: int | None
) -> None:
    values = {"rank": rank, "person_id": person_id, "at_ms": now_ms, "applied_to": applied_to}
    row = dialect_insert(connection, SOURCE_RANKS).values(source_id=source_id, **values)
    connection.execute(row.on_conflict_do_update(index_elements=[SOURCE_RANKS.c.source_id], set_=values))


def _stories_of(connection: Connection, source_id: int) -> set[int] | None:
    """Return the stories with articles of a source, or None if it has too many flags or copies.

    The source of an original is known from its own flag or from a copy's.
    """
    own = select(FLAGS.c.story_id, FLAGS.c.article_id).where(FLAGS.c.source_id == source_id)
    copied = select(FLAGS.c.original_id).where(FLAGS.c.original_source_id == source_id)
    flags = connection.execute(own.limit(FLAGS_AT_ONCE_MAX + 1)).all()
    originals = list(connection.execute(copied.limit(FLAGS_AT_ONCE_MAX + 1)).scalars())
    if max(len(flags), len(originals)) > FLAGS_AT_ONCE_MAX:
        return None
    found = {flag.story_id for flag in flags}
    for portion in portions({*originals, *(flag.article_id for flag in flags)}):
        found.update(connection.execute(select(STORIES.c.story_id).where(STORIES.c.root_id.in_(portion))).scalars())
    return found
