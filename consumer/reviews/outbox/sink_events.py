"""The events for the sink: which come next, which console sends them, and which have been sent."""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, delete, func, or_, select, update

from consumer.reviews.outbox.events import DELETABLE, EventKind
from consumer.reviews.portable import Lock, acquire_lock, dialect_insert, portions
from consumer.reviews.tables import LEASES, OUTBOX
from consumer.reviews.tables.outbox_tables import IS_FOR_SINK

_LEASE: Final = "sink events"


class StoredEvent(NamedTuple):
    """An event of the outbox; ``payload`` is its JSON."""

    event_id: int
    kind: EventKind
    payload: bytes


def latest_id(connection: Connection) -> int:
    """Return the number of the latest event, or 0 if there is none. All later events have larger numbers."""
    return connection.execute(select(func.max(OUTBOX.c.event_id))).scalar() or 0


def pending_events(
    connection: Connection, kinds: Collection[EventKind], after_id: int, limit: int
) -> list[StoredEvent]:
    """Return the next unsent events of these kinds after ``after_id``, in order."""
    rows = connection.execute(
        select(OUTBOX.c.event_id, OUTBOX.c.kind, OUTBOX.c.payload)
        .where(IS_FOR_SINK, OUTBOX.c.event_id > after_id, OUTBOX.c.kind.in_(kinds))
        .order_by(OUTBOX.c.event_id)
        .limit(limit)
    )
    return [StoredEvent(event_id, kind, payload.encode()) for event_id, kind, payload in rows]


def mark_events_sent(connection: Connection, event_ids: Sequence[int]) -> None:
    """Record that the sink has these events. Those that no webhook waits for are deleted, except the latest event."""
    acquire_lock(connection, Lock.FLAGS)
    for portion in portions(event_ids):
        connection.execute(delete(OUTBOX).where(OUTBOX.c.event_id.in_(portion), *DELETABLE))
        connection.execute(update(OUTBOX).where(OUTBOX.c.event_id.in_(portion)).values(is_for_sink=False))


def drop_latest(connection: Connection, events_max: int) -> int:
    """Keep the first ``events_max`` events for the sink, and return how many others are dropped."""
    acquire_lock(connection, Lock.FLAGS)
    beyond = select(OUTBOX.c.event_id).where(IS_FOR_SINK).order_by(OUTBOX.c.event_id).offset(events_max)
    event_ids = list(connection.execute(beyond).scalars())
    mark_events_sent(connection, event_ids)
    return len(event_ids)


def hold_lease(connection: Connection, holder: str, now_ms: int, lease_ms: int) -> bool:
    """Acquire or renew the lease for sending, and return True; return False while another console holds it."""
    free = or_(LEASES.c.holder == holder, LEASES.c.until_ms <= now_ms)
    values = {"holder": holder, "until_ms": now_ms + lease_ms}
    statement = dialect_insert(connection, LEASES).values(name=_LEASE, **values)
    claimed = statement.on_conflict_do_update(index_elements=[LEASES.c.name], set_=values, where=free)
    return connection.execute(claimed.returning(LEASES.c.name)).scalar() is not None


def release_lease(connection: Connection, holder: str) -> None:
    """Release the lease for sending if ``holder`` holds it."""
    connection.execute(delete(LEASES).where(LEASES.c.name == _LEASE, LEASES.c.holder == holder))
