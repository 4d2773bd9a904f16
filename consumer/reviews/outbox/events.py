"""Puts events into the outbox: for the sink, and for each webhook that subscribes to their kind and source."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, exists, func, insert, select, update

from consumer.reviews.portable import insert_rows, portions
from consumer.reviews.tables import DELIVERIES, OUTBOX, WEBHOOKS

EventKind = Literal["flag", "bank_match", "story", "flood", "decision"]
# Built once: every decision executes it.
_SUBSCRIPTIONS: Final = select(WEBHOOKS.c.webhook_id, WEBHOOKS.c.kinds, WEBHOOKS.c.sources)
SINK_KINDS: Final[frozenset[EventKind]] = frozenset({"story", "flood"})
"""Kinds that the console sends to the sink. The others come from the sink, or go only to webhooks."""


class NewEvent(NamedTuple):
    """A new event. ``payload`` returns its JSON, given its number. ``sources`` are the sources it is about."""

    kind: EventKind
    story_id: int | None
    sources: frozenset[str]
    payload: Callable[[int], bytes]


class Subscription(NamedTuple):
    """A webhook, and the kinds and sources of its events. Without ``sources``, it gets events of all sources."""

    webhook_id: int
    kinds: frozenset[EventKind]
    sources: frozenset[str]

    def takes(self, event: NewEvent) -> bool:
        """Return whether the webhook gets an event."""
        return event.kind in self.kinds and (not self.sources or not self.sources.isdisjoint(event.sources))


def subscriptions(connection: Connection) -> list[Subscription]:
    """Return the subscriptions of all webhooks. A webhook that is off still collects events."""
    rows = connection.execute(_SUBSCRIPTIONS)
    return [
        Subscription(webhook_id, frozenset(json.loads(kinds)), frozenset(json.loads(sources)))
        for webhook_id, kinds, sources in rows
    ]


def is_wanted(connection: Connection, kind: EventKind) -> bool:
    """Return whether the sink or a webhook gets events of a kind."""
    return kind in SINK_KINDS or any(kind in subscription.kinds for subscription in subscriptions(connection))


def append(connection: Connection, events: Sequence[NewEvent], now_ms: int) -> None:
    """Write the events that have receivers. The caller must hold ``Lock.FLAGS``, which determines their order."""
    subscribed = subscriptions(connection) if events else []
    receivers = (
        (event, [subscription.webhook_id for subscription in subscribed if subscription.takes(event)])
        for event in events
    )
    wanted = [(event, to) for event, to in receivers if to or event.kind in SINK_KINDS]
    if not wanted:
        return
    # The latest row is never deleted, so no number is used twice.
    latest = connection.execute(select(func.max(OUTBOX.c.event_id))).scalar() or 0
    numbered = list(enumerate(wanted, start=latest + 1))
    rows: list[dict[str, object]] = [
        {
            "event_id": number,
            "kind": event.kind,
            "story_id": event.story_id,
            "at_ms": now_ms,
            "payload": event.payload(number).decode(),
            "is_for_sink": event.kind in SINK_KINDS,
        }
        for number, (event, _) in numbered
    ]
    deliveries: list[dict[str, object]] = [
        {"webhook_id": webhook_id, "event_id": number, "story_id": event.story_id, "due_ms": now_ms}
        for number, (event, to) in numbered
        for webhook_id in to
    ]
    insert_rows(connection, insert(OUTBOX), rows)
    insert_rows(connection, insert(DELIVERIES), deliveries)
    _hold_back(connection, latest)
    # If the former latest event was already sent, it was kept only for its number.
    forget(connection, [latest])


def _hold_back(connection: Connection, latest: int) -> None:
    """Make deliveries of events after ``latest`` wait if an earlier event of their story waits for the same webhook."""
    earlier, delivery = DELIVERIES.alias("earlier").c, DELIVERIES.c
    has_earlier = exists().where(
        earlier.webhook_id == delivery.webhook_id,
        earlier.story_id == delivery.story_id,
        earlier.event_id < delivery.event_id,
    )
    connection.execute(update(DELIVERIES).where(delivery.event_id > latest, has_earlier).values(due_ms=None))


def forget(connection: Connection, event_ids: Iterable[int]) -> None:
    """Delete the events among these that have no receivers left. The latest event is kept.

    The caller must hold ``Lock.FLAGS``.
    """
    for portion in portions(event_ids):
        connection.execute(delete(OUTBOX).where(OUTBOX.c.event_id.in_(portion), ~OUTBOX.c.is_for_sink, *DELETABLE))


def _deletable() -> tuple[ColumnElement[bool], ...]:
    latest = OUTBOX.alias("latest")
    has_deliveries = exists().where(DELIVERIES.c.event_id == OUTBOX.c.event_id)
    return ~has_deliveries, OUTBOX.c.event_id < select(func.max(latest.c.event_id)).scalar_subquery()


DELETABLE: Final = _deletable()
"""The conditions for events that no webhook waits for, except the latest event."""
