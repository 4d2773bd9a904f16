"""Floods: stories that get many copies within a short time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Select, func, insert, select, update

from consumer.reviews.flag_row import IN_FORCE
from consumer.reviews.kinds.rules import COPY_KINDS
from consumer.reviews.portable import among, portions
from consumer.reviews.repairs.in_force import merged_stories
from consumer.reviews.tables import FLAGS, FLOODS, STORIES
from storage.clock import MS_PER_S

LATEST_MAX: Final = 5_000
"""How many of a story's latest copies are examined, in addition to the number that makes a flood."""


@dataclass(frozen=True, slots=True)
class Flood:
    """A flood, from its first article to its last one so far. ``noted_ms`` is when the console noticed it."""

    flood_id: int
    story_id: int
    root_id: str
    began_ms: int
    last_ms: int
    noted_ms: int
    copies: int


class _Burst(NamedTuple):
    began_ms: int
    last_ms: int


def note_floods(
    connection: Connection, story_ids: Iterable[int], now_ms: int, flood_s: float, flood_copies: int
) -> list[Flood]:
    """Store the floods in stories with new copies, and return those that have just begun.

    A flood lasts as long as ``flood_copies`` copies arrive within ``flood_s``.
    """
    flood_ms = round(flood_s * MS_PER_S)
    begun: list[int] = []
    for story_id in _large_stories(connection, sorted(story_ids), flood_copies):
        for burst in _bursts(connection, story_id, flood_ms, flood_copies):
            flood_id = _store_burst(connection, story_id, burst, now_ms, flood_ms)
            if flood_id is not None:
                begun.append(flood_id)
    return [flood for portion in portions(begun) for flood in _floods(connection, portion)]


def floods(connection: Connection, limit: int) -> list[Flood]:
    """Return up to ``limit`` floods, latest first."""
    query = _columns().order_by(FLOODS.c.last_ms.desc(), FLOODS.c.flood_id.desc()).limit(limit)
    return [Flood(**row._asdict()) for row in connection.execute(query)]


def unannounced_floods(connection: Connection, limit: int) -> list[Flood]:
    """Return up to ``limit`` floods whose event has not been written yet, oldest first."""
    query = _columns().where(FLOODS.c.sent_ms.is_(None)).order_by(FLOODS.c.flood_id).limit(limit)
    return [Flood(**row._asdict()) for row in connection.execute(query)]


def mark_announced(connection: Connection, flood_id: int, now_ms: int) -> None:
    """Record that the event of a flood was written, or that the flood is too old for one."""
    connection.execute(update(FLOODS).where(FLOODS.c.flood_id == flood_id).values(sent_ms=now_ms))


def _columns() -> Select[Any]:
    return select(
        FLOODS.c.flood_id,
        FLOODS.c.story_id,
        STORIES.c.root_id,
        FLOODS.c.began_ms,
        FLOODS.c.last_ms,
        FLOODS.c.noted_ms,
        FLOODS.c.copies,
    ).join_from(FLOODS, STORIES, STORIES.c.story_id == FLOODS.c.story_id)


def _floods(connection: Connection, flood_ids: Sequence[int]) -> list[Flood]:
    query = _columns().where(FLOODS.c.flood_id.in_(flood_ids)).order_by(FLOODS.c.flood_id)
    return [Flood(**row._asdict()) for row in connection.execute(query)]


def _large_stories(connection: Connection, story_ids: Sequence[int], flood_copies: int) -> list[int]:
    found: list[int] = []
    for portion in portions(story_ids):
        named = among(connection, STORIES.c.story_id, portion)
        large = select(STORIES.c.story_id).where(named, STORIES.c.copies >= flood_copies)
        found += connection.execute(large.order_by(STORIES.c.story_id)).scalars()
    return found


def _bursts(connection: Connection, story_id: int, window_ms: int, flood_copies: int) -> list[_Burst]:
    """Return the spans of time in which at least ``flood_copies`` of the latest copies arrived within a window."""
    latest = (
        select(FLAGS.c.arrived_ms)
        .where(FLAGS.c.story_id == story_id, FLAGS.c.kind.in_(COPY_KINDS), FLAGS.c.state.in_(IN_FORCE))
        .order_by(FLAGS.c.arrived_ms.desc())
        .limit(LATEST_MAX + flood_copies)
    )
    times = sorted(connection.execute(latest).scalars())
    bursts: list[_Burst] = []
    for first, last in zip(times, times[flood_copies - 1 :], strict=False):
        if last - first > window_ms:
            continue
        if bursts and first <= bursts[-1].last_ms:
            bursts[-1] = bursts[-1]._replace(last_ms=last)
        else:
            bursts.append(_Burst(first, last))
    return bursts


def _store_burst(connection: Connection, story_id: int, burst: _Burst, now_ms: int, window_ms: int) -> int | None:
    """Store a burst as part of a known flood or as a new flood; return the id of a new flood, or else None."""
    touches = (FLOODS.c.last_ms >= burst.began_ms - window_ms, FLOODS.c.began_ms <= burst.last_ms + window_ms)
    # Stories merged into this one keep their floods, which may continue here.
    shown = [story_id, *merged_stories(connection, story_id)]
    query = select(FLOODS).where(FLOODS.c.story_id.in_(shown), *touches).order_by(FLOODS.c.flood_id).limit(1)
    known = connection.execute(query).one_or_none()
    began_ms = burst.began_ms if known is None else min(known.began_ms, burst.began_ms)
    last_ms = burst.last_ms if known is None else max(known.last_ms, burst.last_ms)
    if known is not None and (began_ms, last_ms) == (known.began_ms, known.last_ms):
        return None
    in_span = FLAGS.c.arrived_ms.between(began_ms, last_ms)
    copies = connection.execute(
        select(func.count()).where(
            FLAGS.c.story_id == story_id, FLAGS.c.kind.in_(COPY_KINDS), FLAGS.c.state.in_(IN_FORCE), in_span
        )
    ).scalar_one()
    values = {"began_ms": began_ms, "last_ms": last_ms, "copies": copies}
    if known is not None:
        connection.execute(update(FLOODS).where(FLOODS.c.flood_id == known.flood_id).values(values))
        return None
    statement = insert(FLOODS).values(story_id=story_id, noted_ms=now_ms, **values)
    return int(connection.execute(statement.returning(FLOODS.c.flood_id)).scalar_one())
