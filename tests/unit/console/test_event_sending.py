"""How the console's own events get to the sink: in order, at least once, by one console at a time."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from typing_extensions import override

from consumer.console.intake.event_sending import (
    BATCH_EVENTS_MAX,
    LEASE_S,
    EventPort,
    EventSender,
    EventSenderParts,
    OutboxRoom,
    enforce_limits,
)
from consumer.model.errors import SinkError
from consumer.model.hooks import Hooks
from consumer.reviews.database import Connection, Database, DatabaseUnavailable
from consumer.reviews.outbox import sink_events
from consumer.reviews.outbox.events import EventKind, NewEvent, append
from consumer.reviews.outbox.sink_events import StoredEvent
from consumer.reviews.portable import Lock, acquire_lock
from consumer.telemetry.metrics.console import EventsMissed, EventsSent, OutboxCounted
from tests.unit.reviews.made import NOW_MS, counted_writes, write
from tests.unit.reviews.outbox_made import add_webhook, delivered_to, numbers_of

STORY: frozenset[EventKind] = frozenset({"story"})
FLOOD: frozenset[EventKind] = frozenset({"flood"})


class Topics(EventPort):
    """Two topics that note what they get. Either may be missing, and a batch may fail at its end."""

    streams: Sequence[frozenset[EventKind]] = (FLOOD, STORY)

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.missing: set[EventKind] = set()
        self.failures: list[Exception] = []

    @override
    def send(self, events: Sequence[StoredEvent]) -> None:
        if self.missing & {event.kind for event in events}:
            raise SinkError("there is no topic p.stories")
        self.sent += [event.event_id for event in events]
        if self.failures:
            raise self.failures.pop()


class Consoles:
    """Consoles over one database and one sink, with a clock of their own."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.database = database
        self.topics = Topics()
        self.at_ms = NOW_MS
        self.reported: list[object] = []
        self.unwritable: Path | None = None
        self.room = OutboxRoom(3)
        self.hooks = Hooks()
        for kind in (EventsSent, EventsMissed, OutboxCounted):
            self.hooks.on(kind, self.reported.append)
        monkeypatch.setattr("consumer.console.intake.event_sending.time.monotonic", lambda: self.at_ms / 1_000)

    def sender(self) -> EventSender:
        """One that is a process of its own, as far as the database knows."""
        return EventSender(
            EventSenderParts(
                self.database, self.topics, self.room, lambda: self.at_ms, self.hooks, lambda: self.unwritable
            )
        )

    def append(self, *kinds: EventKind) -> None:
        """Write events of these kinds, in one transaction."""
        events = [NewEvent(kind, 1, frozenset(), lambda _: b"{}") for kind in kinds]

        def work(connection: Connection) -> None:
            acquire_lock(connection, Lock.FLAGS)
            append(connection, events, self.at_ms)

        write(self.database, work)

    def count(self) -> OutboxCounted:
        """Keep the bounds, and return what is reported of them."""
        enforce_limits(self.database, self.room, self.at_ms, self.hooks.report)
        counted = self.reported.pop()
        assert isinstance(counted, OutboxCounted)
        return counted


@pytest.fixture
def consoles(database: Database, monkeypatch: pytest.MonkeyPatch) -> Consoles:
    """No console yet, and an empty database."""
    return Consoles(database, monkeypatch)


def test_events_are_sent_in_their_order_and_then_gone(consoles: Consoles) -> None:
    """Each once; nothing is written where nothing waits."""
    sender = consoles.sender()
    consoles.append("story", "story", "flood")
    assert not sender.work()
    assert consoles.topics.sent == [3, 1, 2]
    assert consoles.reported == [EventsSent("flood", 1), EventsSent("story", 2)]
    with counted_writes(consoles.database) as writes:
        assert not sender.work()
        assert writes == []
    consoles.append("story")
    assert not sender.work()
    assert consoles.topics.sent == [3, 1, 2, 4]
    assert numbers_of(consoles.database) == [4]


def test_many_events_are_sent_batch_by_batch(consoles: Consoles) -> None:
    """It says that there are more, until there are none."""
    consoles.topics.streams = (frozenset({"story", "flood"}),)
    consoles.append(*["story", "flood", "flood"] * BATCH_EVENTS_MAX)  # type: ignore[arg-type]  # kinds
    sender = consoles.sender()
    assert [sender.work() for _ in range(4)] == [True, True, True, False]
    assert consoles.topics.sent == list(range(1, 3 * BATCH_EVENTS_MAX + 1))


def test_what_was_sent_and_not_noted_is_sent_again(consoles: Consoles, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the process itself after an error, and by another one once the lease of a killed one is over."""
    noted, away = sink_events.mark_events_sent, [True, True]

    def failing(connection: Connection, event_ids: Sequence[int]) -> None:
        if away:
            away.pop()
            raise DatabaseUnavailable("gone")
        noted(connection, event_ids)

    monkeypatch.setattr(sink_events, "mark_events_sent", failing)
    consoles.append("story", "story")
    killed, other = consoles.sender(), consoles.sender()
    for _ in range(2):
        with pytest.raises(DatabaseUnavailable):
            killed.work()
    assert not other.work()
    assert consoles.topics.sent == [1, 2] * 2
    consoles.at_ms += round(LEASE_S * 1_000)
    consoles.append("story")
    assert not other.work()
    assert not killed.work()
    assert consoles.topics.sent == [1, 2, 1, 2, 1, 2, 3]


def test_after_an_error_a_batch_is_sent_again(consoles: Consoles) -> None:
    """Whatever of it the sink has."""
    consoles.append("story", "story")
    consoles.topics.failures = [SinkError("no broker")]
    sender = consoles.sender()
    with pytest.raises(SinkError):
        sender.work()
    stuck = [consoles.room.is_stuck]
    assert not sender.work()
    stuck.append(consoles.room.is_stuck)
    assert stuck == [True, False]
    assert consoles.topics.sent == [1, 2, 1, 2]


@pytest.mark.parametrize("missing", ["story", "flood"])
def test_a_missing_topic_stops_only_its_own_events(consoles: Consoles, missing: EventKind) -> None:
    """The others go on, and its own come in their order once it is there."""
    consoles.topics.missing = {missing}
    sender = consoles.sender()
    for _ in range(2):
        consoles.append("story", "flood", "story")
        with pytest.raises(SinkError, match="there is no topic"):
            sender.work()
    numbers = {"story": [1, 3, 4, 6], "flood": [2, 5]}
    own = numbers.pop(missing)
    assert [consoles.topics.sent] == [*numbers.values()]
    consoles.topics.missing.clear()
    assert not sender.work()
    assert consoles.topics.sent[-len(own) :] == own


def test_what_another_one_has_just_sent_is_not_sent_again(consoles: Consoles, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends between the look of the next one and its claim."""
    one, other = consoles.sender(), consoles.sender()
    consoles.append("story")
    claim = other._claim

    def late() -> bool:
        one.work()
        one.close()
        return claim()

    monkeypatch.setattr(other, "_claim", late)
    assert not other.work()
    assert consoles.topics.sent == [1]


def test_another_console_goes_on_at_once_where_one_ends(consoles: Consoles) -> None:
    """A process that is stopped lets the lease go; before that it renews it while it sends."""
    one, other = consoles.sender(), consoles.sender()
    for _ in range(5):
        consoles.append("story")
        assert not one.work()
        consoles.append("story")
        assert not other.work()
        assert not one.work()
        consoles.at_ms += round(LEASE_S * 500)
    consoles.append("story")
    one.close()
    assert not other.work()
    assert consoles.topics.sent == list(range(1, 12))


def test_several_consoles_send_each_event_once(consoles: Consoles) -> None:
    """In their order, while more come; whoever does not have the lease waits."""
    senders = [consoles.sender() for _ in range(4)]
    ended = threading.Event()

    def work(sender: EventSender) -> None:
        while not ended.is_set():
            sender.work()
        while sender.work():
            pass

    threads = [threading.Thread(target=work, args=(sender,)) for sender in senders]
    for thread in threads:
        thread.start()
    for _ in range(60):
        consoles.append("story", "story")
    ended.set()
    for thread in threads:
        thread.join(60)
    senders[0].work()
    assert consoles.topics.sent == list(range(1, 121))


def test_a_console_that_may_not_write_waits(consoles: Consoles) -> None:
    """For one that may: it neither tries nor complains, and takes no lease."""
    consoles.append("story")
    consoles.unwritable = Path("v.jsonl.console.jsonl")
    assert not consoles.sender().work()
    assert (consoles.topics.sent, consoles.room.is_stuck) == ([], True)
    consoles.unwritable = None
    assert not consoles.sender().work()
    assert consoles.topics.sent == [1]


def test_how_much_waits_is_reported(consoles: Consoles) -> None:
    """By receiver, with the age of the oldest event."""
    hook = add_webhook(consoles.database, "flag")
    assert consoles.count() == OutboxCounted({"sink": 0, "webhooks": 0}, {"sink": 0.0, "webhooks": 0.0})
    consoles.append("flag")
    consoles.at_ms += 2_000
    consoles.append("story", "story")
    consoles.at_ms += 3_000
    assert consoles.count() == OutboxCounted({"sink": 2, "webhooks": 1}, {"sink": 3.0, "webhooks": 5.0})
    assert delivered_to(consoles.database, hook) == [1]


def test_the_intake_waits_for_a_sink_that_is_slow(consoles: Consoles) -> None:
    """Nothing is dropped then; for one that takes nothing it does not wait, and later events are not kept."""
    consoles.append(*["story"] * 5)  # type: ignore[arg-type]  # kinds
    assert consoles.count().events["sink"] == 5
    assert not consoles.room.has_room()
    consoles.topics.missing = {"story"}
    sender = consoles.sender()
    with pytest.raises(SinkError):
        sender.work()
    assert consoles.room.has_room()
    assert consoles.count().events["sink"] == 3
    assert consoles.reported == [EventsMissed("sink", 2)]
    consoles.topics.missing.clear()
    sender.work()
    assert consoles.topics.sent == [1, 2, 3]
    assert consoles.count().events["sink"] == 0
    assert consoles.room.has_room()


def test_a_webhook_that_is_full_gets_no_more(consoles: Consoles) -> None:
    """It is reported, and the sink gets everything."""
    hook = add_webhook(consoles.database, "story")
    consoles.append(*["story"] * 5)  # type: ignore[arg-type]  # kinds
    consoles.sender().work()
    consoles.reported.clear()
    assert consoles.count().events == {"sink": 0, "webhooks": 3}
    assert consoles.reported == [EventsMissed("webhooks", 2)]
    assert (delivered_to(consoles.database, hook), consoles.topics.sent) == ([1, 2, 3], [1, 2, 3, 4, 5])
