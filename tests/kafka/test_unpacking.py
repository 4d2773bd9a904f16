"""A batch that brokers accept and the client cannot unpack: its partition waits alone, and bounded readers end."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from confluent_kafka import Producer

from consumer.kafka.client_settings import KafkaOptions, consumer_settings
from consumer.kafka.mock_cluster import mock_cluster
from consumer.kafka.offset_metadata import HoldReason
from consumer.kafka.offset_range import Bound, OffsetRange
from consumer.kafka.sink.topic_letters import TopicLetterReader
from consumer.kafka.source.range_source import RangeSource
from consumer.model.errors import SourceError
from consumer.model.limits import ReadLimits
from tests.cli.command import run_process
from tests.examples import drawn
from tests.kafka.raw_records import RawMessage, produce, produce_batch, record_batch
from tests.kafka.reading import by_partition, grouped, until
from tests.kafka.running import running
from tests.kafka.sink_parts import end_of
from tests.kafka.test_poison import BAD, GOOD, articles, command, held_by, name, notes, send
from tests.kafka.test_run import EXACTLY_ONCE
from tests.kafka.topics import Topics, make_topics, ordered_producer, read_all, wait_for_count

RECEIVED_BYTES = (10 << 20) + 512
"""The least that may be set for ``receive.message.max.bytes``."""
BOMB = RawMessage(b"bomb", bytes(RECEIVED_BYTES + 1))
SMALL_CLIENT = (
    "--set",
    f'kafka.consumer={{"receive.message.max.bytes"={RECEIVED_BYTES}, "fetch.error.backoff.ms"=100}}',
)
BEFORE = 5
"""So many records are before the batch, which has two."""
BEHIND = BEFORE + 2
TOPIC = "letters"


@pytest.fixture
def topics(kafka_address: str) -> Topics:
    """Topics of the test's own, three partitions each."""
    return make_topics(kafka_address, 3)


def judged(topics: Topics) -> set[bytes | None]:
    """The keys that have a verdict."""
    return {message.key for message in read_all(topics, topics.sink("verdicts"))}


@pytest.mark.servers
@pytest.mark.parametrize(
    ("more", "again"),
    drawn(
        [
            pytest.param((), BEFORE, id="at least once, resumed without an offset"),
            pytest.param(EXACTLY_ONCE, BEFORE + 1, id="exactly once, resumed within the batch"),
        ],
        2,
    ),
)
def test_a_batch_that_cannot_be_unpacked_holds_its_partition_alone(
    topics: Topics, tmp_path: Path, more: tuple[str, ...], again: int
) -> None:
    """What is before it is answered, others go on, restarts change nothing, and a person goes past it."""
    send(topics, BAD, articles(range(BEFORE)))
    assert produce(topics.address, topics.source, BAD, [BOMB, BOMB], "zstd") == BEFORE
    send(topics, BAD, articles(range(BEFORE, BEFORE + 3)), BEHIND)
    send(topics, GOOD, articles(range(10, 15)))
    store = f"lmdb:{tmp_path / 'store'}"
    options = ("--set", "source.batch_records_max=2", *SMALL_CLIENT, *more)
    why = f"the client cannot unpack the batch at offset {BEFORE}: bad_compression"
    with running(topics, store, tmp_path, *options) as consumer:
        until(lambda: held_by(consumer) == [name(topics)])
        assert json.loads(consumer.page("/readyz")[1])["held"] == {name(topics): why}
        assert consumer.metric("dupwatch_partition_held") == 1
        wait_for_count(topics, ["verdicts"], BEFORE + 5)
        until(lambda: notes(topics)[BAD][1].held is not None)
        send(topics, GOOD, articles(range(15, 18)), 5)
        wait_for_count(topics, ["verdicts"], BEFORE + 8)
        assert consumer.stop() == 0, consumer.log.read_text()
        assert consumer.log.read_text().count("the batch is fetched up to") == 1
    offset, note = notes(topics)[BAD]
    assert (offset, note.held) == (BEFORE, HoldReason(bad=0, records=0, reason="bad_compression", batch_offset=BEFORE))
    listed = json.loads(command(topics, "list", "--json").out)
    assert [(line["partition"], line["offset"], line["batch_offset"]) for line in listed] == [(BAD, BEFORE, BEFORE)]
    report = run_process("doctor", "--source", topics.url(), "--set", f"kafka.group={topics.prefix}").out.decode()
    assert f"{name(topics)} is held at offset {BEFORE}: {why}" in " ".join(report.split())
    way = () if again == BEFORE else ("--skip-to", str(again))
    assert f"resumes at offset {again}".encode() in command(topics, "resume", name(topics), *way).out
    assert notes(topics)[BAD][1].held is None
    with running(topics, store, tmp_path, *options) as consumer:
        until(lambda: held_by(consumer) == [name(topics)])
        until(lambda: notes(topics)[BAD][1].held is not None)
        assert consumer.stop() == 0, consumer.log.read_text()
    offset, once_more = notes(topics)[BAD]
    assert (offset, once_more.held) == (again, note.held)
    assert command(topics, "resume", name(topics), "--skip-to", str(BEHIND)).code == 0
    with running(topics, store, tmp_path, *options) as consumer:
        wait_for_count(topics, ["verdicts"], BEFORE + 8 + 3)
        assert held_by(consumer) == []
        assert consumer.stop() == 0, consumer.log.read_text()
    expected = {b"%d-%d" % (BAD, number) for number in (*range(BEFORE), *range(BEHIND, BEHIND + 3))}
    assert judged(topics) == expected | {b"%d-%d" % (GOOD, number) for number in range(8)}
    assert read_all(topics, topics.sink("dead-letters")) == []


@pytest.fixture
def address() -> Iterator[str]:
    """A cluster with one topic: three records in partition 0, a batch that cannot be unpacked, and one more record."""
    with mock_cluster([TOPIC]) as address:
        small(address, 3)
        assert produce(address, TOPIC, 0, [BOMB], "zstd") == 3
        small(address, 1)
        yield address


def small(address: str, count: int) -> None:
    """Records of a few bytes."""
    producer = ordered_producer(address)
    for number in range(count):
        producer.produce(TOPIC, b"{}", b"%d" % number, 0)
    assert producer.flush(10) == 0


def options() -> KafkaOptions:
    """Those of a client that takes in as little as may be set."""
    return KafkaOptions(group="reader", consumer={"receive.message.max.bytes": RECEIVED_BYTES})


def range_of(
    address: str, until_offset: int | None = None, client: Mapping[str, object] = MappingProxyType({})
) -> RangeSource:
    """All of the topic, or each partition up to an offset."""
    end = None if until_offset is None else Bound(offset=until_offset)
    settings = {**consumer_settings(address, options()), **client}
    return RangeSource(settings, [TOPIC], ReadLimits(), OffsetRange(Bound(offset=0), end))


def test_a_range_with_such_a_batch_ends_with_a_sentence(address: str) -> None:
    """It names topic, partition and offset; one that ends before the batch is read."""
    source = range_of(address)
    with pytest.raises(SourceError) as raised:
        list(source.batches())
    source.close()
    assert f"{TOPIC}:0 cannot be read further: the client cannot unpack the batch at offset 3: " in str(raised.value)
    assert "Choose a range that ends before this batch" in str(raised.value)
    source = range_of(address, 3)
    assert [record.start for batch in source.batches() for record in batch.records] == [0, 1, 2]
    source.close()


def test_dead_letters_behind_such_a_batch_are_said_to_be_out_of_reach(address: str) -> None:
    """Those before it come, and one by one those behind it."""
    with TopicLetterReader(address, TOPIC, options()) as letters:
        found = letters.letters()
        assert [next(found).position for _ in range(3)] == ["0:0", "0:1", "0:2"]
        with pytest.raises(SourceError) as raised:
            next(found)
        assert f"{TOPIC}:0 cannot be read further: the client cannot unpack the batch at offset 3: " in str(
            raised.value
        )
        assert "kafka-delete-records.sh" in str(raised.value)
    with TopicLetterReader(address, TOPIC, options()) as letters:
        shown = letters.letter("0:4")
        assert shown is not None
        assert shown.position == "0:4"
        with pytest.raises(SourceError, match="at offset 3"):
            letters.letter("0:3")


@pytest.fixture
def damaged() -> Iterator[str]:
    """A cluster with one topic: three records in partition 0, a batch with a wrong checksum, and four more records."""
    with mock_cluster([TOPIC]) as address:
        small(address, 3)
        batch = bytearray(record_batch([RawMessage(b"3", b"{}")]))
        batch[-2] ^= 1
        assert produce_batch(address, TOPIC, 0, bytes(batch)) == 3
        for offset in range(4, 8):
            assert produce(address, TOPIC, 0, [RawMessage(b"%d" % offset, b"{}")]) == offset
        yield address


def test_a_batch_with_a_wrong_checksum_is_not_passed_over(damaged: str) -> None:
    """The client would go on behind it: nothing of that is answered, and its partition waits before it."""
    client = {"check.crcs": True, "fetch.error.backoff.ms": 100}
    with grouped(damaged, TOPIC) as group:
        member = group.joined(client=client)
        until(lambda: member.watched.held != {})
        assert member.watched.held == {(TOPIC, 0): "the client cannot unpack the batch at offset 3: bad_msg"}
        assert member.error is None
        assert by_partition(member.finished()) == {0: [0, 1, 2]}
        until(lambda: group.committed(1) == [3])
    source = range_of(damaged, client=client)
    with pytest.raises(SourceError, match="at offset 3"):
        list(source.batches())
    source.close()


@pytest.mark.servers
def test_such_a_batch_behind_a_range_is_nobodys_trouble(kafka_address: str) -> None:
    """The last offset of the range is the end of a transaction, so the client looks for more behind it."""
    topics = make_topics(kafka_address, 1)
    producer = Producer({"bootstrap.servers": kafka_address, "transactional.id": topics.prefix})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topics.source, b"{}", b"0", 0)
    producer.commit_transaction(30)
    # The broker writes the end of a transaction after the client has its answer.
    until(lambda: end_of(kafka_address, topics.source) == 2)
    assert produce(kafka_address, topics.source, 0, [BOMB], "zstd") == 2
    settings = consumer_settings(kafka_address, options())
    source = RangeSource(settings, [topics.source], ReadLimits(), OffsetRange(Bound(offset=0), Bound(offset=2)))
    assert [record.start for batch in source.batches() for record in batch.records] == [0]
    source.close()
    with TopicLetterReader(kafka_address, topics.source, options()) as letters:
        assert letters.letter("0:1") is None
