"""Sends the console's own events to the sink, at least once, and in order within each stream.

Only one console sends at a time, under a lease. If it is killed before it records which events it has sent, the next
holder of the lease sends them again.
"""

import logging
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol, get_args

from consumer.lifecycle.thread_progress import ThreadProgress
from consumer.model.errors import SinkError
from consumer.model.hooks import Hooks
from consumer.reviews.database import Database, DatabaseUnavailable
from consumer.reviews.outbox import limits, sink_events
from consumer.reviews.outbox.events import EventKind
from consumer.reviews.outbox.limits import OutboxBacklog
from consumer.reviews.outbox.sink_events import StoredEvent
from consumer.telemetry.metrics.console import EventsMissed, EventsSent, OutboxCounted, SinkEventKind
from storage.clock import MS_PER_S

log = logging.getLogger("dupwatch")

EVENTS_THREAD: Final = "events"
"""The name of the thread that sends events."""
LEASE_S: Final = 30.0
"""How long a process may send alone before it must renew its lease."""
LEASE_LEFT_S_MIN: Final = 22.0
"""The time that must be left on the lease when a batch is sent. The sink may take most of this time."""
BATCH_EVENTS_MAX: Final = 1_000
"""The maximum number of events in a batch."""


class EventPort(Protocol):
    """The destination of the console's own events."""

    @property
    def streams(self) -> Sequence[frozenset[EventKind]]:
        """The kinds of events, grouped into streams. One stream can continue while another waits for its topic."""
        ...

    def send(self, events: Sequence[StoredEvent]) -> None:
        """Send events of one stream, and return once the sink has them. Raises ``SinkError``."""
        ...


class OutboxRoom:
    """The room in the outbox for further events for the sink. Used by several threads."""

    def __init__(self, events_max: int) -> None:
        self.events_max = events_max
        self._waiting = 0
        self._is_stuck = False

    @property
    def is_stuck(self) -> bool:
        """Whether some events cannot be sent to the sink. If so, intake does not wait for room."""
        return self._is_stuck

    def note_sending(self, *, is_stuck: bool) -> None:
        """Note whether some events cannot be sent to the sink."""
        self._is_stuck = is_stuck

    def note_waiting(self, events: int) -> None:
        """Note how many events wait for the sink."""
        self._waiting = events

    def has_room(self) -> bool:
        """Return whether more events may be added. True while sending fails: intake must not wait for the sink then."""
        return self._is_stuck or self._waiting <= self.events_max


@dataclass(frozen=True, slots=True)
class EventSenderParts:
    """The parts of an event sender.

    ``unwritable`` returns a path that must be writable but is not, or None. While it returns a path, nothing is sent.
    """

    database: Database
    port: EventPort
    room: OutboxRoom
    now_ms: Callable[[], int]
    hooks: Hooks
    unwritable: Callable[[], Path | None] = lambda: None


class EventSender:
    """A sender of events to the sink. Used by one thread; senders in other processes compete for the lease."""

    def __init__(self, parts: EventSenderParts) -> None:
        self._parts = parts
        self._holder = uuid.uuid4().hex
        self._lease_until_s = 0.0
        self._progress = ThreadProgress(parts.hooks)
        self._sent_up_to = dict.fromkeys(parts.port.streams, 0)
        """For each stream, the id up to which the sink has all events."""

    def work(self) -> bool:
        """Send waiting events, and return whether there may be more. Raises the port's and the database's errors."""
        if self._parts.unwritable() is not None:
            # Another console may send the events, or this one once it can write.
            self._parts.room.note_sending(is_stuck=True)
            return False
        has_more, failure = False, None
        with self._progress.at_work():
            for stream in self._sent_up_to:
                try:
                    has_more |= self._send(stream)
                except SinkError as error:
                    # Continue: the topic of another stream may exist.
                    failure = failure or error
        self._parts.room.note_sending(is_stuck=failure is not None)
        if failure is not None:
            raise failure
        return has_more

    def close(self) -> None:
        """Give the lease back, so that another console can send immediately."""
        if self._lease_until_s:
            with suppress(DatabaseUnavailable):
                self._parts.database.write(lambda connection: sink_events.release_lease(connection, self._holder))

    def _send(self, stream: frozenset[EventKind]) -> bool:
        """Send one batch of a stream; return whether there may be more."""
        events = self._next(stream)
        if events and time.monotonic() > self._lease_until_s - LEASE_LEFT_S_MIN:
            # The former holder of the lease may have sent some of these events.
            events = self._next(stream) if self._claim() else []
        if not events:
            return False
        self._parts.port.send(events)
        event_ids = [event.event_id for event in events]
        self._parts.database.write(lambda connection: sink_events.mark_events_sent(connection, event_ids))
        self._sent_up_to[stream] = event_ids[-1]
        for kind in get_args(SinkEventKind):
            if number := sum(event.kind == kind for event in events):
                self._parts.hooks.report(EventsSent(kind, number))
        return len(events) == BATCH_EVENTS_MAX

    def _next(self, stream: frozenset[EventKind]) -> list[StoredEvent]:
        with self._parts.database.read_connection() as connection:
            # Read this first, so that events committed in between are not passed over.
            latest_id = sink_events.latest_id(connection)
            events = sink_events.pending_events(connection, stream, self._sent_up_to[stream], BATCH_EVENTS_MAX)
        if not events:
            self._sent_up_to[stream] = latest_id
        return events

    def _claim(self) -> bool:
        """Claim or renew the lease, and return whether this process has it."""
        begun_s, parts = time.monotonic(), self._parts
        lease_ms = round(LEASE_S * MS_PER_S)
        has_lease = parts.database.write(
            lambda connection: sink_events.hold_lease(connection, self._holder, parts.now_ms(), lease_ms)
        )
        self._lease_until_s = begun_s + LEASE_S if has_lease else 0.0
        return has_lease


def enforce_limits(database: Database, room: OutboxRoom, now_ms: int, report: Callable[[object], None]) -> None:
    """Report the size of the outbox, and drop events beyond its limits. Raises ``DatabaseUnavailable``.

    The latest events of a webhook are dropped if too many wait for it. So are those for the sink, but only while
    sending to the sink fails. If the sink is only slow, the intake waits and nothing is dropped.
    """
    with database.read_connection() as connection:
        for_sink, for_webhooks = limits.sink_backlog(connection), limits.webhook_backlog(connection)
        full = limits.full_webhooks(connection, room.events_max) if for_webhooks.events > room.events_max else []
    missed = 0
    for webhook_id in full:
        missed += database.write(partial(limits.drop_latest, webhook_id=webhook_id, events_max=room.events_max))
    if missed:
        log.warning("%d events were dropped for webhooks that already have %d waiting.", missed, room.events_max)
        report(EventsMissed("webhooks", missed))
    if for_sink.events > room.events_max and room.is_stuck:
        dropped = database.write(lambda connection: sink_events.drop_latest(connection, room.events_max))
        log.warning("%d events were dropped for the sink, which already has %d waiting.", dropped, room.events_max)
        report(EventsMissed("sink", dropped))
        for_sink = for_sink._replace(events=for_sink.events - dropped)
    room.note_waiting(for_sink.events)
    report(
        OutboxCounted(
            events={"sink": for_sink.events, "webhooks": for_webhooks.events - missed},
            oldest_s={"sink": _age_s(for_sink, now_ms), "webhooks": _age_s(for_webhooks, now_ms)},
        )
    )


def _age_s(waiting: OutboxBacklog, now_ms: int) -> float:
    return 0.0 if waiting.since_ms is None else max(0, now_ms - waiting.since_ms) / MS_PER_S
