"""At least once: what is in the topics after a flush."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise

import pytest

from consumer.kafka.topics import SinkTopics
from consumer.model.errors import Abandoned, ConfigError, SinkError
from consumer.model.record import NO_TIME_MS, RawRecord
from deploy.local.kafka import KafkaBroker
from tests.builders import raw_line
from tests.kafka.reading import until
from tests.kafka.sink_parts import (
    Given,
    answer,
    client_threads,
    duplicates,
    fresh_topics,
    keys,
    raw,
    read,
    rejection,
    sink_to,
)

pytestmark = pytest.mark.servers


@pytest.fixture
def given(kafka_address: str) -> Iterator[Given]:
    """A sink that writes everything, to topics that are there."""
    given = sink_to(kafka_address, fresh_topics(kafka_address))
    yield given
    given.sink.close()


def test_each_outcome_goes_to_its_topics(kafka_address: str, given: Given) -> None:
    """Flags are in duplicates, all verdicts in verdicts, each under its id, with its event's bytes and its headers."""
    answers = [answer("a"), answer("b", "duplicate"), answer("c", "retracted")]
    given.sink.emit(answers)
    given.sink.flush()
    verdicts = read(kafka_address, given.topics.verdicts_topic)
    assert [(message.key, message.value) for message in verdicts] == [
        (answer.event.verdict.id.encode(), answer.event.encoded) for answer in answers
    ]
    assert verdicts[2].headers == [("outcome", b"retracted")]
    (flag,) = read(kafka_address, given.topics.duplicates_topic)
    assert (flag.key, flag.value, flag.headers) == (b"b", answers[1].event.encoded, [("outcome", b"duplicate")])


def test_a_near_miss_goes_to_its_topic_under_the_id_of_its_article(kafka_address: str, given: Given) -> None:
    """Its headers say its schema, and where the record of the article stood."""
    given.sink.emit([answer("a", near_miss=b'{"near": "miss"}'), answer("b")])
    given.sink.flush()
    (found,) = read(kafka_address, given.topics.near_misses_topic)
    assert (found.key, found.value) == (b"a", b'{"near": "miss"}')
    headers = dict(found.headers)
    assert headers["dupwatch-schema"] == b"dupwatch.near-miss/1"
    assert headers["dupwatch-origin-topic"] == b"articles"
    assert "dupwatch-outcome" not in headers


def test_topics_that_are_off_get_nothing(kafka_address: str) -> None:
    """With none of the others only flags are sent, and the other topics need not be there."""
    topics = fresh_topics(kafka_address, every=False)
    parts = sink_to(kafka_address, topics)
    parts.sink.emit([answer("a", near_miss=b"{}"), answer("b", "duplicate"), answer("c", "retracted")])
    parts.sink.flush()
    parts.sink.close()
    assert keys(read(kafka_address, topics.duplicates_topic)) == ["b"]
    for topic in (topics.verdicts_topic, topics.unique_topic, topics.near_misses_topic):
        assert read(kafka_address, topic) == []


def test_the_clean_feed_has_records_as_they_came(kafka_address: str) -> None:
    """Bytes, key and headers (one name twice, no value) of a unique record are untouched; its time stands behind them.

    It is the message's time as well, on a topic that takes it.
    """
    topics = fresh_topics(kafka_address, {"unique": {"message.timestamp.type": "CreateTime"}})
    given = sink_to(kafka_address, topics)
    headers = [("h", b"1"), ("h", b"\xff\x00"), ("none", None)]
    record = raw(b"\x00not { json\xff", b"a", headers, timestamp_ms=1_234_567)
    given.sink.emit([answer("a", record=record), answer("b", record=raw(b"v", None))])
    given.sink.flush()
    first, second = read(kafka_address, given.topics.unique_topic)
    assert first == (b"a", record.data, [*headers, ("dupwatch-timestamp-ms", b"1234567")], 1_234_567)
    assert (second.key, second.value) == (b"b", b"v")
    given.sink.close()


def test_what_is_no_longer_in_the_clean_feed_has_a_tombstone(kafka_address: str, given: Given) -> None:
    """A retraction and a duplicate are null values under their ids; not where the record's key is another's."""
    given.sink.emit(
        [
            answer("a", "retracted"),
            answer("b", "duplicate"),
            answer("c", "duplicate", raw(key=None)),
            answer("d", "duplicate", raw(key=b"a-key-of-many")),
            answer("e", "retracted", raw(key=b"a-key-of-many")),
        ]
    )
    given.sink.flush()
    found = read(kafka_address, given.topics.unique_topic)
    assert [(message.key, message.value) for message in found] == [(b"a", None), (b"b", None), (b"c", None)]


def test_a_file_s_records_make_a_clean_feed_too(kafka_address: str, given: Given) -> None:
    """A line of a file goes under its id."""
    given.sink.emit([answer("a", record=raw_line(1, b'{"id":"a"}'))])
    given.sink.flush()
    (found,) = read(kafka_address, given.topics.unique_topic)
    assert (found.key, found.value, found.headers) == (b"a", b'{"id":"a"}', [])


@pytest.mark.parametrize(
    ("record", "key", "value", "headers"),
    [
        (raw(b"\xff{", b"k", [("h", b"1")]), b"k", b"\xff{", [("h", b"1")]),
        (raw(b"", b"", null_value=True), b"", None, []),
        (raw(b"", None), None, b"", []),
        (raw(b"part", headers=[("h", b"1")], size_bytes=99), b"a", b"part", [("h", b"1")]),
        (raw_line(7, b"a line"), None, b"a line", []),
    ],
    ids=["bytes", "tombstone", "empty", "cut", "line"],
)
def test_a_dead_letter_is_the_record_as_it_came(  # a case has this many parts
    kafka_address: str,
    given: Given,
    record: RawRecord,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes]],
) -> None:
    """Key, value and time are raw, the record's own headers come first, and a record that is not whole says so."""
    given.letters.reject([rejection(record)])
    given.sink.flush()
    (found,) = read(kafka_address, given.topics.dead_letters_topic)
    cut = [("dupwatch-cut-of-bytes", b"%d" % record.size_bytes)] if len(record.data) < record.size_bytes else []
    assert (found.key, found.value, found.headers) == (key, value, [*headers, ("reason", b"invalid_json"), *cut])
    assert record.time_ms in {NO_TIME_MS, found.timestamp_ms}


def test_a_long_record_s_dead_letter_is_whole(kafka_address: str, given: Given) -> None:
    """A letter keeps 64 KiB of a record, the topic all of its 8 MiB."""
    record = raw(b"z" * (8 << 20))
    rejected = rejection(record)
    assert rejected.letter.cut
    given.letters.reject([rejected])
    given.sink.flush()
    assert read(kafka_address, given.topics.dead_letters_topic)[0].value == record.data


def test_events_stay_in_order(kafka_address: str, given: Given) -> None:
    """What is emitted over many batches is in the partition in that order, once each."""
    ids = [f"{number:05}" for number in range(5_000)]
    for at in range(0, len(ids), 250):
        given.sink.emit(duplicates(*ids[at : at + 250]))
        given.sink.flush()
    assert keys(read(kafka_address, given.topics.duplicates_topic)) == ids


def test_a_queue_that_is_full_is_waited_for(kafka_address: str) -> None:
    """More than the producer's queue takes is sent all the same, each once and in order."""
    topics = fresh_topics(kafka_address, every=False)
    parts = sink_to(kafka_address, topics, queue_buffering_max_messages=20)
    ids = [f"{number:05}" for number in range(500)]
    parts.sink.emit(duplicates(*ids))
    parts.sink.flush()
    parts.sink.close()
    assert keys(read(kafka_address, topics.duplicates_topic)) == ids


def test_a_message_larger_than_the_queue_ends_the_run(kafka_address: str) -> None:
    """What can never be queued is an error that names the setting, not a wait without end."""
    parts = sink_to(kafka_address, fresh_topics(kafka_address), queue_buffering_max_kbytes=100)
    with pytest.raises(SinkError, match=r"'a'.*queue\.buffering\.max\.kbytes"):
        parts.sink.emit([answer("a", record=raw(b"z" * 200_000))])
    parts.sink.close()


@pytest.mark.parametrize("where", ["topic", "client"])
def test_a_message_that_is_too_large_is_named(kafka_address: str, where: str) -> None:
    """A record that the topic, or the client, never takes ends the run: which topic, which id, which setting."""
    topics = fresh_topics(kafka_address, {"unique": {"max.message.bytes": "2000"}} if where == "topic" else None)
    own = {"message_max_bytes": 2000, "batch_size": 2000} if where == "client" else {"compression_type": "none"}
    parts = sink_to(kafka_address, topics, **own)
    with pytest.raises(SinkError, match=rf"{topics.unique_topic} \(id 'long'\).*raise max\.message\.bytes"):
        send_and_flush(parts, "long", b"z" * 5000)
    parts.sink.close()


def send_and_flush(parts: Given, article_id: str, value: bytes) -> None:
    """One unique article, to the end."""
    parts.sink.emit([answer(article_id, record=raw(value, article_id.encode()))])
    parts.sink.flush()


def test_a_topic_that_is_not_there_is_named(kafka_address: str) -> None:
    """A missing topic ends the run, and the error says how it is made."""
    parts = sink_to(kafka_address, SinkTopics("test-nowhere"), topic_metadata_propagation_max_ms=500)
    parts.sink.emit(duplicates("a"))
    with pytest.raises(SinkError, match=r"test-nowhere\.duplicates \(id 'a'\).*dupwatch topics init"):
        parts.sink.flush()
    parts.sink.close()


def test_a_setting_that_is_none_is_refused(kafka_address: str) -> None:
    """A setting that librdkafka does not know is a wrong configuration."""
    with pytest.raises(ConfigError, match=r"the client rejects its settings.*no\.such"):
        sink_to(kafka_address, SinkTopics("test-nowhere"), no_such="1")


def test_waiting_ends_when_it_is_given_up() -> None:
    """Without brokers a flush asks repeatedly whether to wait, reports the outage, and raises what that raises."""
    asked: list[float] = []

    def give_up() -> None:
        asked.append(time.monotonic())
        if len(asked) > 12:
            raise Abandoned("enough")

    parts = sink_to("127.0.0.1:1", SinkTopics("test-nowhere"), give_up=give_up)
    parts.sink.emit(duplicates("a"))
    with pytest.raises(Abandoned, match="enough"):
        parts.sink.flush()
    # The client waits equally long each time. A busy machine adds to most of these pauses, hardly to all twelve.
    assert min(b - a for a, b in pairwise(asked)) < 1
    assert len(parts.watching.outages) == 1
    assert "127.0.0.1:1" in str(parts.watching.outages[0])
    # Closing may be repeated.
    parts.sink.close()
    parts.sink.close()


def test_closing_ends_the_client() -> None:
    """Once a sink is closed no thread of its client is left, though what it had was not sent."""
    before = client_threads()
    parts = sink_to("127.0.0.1:1", SinkTopics("test-nowhere"))
    parts.sink.emit(duplicates("a"))
    own = client_threads() - before
    assert own
    parts.sink.close()
    # A thread that was joined may be listed for a moment longer.
    until(lambda: not own & client_threads())


@pytest.mark.load
def test_a_broker_that_comes_back_gets_everything(own_kafka: Callable[[], KafkaBroker]) -> None:
    """A broker killed during a flush, and restarted, has every event once, in order; the outage was reported."""
    broker = own_kafka()
    topics = fresh_topics(broker.address, every=False)
    parts = sink_to(broker.address, topics)
    ids = [f"{number:04}" for number in range(2_000)]
    with ExitStack() as stack:
        stack.callback(parts.sink.close)
        parts.sink.emit(duplicates("first"))
        parts.sink.flush()
        broker.kill9()
        parts.sink.emit(duplicates(*ids))
        revival = threading.Timer(3.0, broker.start)
        revival.start()
        stack.callback(revival.join)
        parts.sink.flush()
    assert keys(read(broker.address, topics.duplicates_topic)) == ["first", *ids]
    assert [why is None for why in parts.watching.outages] == [False, True]
