"""Webhooks and events for tests, as if something had happened."""

import json
from collections.abc import Sequence
from typing import Final, get_args

from sqlalchemy import select

from consumer.reviews import people
from consumer.reviews.database import Connection, Database
from consumer.reviews.outbox import events, webhooks
from consumer.reviews.outbox.events import EventKind, NewEvent
from consumer.reviews.outbox.webhooks import WebhookSettings
from consumer.reviews.portable import Lock, acquire_lock
from consumer.reviews.tables import DELIVERIES, OUTBOX
from tests.unit.reviews.made import NOW_MS, read, write

SECRET: Final = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="


def settings(
    name: str = "ops",
    url: str = "https://hooks.example/",
    kinds: Sequence[EventKind] = get_args(EventKind),
    sources: Sequence[str] = (),
) -> WebhookSettings:
    """What an admin asks for."""
    return WebhookSettings(name, url, tuple(kinds), tuple(sources))


def add_webhook(database: Database, wanted: WebhookSettings, secret: str = SECRET, now_ms: int = NOW_MS) -> int:
    """Create a webhook, and Wei, who does, unless she is there."""

    def added(connection: Connection) -> int:
        wei = people.person_named(connection, "Wei") or people.add_person(connection, "Wei", "admin", now_ms)
        return webhooks.create(connection, wanted, secret, wei.person_id, now_ms)

    return database.write(added)


def happened(
    text: str, story_id: int | None = None, kind: EventKind = "decision", sources: Sequence[str] = ("wire",)
) -> NewEvent:
    """An event whose payload has its number and a text."""
    payload = lambda number: json.dumps({"event": number, "text": text}).encode()  # noqa: E731  # a field
    return NewEvent(kind, story_id, frozenset(sources), payload)


def tell(database: Database, *new: NewEvent, now_ms: int = NOW_MS) -> None:
    """Append events, as whatever changes something does."""

    def told(connection: Connection) -> None:
        acquire_lock(connection, Lock.FLAGS)
        events.append(connection, new, now_ms)

    database.write(told)


def outbox(database: Database) -> list[int]:
    """The numbers of all events that are kept."""
    return read(database, lambda c: list(c.execute(select(OUTBOX.c.event_id).order_by(OUTBOX.c.event_id)).scalars()))


def waiting(database: Database, webhook_id: int) -> list[int]:
    """The numbers of the events that wait for a webhook."""
    query = select(DELIVERIES.c.event_id).where(DELIVERIES.c.webhook_id == webhook_id).order_by(DELIVERIES.c.event_id)
    return read(database, lambda c: list(c.execute(query).scalars()))


def found(database: Database, webhook_id: int) -> webhooks.Webhook:
    """A webhook as pages see it."""
    return read(database, webhooks.webhook_numbered, webhook_id)


def change(database: Database, webhook_id: int, wanted: WebhookSettings) -> None:
    """Change a webhook."""
    write(database, webhooks.change, webhook_id, wanted)
