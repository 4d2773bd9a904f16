"""Releases that are due: which process sends each of them, and with what result."""

from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Select, or_, select, update

from consumer.reviews.flag_row import FlagRow, flag_row, flag_rows
from consumer.reviews.kinds.rules import RELEASABLE_KINDS
from consumer.reviews.portable import storable_text
from consumer.reviews.tables import FLAGS, PEOPLE, REASONS, REVIEWS, UNSENT

_REASON_CHARS_MAX: Final = 500
_WORKER_CHARS_MAX: Final = 64


class DueRelease(NamedTuple):
    """A final decision whose release has to be sent. ``reason`` is its note, its reason from the list, or ""."""

    review_id: int
    flag: FlagRow
    person: str
    reason: str


class ReleaseBacklog(NamedTuple):
    """The number of due releases, and since when the first of them has been due, or None without any."""

    due: int
    since_ms: int | None


def claim_due(connection: Connection, worker: str, now_ms: int, lease_ms: int, limit: int) -> list[DueRelease]:
    """Claim up to ``limit`` due releases for the process ``worker``, longest due first, and return them.

    They include releases that it has claimed before. After ``lease_ms``, other processes may claim them.
    """
    # Other processes skip locked rows instead of waiting; SQLite allows one writer at a time.
    chosen = _claimable(select(REVIEWS.c.review_id), worker, now_ms, limit).with_for_update(
        of=REVIEWS, skip_locked=True
    )
    claimed = (
        update(REVIEWS)
        .where(REVIEWS.c.review_id.in_(connection.execute(chosen).scalars().all()))
        .values(claimed_by=worker[:_WORKER_CHARS_MAX], claimed_ms=now_ms + lease_ms)
        .returning(REVIEWS.c.review_id)
    )
    return _due_releases(connection, list(connection.execute(claimed).scalars()))


def claimable_releases(connection: Connection, worker: str, now_ms: int, limit: int) -> list[tuple[str, str]]:
    """Return the articles and versions whose releases ``claim_due`` would claim for this process, in order."""
    query = _claimable(select(FLAGS.c.article_id, FLAGS.c.version), worker, now_ms, limit)
    return [(article_id, version) for article_id, version in connection.execute(query)]


def mark_sent(connection: Connection, review_id: int, now_ms: int) -> None:
    """Record that a release is in the store and in the sink."""
    connection.execute(update(REVIEWS).where(REVIEWS.c.review_id == review_id).values(sent_ms=now_ms))


def mark_refused(connection: Connection, review_id: int, reason: str, now_ms: int) -> None:
    """Record that a release can never be carried out, and the reason."""
    values = {"refused": storable_text(reason, _REASON_CHARS_MAX), "claimed_ms": now_ms}
    connection.execute(update(REVIEWS).where(REVIEWS.c.review_id == review_id).values(values))


def backlog(connection: Connection, now_ms: int) -> ReleaseBacklog:
    """Return how many releases are due, and since when. Claimed releases count too."""
    query = (
        select(REVIEWS.c.final_ms)
        .join_from(REVIEWS, FLAGS, REVIEWS.c.flag_id == FLAGS.c.flag_id)
        .where(UNSENT, REVIEWS.c.final_ms <= now_ms, FLAGS.c.kind.in_(RELEASABLE_KINDS))
    )
    times = list(connection.execute(query).scalars())
    return ReleaseBacklog(len(times), min(times, default=None))


def _claimable(columns: Select[Any], worker: str, now_ms: int, limit: int) -> Select[Any]:
    """Return the query for due releases that no other process has claimed."""
    is_own = REVIEWS.c.claimed_by == worker[:_WORKER_CHARS_MAX]
    is_free = or_(REVIEWS.c.claimed_ms.is_(None), REVIEWS.c.claimed_ms <= now_ms, is_own)
    return (
        columns.join_from(REVIEWS, FLAGS, REVIEWS.c.flag_id == FLAGS.c.flag_id)
        .where(UNSENT, REVIEWS.c.final_ms <= now_ms, is_free, FLAGS.c.kind.in_(RELEASABLE_KINDS))
        .order_by(REVIEWS.c.final_ms, REVIEWS.c.review_id)
        .limit(limit)
    )


def _due_releases(connection: Connection, review_ids: list[int]) -> list[DueRelease]:
    reviews = connection.execute(
        select(REVIEWS.c.review_id, REVIEWS.c.flag_id, PEOPLE.c.name, REVIEWS.c.note, REASONS.c.name.label("reason"))
        .join_from(REVIEWS, PEOPLE, PEOPLE.c.person_id == REVIEWS.c.person_id)
        .outerjoin(REASONS, REASONS.c.reason_id == REVIEWS.c.reason_id)
        .where(REVIEWS.c.review_id.in_(review_ids))
        .order_by(REVIEWS.c.final_ms, REVIEWS.c.review_id)
    ).all()
    rows = connection.execute(flag_rows().where(FLAGS.c.flag_id.in_([review.flag_id for review in reviews])))
    flags = {flag.flag_id: flag for flag in map(flag_row, rows)}
    return [
        DueRelease(review.review_id, flags[review.flag_id], review.name, review.note or review.reason or "")
        for review in reviews
    ]
