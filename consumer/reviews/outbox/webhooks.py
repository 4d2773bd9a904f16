"""Webhooks: the receivers of events, their secrets, and whether they are on."""

import json
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from consumer.model.errors import DupwatchError
from consumer.reviews.outbox.events import EventKind, forget
from consumer.reviews.portable import Lock, acquire_lock
from consumer.reviews.tables import DELIVERIES, PEOPLE, WEBHOOKS
from consumer.reviews.tables.outbox_tables import IS_FAILING
from consumer.text.names import name_key
from storage.clock import MS_PER_DAY

WEBHOOKS_MAX: Final = 20
"""The maximum number of webhooks. Each has its own threads, and every event is compared with all of them."""
SOURCES_MAX: Final = 100
FORMER_SECRET_MS: Final = MS_PER_DAY
"""How long messages are also signed with the former secret after it was replaced."""
OffReason = Literal["day", "gone", "person"]
"""Why a webhook is off: its receiver failed for a day, answered that it is gone, or a person turned it off."""


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """The part of a webhook that admins edit. Without ``sources``, it gets events of all sources."""

    name: str
    url: str
    kinds: tuple[EventKind, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FirstFailure:
    """The delivery to a webhook that has failed for longest, and the result of its last attempt."""

    since_ms: int
    status: int | None
    error: str


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook, without its secrets. All its texts must be escaped on pages."""

    webhook_id: int
    settings: WebhookSettings
    person: str
    created_ms: int
    former_until_ms: int | None
    off_ms: int | None
    off_why: OffReason | None
    missed: int
    waiting: int
    last_ms: int | None
    last_status: int | None
    last_why: str
    failure: FirstFailure | None


class WebhookError(DupwatchError):
    """A webhook cannot be added or changed. The message says why."""


class WebhookTaken(WebhookError):  # noqa: N818  # named for the webhook
    """Another webhook has this name, or one with the same ``name_key``."""


class WebhooksFull(WebhookError):  # noqa: N818  # named for the list
    """The maximum number of webhooks has been reached."""


class WebhookMissing(WebhookError):  # noqa: N818  # named for the webhook
    """No webhook has this number."""


def webhooks(connection: Connection) -> list[Webhook]:
    """Return all webhooks, ordered by name."""
    return _select_webhooks(connection)


def webhook_numbered(connection: Connection, webhook_id: int) -> Webhook:
    """Return a webhook. Raises ``WebhookMissing``."""
    for webhook in _select_webhooks(connection, WEBHOOKS.c.webhook_id == webhook_id):
        return webhook
    raise WebhookMissing(f"there is no webhook with the number {webhook_id}")


def create(connection: Connection, settings: WebhookSettings, secret: str, person_id: int, now_ms: int) -> int:
    """Add a webhook, which gets new events according to its settings, and return its number.

    Raises ``WebhookTaken`` and ``WebhooksFull``.
    """
    acquire_lock(connection, Lock.FLAGS)
    _check_name(connection, settings.name)
    if connection.execute(select(func.count()).select_from(WEBHOOKS)).scalar_one() >= WEBHOOKS_MAX:
        raise WebhooksFull(f"there are already {WEBHOOKS_MAX} webhooks; remove one first")
    values = {**_columns(settings), "secret": secret, "person_id": person_id, "created_ms": now_ms}
    number: int = connection.execute(insert(WEBHOOKS).values(values).returning(WEBHOOKS.c.webhook_id)).scalar_one()
    return number


def change(connection: Connection, webhook_id: int, settings: WebhookSettings) -> None:
    """Change a webhook. Waiting events go to the new URL. Raises ``WebhookTaken`` and ``WebhookMissing``."""
    acquire_lock(connection, Lock.FLAGS)
    _check_name(connection, settings.name, own_id=webhook_id)
    _update(connection, webhook_id, **_columns(settings))


def rotate(connection: Connection, webhook_id: int, secret: str, now_ms: int) -> None:
    """Replace the secret of a webhook. Messages are also signed with the former one for ``FORMER_SECRET_MS``.

    Raises ``WebhookMissing``.
    """
    acquire_lock(connection, Lock.FLAGS)
    former = {"former_secret": WEBHOOKS.c.secret, "former_until_ms": now_ms + FORMER_SECRET_MS}
    _update(connection, webhook_id, **former, secret=secret)


def end_former_secret(connection: Connection, webhook_id: int) -> None:
    """Delete the former secret. Raises ``WebhookMissing``."""
    _update(connection, webhook_id, former_secret=None, former_until_ms=None)


def end_expired_secrets(connection: Connection, now_ms: int) -> None:
    """Delete former secrets that have expired."""
    expired = update(WEBHOOKS).where(WEBHOOKS.c.former_until_ms <= now_ms)
    connection.execute(expired.values(former_secret=None, former_until_ms=None))


def turn_off(connection: Connection, webhook_id: int, reason: OffReason, now_ms: int) -> bool:
    """Turn a webhook off, and return whether it was on. Its events are kept."""
    on = (WEBHOOKS.c.webhook_id == webhook_id, WEBHOOKS.c.off_ms.is_(None))
    return bool(connection.execute(update(WEBHOOKS).where(*on).values(off_ms=now_ms, off_why=reason)).rowcount)


def send_waiting(connection: Connection, webhook_id: int, now_ms: int) -> None:
    """Turn a webhook on, and make the first waiting event of each story due now. Raises ``WebhookMissing``."""
    acquire_lock(connection, Lock.FLAGS)
    _update(connection, webhook_id, off_ms=None, off_why=None, paused_until_ms=None)
    # Clearing the start of the failure gives the receiver another day. Events being sent now may be sent twice.
    due = {"due_ms": now_ms, "failing_since_ms": None}
    first = (DELIVERIES.c.webhook_id == webhook_id, DELIVERIES.c.due_ms.is_not(None))
    connection.execute(update(DELIVERIES).where(*first).values(due))


def remove(connection: Connection, webhook_id: int) -> int:
    """Remove a webhook with its waiting events, and return how many events were removed.

    Raises ``WebhookMissing``.
    """
    acquire_lock(connection, Lock.FLAGS)
    waiting = delete(DELIVERIES).where(DELIVERIES.c.webhook_id == webhook_id).returning(DELIVERIES.c.event_id)
    event_ids = list(connection.execute(waiting).scalars())
    forget(connection, event_ids)
    if not connection.execute(delete(WEBHOOKS).where(WEBHOOKS.c.webhook_id == webhook_id)).rowcount:
        raise WebhookMissing(f"there is no webhook with the number {webhook_id}")
    return len(event_ids)


def secrets_of(connection: Connection, webhook_id: int, now_ms: int) -> tuple[str, ...]:
    """Return the secrets that sign the messages of a webhook, the current one first. Raises ``WebhookMissing``."""
    columns = (WEBHOOKS.c.secret, WEBHOOKS.c.former_secret, WEBHOOKS.c.former_until_ms)
    row = connection.execute(select(*columns).where(WEBHOOKS.c.webhook_id == webhook_id)).first()
    if row is None:
        raise WebhookMissing(f"there is no webhook with the number {webhook_id}")
    has_former = row.former_until_ms is not None and row.former_until_ms > now_ms
    return (row.secret, row.former_secret) if has_former else (row.secret,)


def _select_webhooks(connection: Connection, *conditions: ColumnElement[bool]) -> list[Webhook]:
    rows = connection.execute(
        select(WEBHOOKS, PEOPLE.c.name.label("person"))
        .join_from(WEBHOOKS, PEOPLE, PEOPLE.c.person_id == WEBHOOKS.c.person_id)
        .where(*conditions)
        .order_by(WEBHOOKS.c.name)
    )
    return [_webhook(connection, row) for row in rows.all()]


def _webhook(connection: Connection, row: Any) -> Webhook:  # noqa: ANN401  # a row of the query
    waiting = select(func.count()).where(DELIVERIES.c.webhook_id == row.webhook_id)
    return Webhook(
        webhook_id=row.webhook_id,
        settings=WebhookSettings(row.name, row.url, tuple(json.loads(row.kinds)), tuple(json.loads(row.sources))),
        person=row.person,
        created_ms=row.created_ms,
        former_until_ms=row.former_until_ms,
        off_ms=row.off_ms,
        off_why=row.off_why,
        missed=row.missed,
        waiting=connection.execute(waiting).scalar_one(),
        last_ms=row.last_ms,
        last_status=row.last_status,
        last_why=row.last_why or "",
        failure=_first_failure(connection, row.webhook_id),
    )


def _first_failure(connection: Connection, webhook_id: int) -> FirstFailure | None:
    columns = (DELIVERIES.c.failing_since_ms, DELIVERIES.c.status, DELIVERIES.c.why)
    failing = (DELIVERIES.c.webhook_id == webhook_id, IS_FAILING)
    order = (DELIVERIES.c.failing_since_ms, DELIVERIES.c.event_id)
    row = connection.execute(select(*columns).where(*failing).order_by(*order).limit(1)).first()
    return None if row is None else FirstFailure(row.failing_since_ms, row.status, row.why or "")


def _columns(settings: WebhookSettings) -> dict[str, str]:
    kinds, sources = json.dumps(settings.kinds), json.dumps(settings.sources)
    return {"name": settings.name, "url": settings.url, "kinds": kinds, "sources": sources}


def _check_name(connection: Connection, name: str, own_id: int | None = None) -> None:
    """Raise ``WebhookTaken`` if another webhook has a name with the same ``name_key``."""
    for webhook_id, taken in connection.execute(select(WEBHOOKS.c.webhook_id, WEBHOOKS.c.name)):
        if webhook_id != own_id and name_key(taken) == name_key(name):
            raise WebhookTaken(f"a webhook named {name} already exists; choose another name")


def _update(connection: Connection, webhook_id: int, **values: Any) -> None:  # noqa: ANN401  # of any column
    changed = connection.execute(update(WEBHOOKS).where(WEBHOOKS.c.webhook_id == webhook_id).values(**values))
    if not changed.rowcount:
        raise WebhookMissing(f"there is no webhook with the number {webhook_id}")
