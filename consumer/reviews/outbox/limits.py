"""The size of the outbox, and its limits.

Each receiver has its own limit, so that a receiver that is down does not affect the others.
"""

from typing import NamedTuple

from sqlalchemy import Connection, delete, func, select, update

from consumer.reviews.outbox.events import forget
from consumer.reviews.portable import Lock, acquire_lock
from consumer.reviews.tables import DELIVERIES, OUTBOX, WEBHOOKS
from consumer.reviews.tables.outbox_tables import IS_FOR_SINK


class OutboxBacklog(NamedTuple):
    """The number of waiting events, and when the first of them was written, or None without any."""

    events: int
    since_ms: int | None


def sink_backlog(connection: Connection) -> OutboxBacklog:
    """Return the backlog of the sink."""
    events = connection.execute(select(func.count()).select_from(OUTBOX).where(IS_FOR_SINK)).scalar_one()
    first = select(OUTBOX.c.at_ms).where(IS_FOR_SINK).order_by(OUTBOX.c.event_id).limit(1)
    return OutboxBacklog(events, connection.execute(first).scalar())


def webhook_backlog(connection: Connection) -> OutboxBacklog:
    """Return the backlog of all webhooks. An event for two webhooks counts twice."""
    events = connection.execute(select(func.count()).select_from(DELIVERIES)).scalar_one()
    first = select(func.min(DELIVERIES.c.event_id)).scalar_subquery()
    return OutboxBacklog(events, connection.execute(select(OUTBOX.c.at_ms).where(OUTBOX.c.event_id == first)).scalar())


def full_webhooks(connection: Connection, events_max: int) -> list[int]:
    """Return the ids of webhooks with more than ``events_max`` waiting events."""
    counted = select(DELIVERIES.c.webhook_id).group_by(DELIVERIES.c.webhook_id).having(func.count() > events_max)
    return list(connection.execute(counted.order_by(DELIVERIES.c.webhook_id)).scalars())


def drop_latest(connection: Connection, webhook_id: int, events_max: int) -> int:
    """Keep the first ``events_max`` events for a webhook; count the others as missed, and return their number."""
    acquire_lock(connection, Lock.FLAGS)
    of_webhook = DELIVERIES.c.webhook_id == webhook_id
    beyond = select(DELIVERIES.c.event_id).where(of_webhook).order_by(DELIVERIES.c.event_id).offset(events_max)
    event_ids = list(connection.execute(beyond).scalars())
    if not event_ids:
        return 0
    connection.execute(delete(DELIVERIES).where(of_webhook, DELIVERIES.c.event_id >= event_ids[0]))
    missed = WEBHOOKS.c.missed + len(event_ids)
    connection.execute(update(WEBHOOKS).where(WEBHOOKS.c.webhook_id == webhook_id).values(missed=missed))
    forget(connection, event_ids)
    return len(event_ids)
