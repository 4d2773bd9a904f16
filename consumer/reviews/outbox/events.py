"""Puts events into the outbox: for the sink, and for each webhook that wants their kind and source."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, delete, exists, func, insert, select, update

from consumer.reviews.portable import portions
from consumer.reviews.tables import DELIVERIES, OUTBOX, WEBHOOKS

EventKind = Literal["flag", "bank_match", "story", "flood", "decision"]
FOR_SINK: Final[frozenset[EventKind]] = frozenset({"story", "flood"})
"""Kinds that the console itself sends to the sink. The others come from there, or stay in the console."""


class NewEvent(NamedTuple):
    """An event that has happened. ``payload`` makes its JSON, given its number; ``sources`` are those it is about."""

    kind: EventKind
    story_id: int | None
    sources: frozenset[str]
    payload: Callable[[int], bytes]


class Subscription(NamedTuple):
    """A webhook, and the events that it gets. Without ``sources`` it gets those of all."""

    webhook_id: int
    kinds: frozenset[EventKind]
    sources: frozenset[str]

    def takes(self, event: NewEvent) -> bool:
        """Return whether it gets an event."""
        return event.kind in self.kinds and (not self.sources or not self.sources.isdisjoint(event.sources))


def subscriptions(connection: Connection) -> list[Subscription]:
    """Return the webhooks. One that is off still collects events."""
    rows = connection.execute(select(WEBHOOKS.c.webhook_id, WEBHOOKS.c.kinds, WEBHOOKS.c.sources))
    return [
        Subscription(webhook_id, frozenset(json.loads(kinds)), frozenset(json.loads(sources)))
        for webhook_id, kinds, sources in rows
    ]


def is_wanted(connection: Connection, kind: EventKind) -> bool:
    """Return whether anybody gets events of a kind. What only webhooks get need not be made where none wants it."""
    return kind in FOR_SINK or any(kind in each.kinds for each in subscriptions(connection))


def append(connection: Connection, events: Sequence[NewEvent], now_ms: int) -> None:
    """Write the events that somebody gets. Whoever calls this holds ``Lock.FLAGS``, so that their order is known."""
    subscribed = subscriptions(connection) if events else []
    receivers = ((event, [each.webhook_id for each in subscribed if each.takes(event)]) for event in events)
    wanted = [(event, to) for event, to in receivers if to or event.kind in FOR_SINK]
    if not wanted:
        return
    # The latest row is never deleted, so no number comes twice.
    latest = connection.execute(select(func.max(OUTBOX.c.event_id))).scalar() or 0
    numbered = list(enumerate(wanted, start=latest + 1))
    rows: list[dict[str, object]] = [
        {
            "event_id": number,
            "kind": event.kind,
            "story_id": event.story_id,
            "at_ms": now_ms,
            "payload": event.payload(number).decode(),
            "is_for_sink": event.kind in FOR_SINK,
        }
        for number, (event, _) in numbered
    ]
    deliveries: list[dict[str, object]] = [
        {"webhook_id": webhook_id, "event_id": number, "story_id": event.story_id, "due_ms": now_ms}
        for number, (event, to) in numbered
        for webhook_id in to
    ]
    _insert(connection, OUTBOX, rows)
    _insert(connection, DELIVERIES, deliveries)
    _hold_back(connection, latest)
    # It was kept for its number alone, if it was sent.
    forget(connection, [latest])


def _insert(connection: Connection, table: Table, rows: Sequence[Mapping[str, object]]) -> None:
    for portion in portions(rows):
        connection.execute(insert(table), portion)


def _hold_back(connection: Connection, latest: int) -> None:
    """Make deliveries of events later than ``latest`` wait where an earlier event of their story does."""
    earlier, own = DELIVERIES.alias("earlier").c, DELIVERIES.c
    has_earlier = exists().where(
        earlier.webhook_id == own.webhook_id, earlier.story_id == own.story_id, earlier.event_id < own.event_id
    )
    connection.execute(update(DELIVERIES).where(own.event_id > latest, has_earlier).values(due_ms=None))


def forget(connection: Connection, event_ids: Iterable[int]) -> None:
    """Delete those of these events that nobody is still to get. The latest row stays: its number counts.

    Whoever calls this holds ``Lock.FLAGS``.
    """
    for portion in portions(event_ids):
        connection.execute(delete(OUTBOX).where(OUTBOX.c.event_id.in_(portion), ~OUTBOX.c.is_for_sink, *DELETABLE))


def _deletable() -> tuple[ColumnElement[bool], ...]:
    latest = OUTBOX.alias("latest")
    has_deliveries = exists().where(DELIVERIES.c.event_id == OUTBOX.c.event_id)
    return ~has_deliveries, OUTBOX.c.event_id < select(func.max(latest.c.event_id)).scalar_subquery()


DELETABLE: Final = _deletable()
"""No webhook is still to get an event, and it is not the latest one."""
