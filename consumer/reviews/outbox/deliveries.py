"""Deliveries of events to webhooks: which process sends each of them, and with what result.

For each story and webhook, only the first event is due; the next becomes due once the first is accepted. So a failed
delivery holds up its story. Claims expire, so another process takes over from one that was killed, and sends its events
again under the same numbers.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, case, delete, func, literal, select, update

from consumer.reviews.outbox.events import forget
from consumer.reviews.portable import Lock, acquire_lock, storable_text
from consumer.reviews.tables import DELIVERIES, OUTBOX, WEBHOOKS
from consumer.reviews.tables.outbox_tables import IS_FAILING

_ERROR_CHARS_MAX: Final = 500
_WAIT_MS_MAX: Final = 7_200_000
"""Longer than the longest pause of ``webhooks.retrying.next_try_ms``."""


class DeliveryClaim(NamedTuple):
    """An event that only this process sends to a webhook until the claim expires. ``tries`` identifies the claim."""

    webhook_id: int
    event_id: int
    tries: int
    failing_since_ms: int | None
    at_ms: int
    payload: str


class Failure(NamedTuple):
    """A failed delivery: its HTTP status if there was an answer, the error, and when to try again."""

    claim: DeliveryClaim
    status: int | None
    error: str
    due_ms: int


class LastAttempt(NamedTuple):
    """The last attempt to send to a webhook. If it failed, nothing is sent until ``paused_until_ms``."""

    at_ms: int
    status: int | None
    error: str
    paused_until_ms: int | None


class Destination(NamedTuple):
    """The URL of a webhook, and the secrets that sign its messages: the current and, while valid, the former one."""

    webhook_id: int
    name: str
    url: str
    secrets: tuple[str, ...]


class DeliveryBacklog(NamedTuple):
    """The oldest waiting delivery, and the number of webhooks that the console has turned off (``given_up``).

    ``oldest_ms`` is when the oldest event that waits for an enabled webhook was written, or None without one.
    """

    oldest_ms: int | None
    given_up: int


def destinations(connection: Connection, now_ms: int) -> list[Destination]:
    """Return the webhooks that are on and not paused after a failure."""
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
    return connection.execute(_due(webhook_id, now_ms, 1)).first() is not None


def claim_due_deliveries(
    connection: Connection, webhook_id: int, now_ms: int, lease_ms: int, limit: int
) -> list[DeliveryClaim]:
    """Claim up to ``limit`` due deliveries, longest due first, and return them in the order of their events.

    After ``lease_ms``, other processes may claim them.
    """
    # Other processes skip locked rows instead of waiting; SQLite allows one writer at a time.
    chosen = _due(webhook_id, now_ms, limit).with_for_update(of=DELIVERIES, skip_locked=True)
    delivery_ids = connection.execute(chosen).scalars().all()
    connection.execute(
        update(DELIVERIES)
        .where(DELIVERIES.c.delivery_id.in_(delivery_ids))
        .values(due_ms=now_ms + lease_ms, tries=DELIVERIES.c.tries + 1)
    )
    delivery = DELIVERIES.c
    columns = (delivery.webhook_id, delivery.event_id, delivery.tries, delivery.failing_since_ms)
    rows = connection.execute(
        select(*columns, OUTBOX.c.at_ms, OUTBOX.c.payload)
        .join_from(DELIVERIES, OUTBOX, OUTBOX.c.event_id == delivery.event_id)
        .where(delivery.delivery_id.in_(delivery_ids))
        .order_by(delivery.event_id)
    )
    return [DeliveryClaim(*row) for row in rows]


def note_accepted(connection: Connection, claims: Sequence[DeliveryClaim], now_ms: int) -> None:
    """Record that webhooks have accepted these events, even if the claim has expired in the meantime.

    The next event of each story becomes due.
    """
    acquire_lock(connection, Lock.FLAGS)
    delivery = DELIVERIES.c
    for claim in claims:
        story_id = connection.execute(
            delete(DELIVERIES).where(*_is_delivery_of(claim)).returning(delivery.story_id)
        ).scalar()
        if story_id is not None:
            of_story = (delivery.webhook_id == claim.webhook_id, delivery.story_id == story_id)
            first = select(func.min(delivery.event_id)).where(*of_story).scalar_subquery()
            connection.execute(update(DELIVERIES).where(*of_story, delivery.event_id == first).values(due_ms=now_ms))
    forget(connection, [claim.event_id for claim in claims])


def note_failed(connection: Connection, failure: Failure, now_ms: int) -> None:
    """Record that an attempt failed, unless another process has claimed or finished the delivery since."""
    acquire_lock(connection, Lock.FLAGS)
    is_claimed = (*_is_delivery_of(failure.claim), DELIVERIES.c.tries == failure.claim.tries)
    values = {
        "due_ms": failure.due_ms,
        "failing_since_ms": func.coalesce(DELIVERIES.c.failing_since_ms, literal(now_ms)),
        "status": failure.status,
        "why": storable_text(failure.error, _ERROR_CHARS_MAX),
    }
    connection.execute(update(DELIVERIES).where(*is_claimed).values(values))


def note_last(connection: Connection, webhook_id: int, last: LastAttempt) -> None:
    """Record the last attempt to send to a webhook, and until when the webhook is paused."""
    values = {
        "last_ms": last.at_ms,
        "last_status": last.status,
        "last_why": storable_text(last.error, _ERROR_CHARS_MAX),
        "paused_until_ms": last.paused_until_ms,
    }
    connection.execute(update(WEBHOOKS).where(WEBHOOKS.c.webhook_id == webhook_id).values(values))


def end_long_waits(connection: Connection, now_ms: int) -> None:
    """Make deliveries due, and end pauses of webhooks, if they would last longer than any retry.

    This happens if the clock was ahead when they were stored.
    """
    acquire_lock(connection, Lock.FLAGS)
    latest_ms = now_ms + _WAIT_MS_MAX
    ahead = (DELIVERIES.c.webhook_id.in_(select(WEBHOOKS.c.webhook_id)), DELIVERIES.c.due_ms > latest_ms)
    connection.execute(update(DELIVERIES).where(*ahead).values(due_ms=now_ms))
    paused = update(WEBHOOKS).where(WEBHOOKS.c.paused_until_ms > latest_ms)
    connection.execute(paused.values(paused_until_ms=None))


def failing_since(connection: Connection, webhook_id: int) -> int | None:
    """Return the time since which deliveries to a webhook have been failing, or None if none is failing."""
    query = select(func.min(DELIVERIES.c.failing_since_ms)).where(DELIVERIES.c.webhook_id == webhook_id, IS_FAILING)
    found: int | None = connection.execute(query).scalar()
    return found


def backlog(connection: Connection) -> DeliveryBacklog:
    """Return the backlog of all webhooks."""
    first = (
        select(func.min(DELIVERIES.c.event_id))
        .join_from(DELIVERIES, WEBHOOKS, WEBHOOKS.c.webhook_id == DELIVERIES.c.webhook_id)
        .where(WEBHOOKS.c.off_ms.is_(None))
        .scalar_subquery()
    )
    oldest_ms = connection.execute(select(OUTBOX.c.at_ms).where(OUTBOX.c.event_id == first)).scalar()
    # Webhooks that a person turned off are meant to be off.
    given_up = (WEBHOOKS.c.off_ms.is_not(None), WEBHOOKS.c.off_why.in_(("day", "gone")))
    count = connection.execute(select(func.count()).select_from(WEBHOOKS).where(*given_up)).scalar_one()
    return DeliveryBacklog(oldest_ms, count)


def _is_delivery_of(claim: DeliveryClaim) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for the delivery of a claim. Its id cannot be used: SQLite reuses ids of deleted rows."""
    return DELIVERIES.c.webhook_id == claim.webhook_id, DELIVERIES.c.event_id == claim.event_id


def _due(webhook_id: int, now_ms: int, limit: int) -> Select[Any]:
    """Return the query for due deliveries."""
    return (
        select(DELIVERIES.c.delivery_id)
        .where(DELIVERIES.c.webhook_id == webhook_id, DELIVERIES.c.due_ms <= now_ms)
        .order_by(DELIVERIES.c.due_ms, DELIVERIES.c.event_id)
        .limit(limit)
    )
