"""Sends the console's own events to the sink: at least once, and in their order.

One console sends at a time, under a lease. A process that is killed after it sent some, and before it noted that,
leaves them to be sent again by whoever has the lease next.
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

from consumer.lifecycle.turns import Turns
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
"""The name of the thread that sends."""
LEASE_S: Final = 30.0
"""How long a process sends alone, unless it says so again."""
LEASE_LEFT_S: Final = 22.0
"""What must be left of it before a batch: the sink may take most of that, and then nothing of it may be under way."""
BATCH_EVENTS: Final = 1_000
"""Events that are sent together."""


class EventPort(Protocol):
    """Where the console's own events go."""

    @property
    def streams(self) -> Sequence[frozenset[EventKind]]:
        """Return the kinds of events, apart where one kind may go on while another waits for its topic."""
        ...

    def send(self, events: Sequence[StoredEvent]) -> None:
        """Send events of one stream, and return once the sink has them. Raises ``SinkError``."""
        ...


class OutboxRoom:
    """Whether the outbox has room for more events for the sink. Used by several threads."""

    def __init__(self, events_max: int) -> None:
        self.events_max = events_max
        self._waiting = 0
        self._is_stuck = False

    @property
    def is_stuck(self) -> bool:
        """Return whether the sink takes nothing: then nobody waits for room."""
        return self._is_stuck

    def note_sending(self, *, is_stuck: bool) -> None:
        """Note whether the sink takes events."""
        self._is_stuck = is_stuck

    def note_waiting(self, events: int) -> None:
        """Note how many events wait for the sink."""
        self._waiting = events

    def has_room(self) -> bool:
        """Return whether more may come in; also True where the sink takes nothing, since intake never stops for it."""
        return self._is_stuck or self._waiting <= self.events_max


@dataclass(frozen=True, slots=True)
class EventSenderParts:
    """What a sender of events works with. It sends nothing while ``unwritable`` returns what it may not write."""

    database: Database
    port: EventPort
    room: OutboxRoom
    now_ms: Callable[[], int]
    hooks: Hooks
    unwritable: Callable[[], Path | None] = lambda: None


class EventSender:
    """Sends events to the sink; used by one thread. Others may do so in other processes."""

    def __init__(self, parts: EventSenderParts) -> None:
        self._parts = parts
        self._holder = uuid.uuid4().hex
        self._held_until_s = 0.0
        self._turns = Turns(parts.hooks)
        self._seen_ids = dict.fromkeys(parts.port.streams, 0)
        """For each stream the number up to which the sink has everything."""

    def work(self) -> bool:
        """Send what waits; return whether there may be more. Raises what ``EventPort`` and the database do."""
        if self._parts.unwritable() is not None:
            # Another console may send them, or this one once it may write.
            self._parts.room.note_sending(is_stuck=True)
            return False
        has_more, failure = False, None
        with self._turns.at_work():
            for stream in self._seen_ids:
                try:
                    has_more |= self._send(stream)
                except SinkError as error:
                    # The topic of another stream may be there.
                    failure = failure or error
        self._parts.room.note_sending(is_stuck=failure is not None)
        if failure is not None:
            raise failure
        return has_more

    def close(self) -> None:
        """Let another console send at once."""
        if self._held_until_s:
            with suppress(DatabaseUnavailable):
                self._parts.database.written(lambda connection: sink_events.let_go(connection, self._holder))

    def _send(self, stream: frozenset[EventKind]) -> bool:
        """Send one batch of a stream; return whether there may be more."""
        events = self._next(stream)
        if events and time.monotonic() > self._held_until_s - LEASE_LEFT_S:
            # Whoever had the lease before may have sent some.
            events = self._next(stream) if self._claim() else []
        if not events:
            return False
        self._parts.port.send(events)
        event_ids = [event.event_id for event in events]
        self._parts.database.written(lambda connection: sink_events.sent(connection, event_ids))
        self._seen_ids[stream] = event_ids[-1]
        for kind in get_args(SinkEventKind):
            if number := sum(event.kind == kind for event in events):
                self._parts.hooks.report(EventsSent(kind, number))
        return len(events) == BATCH_EVENTS

    def _next(self, stream: frozenset[EventKind]) -> list[StoredEvent]:
        with self._parts.database.reading() as connection:
            # First: what is committed in between is not passed over.
            latest_id = sink_events.latest_id(connection)
            events = sink_events.pending_events(connection, stream, self._seen_ids[stream], BATCH_EVENTS)
        if not events:
            self._seen_ids[stream] = latest_id
        return events

    def _claim(self) -> bool:
        """Claim the lease, or renew it; return whether this process has it."""
        begun_s, parts = time.monotonic(), self._parts
        lease_ms = round(LEASE_S * MS_PER_S)
        is_held = parts.database.written(
            lambda connection: sink_events.hold(connection, self._holder, parts.now_ms(), lease_ms)
        )
        self._held_until_s = begun_s + LEASE_S if is_held else 0.0
        return is_held


def keep_bounds(database: Database, room: OutboxRoom, now_ms: int, report: Callable[[object], None]) -> None:
    """Report how much waits in the outbox, and drop what is beyond its limits. Raises ``DatabaseUnavailable``.

    A webhook that has too much gets no more until some of it is sent. So does a sink that takes nothing; for one that
    only takes its time the intake waits, and nothing is dropped.
    """
    with database.reading() as connection:
        for_sink, for_webhooks = limits.waiting_for_sink(connection), limits.waiting_for_webhooks(connection)
        full = limits.full_webhooks(connection, room.events_max) if for_webhooks.events > room.events_max else []
    missed = 0
    for webhook_id in full:
        missed += database.written(partial(limits.drop_latest, webhook_id=webhook_id, events_max=room.events_max))
    if missed:
        log.warning("%d events are not kept for webhooks that have %d waiting already.", missed, room.events_max)
        report(EventsMissed("webhooks", missed))
    if for_sink.events > room.events_max and room.is_stuck:
        dropped = database.written(lambda connection: sink_events.drop_latest(connection, room.events_max))
        log.warning("%d events are not kept for the sink, which has %d waiting already.", dropped, room.events_max)
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
