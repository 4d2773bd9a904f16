"""The outbox: numbers, receivers, what is deleted when, who sends, and its limits."""

import json
from collections.abc import Callable

from sqlalchemy import delete, select

from consumer.reviews.database import Connection, Database
from consumer.reviews.outbox import limits, sink_events
from consumer.reviews.outbox.events import EventKind, NewEvent, append, forget
from consumer.reviews.outbox.limits import OutboxBacklog
from consumer.reviews.outbox.sink_events import StoredEvent
from consumer.reviews.portable import Lock, acquire_lock
from consumer.reviews.tables import DELIVERIES, OUTBOX, WEBHOOKS
from tests.unit.reviews.made import NOW_MS, at_once, number_of, read, write
from tests.unit.reviews.outbox_made import add_webhook, delivered_to, numbers_of

BOTH: frozenset[EventKind] = frozenset({"story", "flood"})


def made(kind: EventKind, story_id: int | None = 1, *sources: str) -> NewEvent:
    """An event that says its number."""
    return NewEvent(kind, story_id, frozenset(sources), lambda number: json.dumps({"event": number}).encode())


def appended(database: Database, *events: NewEvent, now_ms: int = NOW_MS) -> None:
    """Write events as one transaction does."""

    def work(connection: Connection) -> None:
        acquire_lock(connection, Lock.FLAGS)
        append(connection, events, now_ms)

    write(database, work)


def pending(database: Database, kinds: frozenset[EventKind] = BOTH, after_id: int = 0) -> list[int]:
    """The numbers of the next three events for the sink."""
    return [event.event_id for event in read(database, sink_events.pending_events, kinds, after_id, 3)]


def delivered(database: Database, event_id: int) -> None:
    """A webhook has accepted an event."""

    def work(connection: Connection) -> None:
        connection.execute(delete(DELIVERIES).where(DELIVERIES.c.event_id == event_id))
        forget(connection, [event_id])

    write(database, work)


def test_events_are_numbered_in_their_order(database: Database) -> None:
    """Also by several at once, each in its transaction; what nobody gets has no number."""
    appended(database, made("story"), made("flag"), made("flood", None))
    work: Callable[[], None] = lambda: appended(database, made("story"), made("story"))  # noqa: E731
    at_once([work] * 4)
    assert numbers_of(database) == list(range(1, 11))
    rows = read(database, sink_events.pending_events, BOTH, 0, 2)
    assert rows == [StoredEvent(1, "story", b'{"event": 1}'), StoredEvent(2, "flood", b'{"event": 2}')]


def test_webhooks_get_what_they_want(database: Database) -> None:
    """By kind and by source; an event without a source is for those that want all sources."""
    everything = add_webhook(database, "flag", "story", "decision", name="all")
    of_wire = add_webhook(database, "flag", sources=("wire", "post"), name="wire")
    appended(database, made("flag", 1, "wire", "x"), made("flag", 1, "x"), made("flag"), made("story"), made("flood"))
    appended(database, made("bank_match"), made("decision", 3, "wire"))
    assert delivered_to(database, everything) == [1, 2, 3, 4, 6]
    assert delivered_to(database, of_wire) == [1]
    assert pending(database) == [4, 5]
    with database.read_connection() as connection:
        of_events = connection.execute(select(DELIVERIES.c.story_id, DELIVERIES.c.due_ms)).all()
    assert set(of_events) == {(1, NOW_MS), (1, None), (3, NOW_MS)}


def test_what_is_sent_is_deleted_except_the_latest(database: Database) -> None:
    """So that no number comes twice; the next event takes it away."""
    appended(database, made("story"), made("story"))
    write(database, sink_events.mark_events_sent, [1, 2])
    assert (numbers_of(database), pending(database)) == ([2], [])
    appended(database, made("story"))
    assert numbers_of(database) == [3]
    write(database, sink_events.mark_events_sent, [3])
    write(database, sink_events.mark_events_sent, [3])
    appended(database, made("story"), made("story"))
    assert (numbers_of(database), pending(database)) == ([4, 5], [4, 5])


def test_what_a_webhook_waits_for_stays(database: Database) -> None:
    """Whoever has it last, sink or webhook, deletes it."""
    add_webhook(database, "story")
    appended(database, *[made("story")] * 3, made("flood"))
    write(database, sink_events.mark_events_sent, [1])
    delivered(database, 2)
    assert (numbers_of(database), pending(database)) == ([1, 2, 3, 4], [2, 3, 4])
    delivered(database, 1)
    write(database, sink_events.mark_events_sent, [2])
    assert numbers_of(database) == [3, 4]
    write(database, forget, [3, 4])
    assert numbers_of(database) == [3, 4], "somebody is still to get them"


def test_kinds_are_read_apart(database: Database) -> None:
    """From a number on, so that those that wait for their topic are not read again and again."""
    appended(database, made("story"), made("flood"), made("story"), made("flood"))
    assert pending(database, frozenset({"flood"})) == [2, 4]
    assert pending(database, frozenset({"story"}), after_id=1) == [3]
    assert pending(database, after_id=1) == [2, 3, 4]
    assert read(database, sink_events.latest_id) == 4


def test_one_sends_at_a_time(database: Database, second: Database) -> None:
    """Until its lease is over, or it lets go; it may go on for as long as it says so."""
    assert write(database, sink_events.hold_lease, "a", NOW_MS, 100)
    assert not write(second, sink_events.hold_lease, "b", NOW_MS + 99, 100)
    assert write(database, sink_events.hold_lease, "a", NOW_MS + 99, 100)
    assert not write(second, sink_events.hold_lease, "b", NOW_MS + 198, 100)
    assert write(second, sink_events.hold_lease, "b", NOW_MS + 199, 100)
    write(database, sink_events.release_lease, "a")
    assert not write(database, sink_events.hold_lease, "a", NOW_MS + 200, 100)
    write(second, sink_events.release_lease, "b")
    assert write(database, sink_events.hold_lease, "a", NOW_MS + 200, 100)


def test_only_one_of_many_gets_the_lease(database: Database) -> None:
    """Whoever asks at the same time."""
    works = [lambda name=f"{n}": write(database, sink_events.hold_lease, name, NOW_MS, 100) for n in range(8)]
    assert sorted(at_once(works)) == [False] * 7 + [True]


def test_what_waits_is_counted(database: Database) -> None:
    """By receiver, with the time of the oldest; what only the number needs is none of it."""
    assert read(database, limits.sink_backlog) == read(database, limits.webhook_backlog) == OutboxBacklog(0, None)
    first, other = (add_webhook(database, "story", name=name) for name in "ab")
    appended(database, made("story"), now_ms=NOW_MS)
    appended(database, made("flood"), made("story"), now_ms=NOW_MS + 5)
    assert read(database, limits.sink_backlog) == OutboxBacklog(3, NOW_MS)
    assert read(database, limits.webhook_backlog) == OutboxBacklog(4, NOW_MS)
    write(database, sink_events.mark_events_sent, [1, 2, 3])
    for event_id in (1, 3):
        delivered(database, event_id)
    assert read(database, limits.sink_backlog) == read(database, limits.webhook_backlog) == OutboxBacklog(0, None)
    assert number_of(database, OUTBOX) == 1
    assert delivered_to(database, first) == delivered_to(database, other) == []


def test_a_webhook_that_takes_nothing_gets_no_more(database: Database) -> None:
    """What came first is kept, the rest counted as missed; others get everything."""
    full, other = (add_webhook(database, "flag", *more, name=name) for name, more in (("a", ()), ("b", ("story",))))
    appended(database, *[made("flag")] * 5)
    appended(database, made("story"), *[made("flag")] * 2)
    write(database, lambda c: c.execute(delete(DELIVERIES).where(DELIVERIES.c.webhook_id == other)))
    appended(database, made("story"))
    assert read(database, limits.full_webhooks, 7) == []
    assert read(database, limits.full_webhooks, 3) == [full]
    assert write(database, limits.drop_latest, full, 3) == 4
    assert write(database, limits.drop_latest, full, 3) == 0
    assert (delivered_to(database, full), delivered_to(database, other)) == ([1, 2, 3], [9])
    assert numbers_of(database) == [1, 2, 3, 6, 9]
    assert read(
        database, lambda c: list(c.execute(select(WEBHOOKS.c.missed).order_by(WEBHOOKS.c.webhook_id)).scalars())
    ) == [4, 0]


def test_a_sink_that_takes_nothing_gets_no_more(database: Database) -> None:
    """What came first is kept, and what webhooks wait for; numbers go on."""
    hook = add_webhook(database, "flood")
    appended(database, *[made("story")] * 3, made("flood"), *[made("story")] * 2)
    assert write(database, sink_events.drop_latest, 2) == 4
    assert (pending(database), delivered_to(database, hook)) == ([1, 2], [4])
    assert numbers_of(database) == [1, 2, 4, 6]
    appended(database, made("story"))
    assert (pending(database), numbers_of(database)) == ([1, 2, 7], [1, 2, 4, 7])
