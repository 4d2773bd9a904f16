"""Deliveries of events to webhooks: which process sends which, and what became of them.

A story waits behind its failed delivery: of a story and a webhook only the first event is due, and the next one once
that is accepted. A claim runs out by itself, so that a process that was killed leaves nothing undone; what it had sent
is sent again under the same number.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, case, delete, func, literal, select, update

from consumer.reviews.outbox.events import forget
from consumer.reviews.portable import Lock, one_at_a_time, storable
from consumer.reviews.tables import DELIVERIES, OUTBOX, WEBHOOKS
from consumer.reviews.tables.outbox_tables import IS_FAILING

_WHY_CHARS_MAX: Final = 500
_WAIT_MAX_MS: Final = 7_200_000
"""Longer than the longest pause of ``next_try_ms``."""


class DeliveryClaim(NamedTuple):
    """An event that this process alone sends to a webhook until the claim runs out. ``tries`` tells claims apart."""

    webhook_id: int
    event_id: int
    tries: int
    failing_since_ms: int | None
    at_ms: int
    payload: str


class Failure(NamedTuple):
    """A delivery that failed: the status of HTTP, why, and when to try again."""

    claim: DeliveryClaim
    status: int | None
    why: str
    due_ms: int


class LastAttempt(NamedTuple):
    """The last attempt of a webhook. Unless it was accepted, nothing is sent until ``paused_until_ms``."""

    at_ms: int
    status: int | None
    why: str
    paused_until_ms: int | None


class Destination(NamedTuple):
    """Where a webhook is, and what signs its messages: its secret, and the former one while that is still used."""

    webhook_id: int
    name: str
    url: str
    secrets: tuple[str, ...]


class DeliveryBacklog(NamedTuple):
    """Since when the oldest event waits for a webhook that is on, and how many webhooks are given up.

    ``given_up`` counts the webhooks that the console has turned off by itself.
    """

    oldest_ms: int | None
    given_up: int


def destinations(connection: Connection, now_ms: int) -> list[Destination]:
    """Return the webhooks that are on, and that do not pause after a failure."""
    columns = (WEBHOOKS.c.webhook_id, WEBHOOKS.c.name, WEBHOOKS.c.url, WEBHOOKS.c.secret)
    former = case((WEBHOOKS.c.former_until_ms > now_ms, WEBHOOKS.c.former_secret))
    is_paused = func.coalesce(WEBHOOKS.c.paused_until_ms, 0) > now_ms
    query = select(*columns, former).where(WEBHOOKS.c.off_ms.is_(None), ~is_paused).order_by(WEBHOOKS.c.webhook_id)
    return [
        Destination(webhook_id, name, url, (secret,) if former is None else (secret, former))
        for webhook_id, name, url, secret, former in connection.execute(query)
    ]


def is_any_due(connection: Connection, webhook_id: int, now_ms: int) -> bool:
    """Return whether this process could claim a delivery. Changes nothing."""
    return connection.execute(_free(webhook_id, now_ms, 1)).first() is not None


def claim_due_deliveries(
    connection: Connection, webhook_id: int, now_ms: int, lease_ms: int, limit: int
) -> list[DeliveryClaim]:
    """Claim deliveries that are due, the longest due first. After ``lease_ms`` others may claim them."""
    # Others choose others, and do not wait; SQLite lets only one choose at a time.
    chosen = _free(webhook_id, now_ms, limit).with_for_update(of=DELIVERIES, skip_locked=True)
    delivery_ids = connection.execute(chosen).scalars().all()
    connection.execute(
        update(DELIVERIES)
        .where(DELIVERIES.c.delivery_id.in_(delivery_ids))
        .values(due_ms=now_ms + lease_ms, tries=DELIVERIES.c.tries + 1)
    )
    own = DELIVERIES.c
    columns = (own.webhook_id, own.event_id, own.tries, own.failing_since_ms)
    rows = connection.execute(
        select(*columns, OUTBOX.c.at_ms, OUTBOX.c.payload)
        .join_from(DELIVERIES, OUTBOX, OUTBOX.c.event_id == own.event_id)
        .where(own.delivery_id.in_(delivery_ids))
        .order_by(own.event_id)
    )
    return [DeliveryClaim(*row) for row in rows]


def note_accepted(connection: Connection, claims: Sequence[DeliveryClaim], now_ms: int) -> None:
    """Note that webhooks have these events, also where a claim has run out in the meantime.

    The next event of each story becomes due.
    """
    one_at_a_time(connection, Lock.FLAGS)
    own = DELIVERIES.c
    for each in claims:
        story_id = connection.execute(delete(DELIVERIES).where(*_of(each)).returning(own.story_id)).scalar()
        if story_id is not None:
            of_story = (own.webhook_id == each.webhook_id, own.story_id == story_id)
            first = select(func.min(own.event_id)).where(*of_story).scalar_subquery()
            connection.execute(update(DELIVERIES).where(*of_story, own.event_id == first).values(due_ms=now_ms))
    forget(connection, [each.event_id for each in claims])


def note_failed(connection: Connection, failure: Failure, now_ms: int) -> None:
    """Note that an attempt failed, unless the claim has run out and another process has the delivery."""
    one_at_a_time(connection, Lock.FLAGS)
    own = (*_of(failure.claim), DELIVERIES.c.tries == failure.claim.tries)
    values = {
        "due_ms": failure.due_ms,
        "failing_since_ms": func.coalesce(DELIVERIES.c.failing_since_ms, literal(now_ms)),
        "status": failure.status,
        "why": storable(failure.why, _WHY_CHARS_MAX),
    }
    connection.execute(update(DELIVERIES).where(*own).values(values))


def note_last(connection: Connection, webhook_id: int, last: LastAttempt) -> None:
    """Note the last attempt of a webhook, and whether it pauses."""
    values = {
        "last_ms": last.at_ms,
        "last_status": last.status,
        "last_why": storable(last.why, _WHY_CHARS_MAX),
        "paused_until_ms": last.paused_until_ms,
    }
    connection.execute(update(WEBHOOKS).where(WEBHOOKS.c.webhook_id == webhook_id).values(values))


def end_long_waits(connection: Connection, now_ms: int) -> None:
    """Make due what would wait for longer than any retry does: the clock was ahead when its time was noted."""
    one_at_a_time(connection, Lock.FLAGS)
    latest_ms = now_ms + _WAIT_MAX_MS
    ahead = (DELIVERIES.c.webhook_id.in_(select(WEBHOOKS.c.webhook_id)), DELIVERIES.c.due_ms > latest_ms)
    connection.execute(update(DELIVERIES).where(*ahead).values(due_ms=now_ms))
    paused = update(WEBHOOKS).where(WEBHOOKS.c.paused_until_ms > latest_ms)
    connection.execute(paused.values(paused_until_ms=None))


def failing_since(connection: Connection, webhook_id: int) -> int | None:
    """Return since when the first of a webhook's deliveries has been failing; None where none is."""
    query = select(func.min(DELIVERIES.c.failing_since_ms)).where(DELIVERIES.c.webhook_id == webhook_id, IS_FAILING)
    found: int | None = connection.execute(query).scalar()
    return found


def backlog(connection: Connection) -> DeliveryBacklog:
    """Return what waits in all."""
    first = (
        select(func.min(DELIVERIES.c.event_id))
        .join_from(DELIVERIES, WEBHOOKS, WEBHOOKS.c.webhook_id == DELIVERIES.c.webhook_id)
        .where(WEBHOOKS.c.off_ms.is_(None))
        .scalar_subquery()
    )
    oldest_ms = connection.execute(select(OUTBOX.c.at_ms).where(OUTBOX.c.event_id == first)).scalar()
    # Those that a person turned off are meant to be off.
    given_up = (WEBHOOKS.c.off_ms.is_not(None), WEBHOOKS.c.off_why.in_(("day", "gone")))
    count = connection.execute(select(func.count()).select_from(WEBHOOKS).where(*given_up)).scalar_one()
    return DeliveryBacklog(oldest_ms, count)


def _of(claim: DeliveryClaim) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for the delivery of a claim. SQLite gives the ids of deleted rows to others."""
    return DELIVERIES.c.webhook_id == claim.webhook_id, DELIVERIES.c.event_id == claim.event_id


def _free(webhook_id: int, now_ms: int, limit: int) -> Select[Any]:
    """Return the query for deliveries that are due."""
    return (
        select(DELIVERIES.c.delivery_id)
        .where(DELIVERIES.c.webhook_id == webhook_id, DELIVERIES.c.due_ms <= now_ms)
        .order_by(DELIVERIES.c.due_ms, DELIVERIES.c.event_id)
        .limit(limit)
    )
