"""Times that the sink's topics refuse, over a real broker: the copy is sent all the same, in both ways of delivery."""

from collections.abc import Callable

import pytest

from consumer.model.errors import Abandoned, SinkError
from storage.clock import now_ms
from tests.kafka.sink_parts import Given, Member, answer, fresh_topics, keys, raw, read, rejection, sink_to

pytestmark = pytest.mark.servers

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
OLD_MS = 1_700_000_000_000
BOTH = pytest.mark.parametrize("transactional", [False, True], ids=["at least once", "exactly once"])
NARROW = {
    name: {
        # As topics may be that were made before the brokers dated the clean feed.
        "message.timestamp.type": "CreateTime",
        "message.timestamp.before.max.ms": str(DAY_MS),
        "message.timestamp.after.max.ms": str(HOUR_MS),
    }
    for name in ("unique", "dead-letters", "duplicates", "verdicts")
}


def batch(address: str, given: Given, send: Callable[[], None], *, transactional: bool) -> int:
    """Send a batch until it counts, as the loop does; how often it was given up."""
    if not transactional:
        send()
        given.sink.flush()
        return 0
    member = Member(address, given.topics.duplicates_topic)
    try:
        for given_up in range(5):
            try:
                send()
                given.sink.flush()
                given.outbox.commit({(given.topics.duplicates_topic, 0): 0}, member.metadata())
            except Abandoned:
                given.outbox.abort()
            else:
                return given_up
    finally:
        member.close()
    raise AssertionError("it was given up again and again")


@BOTH
def test_a_time_that_the_topic_refuses_goes_into_a_header(kafka_address: str, *, transactional: bool) -> None:
    """Older than the topic takes, by a batch of several: all copies come, in order, those in time with their time."""
    given = sink_to(kafka_address, fresh_topics(kafka_address, NARROW), transactional=transactional)
    recent_ms = now_ms() - 60_000
    times = {"a": OLD_MS, "b": recent_ms, "c": OLD_MS + 5, "a2": recent_ms + 1, "old": 0, "odd": -7, "none": -1}

    def send() -> None:
        given.sink.emit([answer(key, record=raw(key=key.encode(), timestamp_ms=ms)) for key, ms in times.items()])
        given.letters.reject([rejection(raw(key=key.encode(), timestamp_ms=ms)) for key, ms in times.items()])

    given_up = batch(kafka_address, given, send, transactional=transactional)
    assert given_up <= 2
    again = batch(kafka_address, given, send, transactional=transactional)
    assert again == 0
    given.sink.close()
    for topic in (given.topics.unique_topic, given.topics.dead_letters_topic):
        found = read(kafka_address, topic)
        last = found[-len(times) :]
        assert keys(last) == list(times)
        # What is sent in time has it in a header too in the clean feed, whose topic the brokers usually date.
        in_headers = times if topic == given.topics.unique_topic else times.keys() - {"b", "a2"}
        in_header = {
            (message.key or b"").decode(): dict(message.headers).get("dupwatch-timestamp-ms") for message in last
        }
        assert in_header == {key: b"%d" % ms if key in in_headers and ms != -1 else None for key, ms in times.items()}
        kept = {(message.key or b"").decode(): message.timestamp_ms for message in last}
        assert (kept["b"], kept["a2"]) == (recent_ms, recent_ms + 1)
        assert all(kept[key] > recent_ms for key in ("a", "c", "old", "odd", "none"))
    assert given.watching.times_moved >= 8


@BOTH
def test_a_time_ahead_is_not_tried_at_all(kafka_address: str, *, transactional: bool) -> None:
    """What counts as impossible for arrivals is moved by rule: nothing is refused, and so nothing is sent twice."""
    given = sink_to(kafka_address, fresh_topics(kafka_address, NARROW), transactional=transactional)
    ahead_ms = now_ms() + 2 * HOUR_MS

    def send() -> None:
        given.sink.emit([answer("a", record=raw(timestamp_ms=ahead_ms))])

    assert batch(kafka_address, given, send, transactional=transactional) == 0
    given.sink.close()
    (found,) = read(kafka_address, given.topics.unique_topic)
    assert dict(found.headers)["dupwatch-timestamp-ms"] == b"%d" % ahead_ms
    assert abs(found.timestamp_ms - now_ms()) < HOUR_MS


@BOTH
def test_a_topic_that_takes_less_than_the_rule(kafka_address: str, *, transactional: bool) -> None:
    """A record a minute ahead, for a topic that takes a second: it is refused once, and then sent as it can be."""
    narrow = {"unique": {"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": "1000"}}
    given = sink_to(kafka_address, fresh_topics(kafka_address, narrow), transactional=transactional)
    ahead_ms = now_ms() + 60_000

    def send() -> None:
        given.sink.emit([answer("a", record=raw(timestamp_ms=ahead_ms)), answer("b", "duplicate")])

    # A transaction may be given up once more, while the brokers still end the one before.
    assert batch(kafka_address, given, send, transactional=transactional) <= 2 * transactional
    given.sink.close()
    assert keys(read(kafka_address, given.topics.unique_topic)) == ["a", "b"]


def test_what_is_refused_for_another_reason_still_ends_the_run(kafka_address: str) -> None:
    """A compacted topic takes no letter without a key: the time is tried first, then the sentence says what it is."""
    given = sink_to(kafka_address, fresh_topics(kafka_address, {"dead-letters": {"cleanup.policy": "compact"}}))
    given.letters.reject([rejection(raw(key=None))])
    with pytest.raises(SinkError, match="a compacted topic accepts no message without a key"):
        given.sink.flush()
    given.sink.close()
