"""A range of topics, read to its end without a group; on the mock cluster, which has four partitions."""

import random
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from consumer.kafka.client_settings import KafkaOptions, consumer_settings
from consumer.kafka.message import Offsets
from consumer.kafka.mock_cluster import mock_cluster
from consumer.kafka.offset_range import Bound, OffsetRange, parse_bound
from consumer.kafka.source import range_source
from consumer.kafka.source.range_source import RangeSource
from consumer.model.errors import ConfigError, SourceError
from consumer.model.limits import ReadLimits
from consumer.model.record import RawRecord
from tests.kafka.reading import delete_records
from tests.kafka.topics import WAIT_S, make_topics, ordered_producer
from tests.kafka.topics import send as produce

TOPIC = "articles"
PARTITIONS = 4
BEGINNING = Bound(offset=0)


@pytest.fixture
def address() -> Iterator[str]:
    """A cluster of the test's own, with one topic."""
    with mock_cluster([TOPIC]) as address:
        yield address


def send(address: str, places: list[tuple[int, int]], value: bytes = b"{}") -> None:
    """Send a message for each (partition, time)."""
    producer = ordered_producer(address)
    for partition, time_ms in places:
        producer.produce(TOPIC, value, b"key", partition, timestamp=time_ms)
        producer.poll(0)
    assert producer.flush(10) == 0


def source_of(
    address: str, since: Bound = BEGINNING, until: Bound | None = None, limits: ReadLimits | None = None
) -> RangeSource:
    """A source over all partitions."""
    settings = consumer_settings(address, KafkaOptions(group="replayed"))
    return RangeSource(settings, [TOPIC], limits or ReadLimits(), OffsetRange(since, until))


def read(source: RangeSource) -> list[RawRecord]:
    """All its records, after which it is closed."""
    try:
        return [record for batch in source.batches() for record in batch.records]
    finally:
        source.close()


def places(records: list[RawRecord]) -> list[tuple[int, int, int]]:
    """Time, partition and offset of each."""
    return [(record.time_ms, record.known_partition()[1], record.start) for record in records]


def test_partitions_are_merged_by_the_times_of_their_messages(address: str) -> None:
    """Whatever partition they are in, messages come in the order of their times, each once."""
    shuffled = random.Random(1)
    sent = [(shuffled.randrange(PARTITIONS), 1_000 + number) for number in range(3_000)]
    send(address, sent)
    found = places(read(source_of(address)))
    assert [(partition, time_ms) for time_ms, partition, _ in found] == sent


def test_little_is_held_and_nothing_is_lost(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a share of a few records the partitions are read in turns, and give the same."""
    monkeypatch.setattr(range_source, "_KEPT_BYTES_MAX", 0)
    monkeypatch.setattr(range_source, "_SHARE_BYTES_MIN", 5_000)
    monkeypatch.setattr(range_source, "_CONSUME_MAX", 10)
    # One partition is far behind the others, so that these have to wait.
    sent = [(0, 1_000 + number) for number in range(200)]
    sent += [(1 + number % 3, 2_000 + number) for number in range(300)]
    send(address, sent, b"x" * 1_000)
    source = source_of(address)
    most = 0
    found: list[RawRecord] = []
    for batch in source.batches():
        found += batch.records
        most = max(most, sum(len(part.kept) for part in source._parts.values()))
    source.close()
    assert [(partition, time_ms) for time_ms, partition, _ in places(found)] == sent
    assert most <= PARTITIONS * (5 + 10)


def test_times_that_go_back_within_a_partition_keep_its_order(address: str) -> None:
    """The order of a partition is that of its offsets."""
    send(address, [(0, 5_000), (0, 1_000), (1, 3_000), (1, 6_000)])
    assert places(read(source_of(address))) == [(3_000, 1, 0), (5_000, 0, 0), (1_000, 0, 1), (6_000, 1, 1)]


def test_it_ends_where_the_topic_ended_when_it_began(address: str) -> None:
    """What comes while it is read is another replay's."""
    send(address, [(0, 1_000), (1, 1_001)])
    source = source_of(address)
    send(address, [(0, 1_002), (1, 1_003)])
    assert len(read(source)) == 2


def test_offsets_bound_it_in_every_partition(address: str) -> None:
    """From is inclusive, until exclusive; a partition that has no such offset gives what it has."""
    send(address, [(0, number) for number in range(10)] + [(1, number) for number in range(3)])
    found = places(read(source_of(address, Bound(offset=2), Bound(offset=5))))
    assert sorted((partition, offset) for _, partition, offset in found) == [(0, 2), (0, 3), (0, 4), (1, 2)]
    assert read(source_of(address, Bound(offset=5), Bound(offset=2))) == []


def test_an_empty_topic_ends_at_once(address: str) -> None:
    """There is nothing to wait for."""
    assert read(source_of(address)) == []


def test_batches_are_bounded_and_say_what_comes_next(address: str) -> None:
    """By count; the end names the first offset of each partition that was not given."""
    send(address, [(number % 2, 1_000 + number) for number in range(10)])
    source = source_of(address, limits=ReadLimits(batch_records_max=4))
    batches = list(source.batches())
    assert [len(batch.records) for batch in batches] == [4, 4, 2]
    assert isinstance(batches[0].end, Offsets)
    assert batches[0].end.next == {(TOPIC, 0): 2, (TOPIC, 1): 2, (TOPIC, 2): 0, (TOPIC, 3): 0}
    assert source.progress() == (10, 10)
    source.close()


def test_named_offsets_are_read_and_no_others(address: str) -> None:
    """Of each partition that is named its offsets, in order of time; where there are none, nothing."""
    send(address, [(0, 1_000), (0, 4_000), (0, 5_000), (1, 2_000), (1, 3_000), (2, 1_500)])
    settings = consumer_settings(address, KafkaOptions(group="replayed"))
    ranges = {(TOPIC, 0): (1, 2), (TOPIC, 1): (0, 2), (TOPIC, 2): (1, 1)}
    source = RangeSource(settings, [TOPIC], ReadLimits(), ranges)
    assert source.progress() == (0, 3)
    assert places(read(source)) == [(2_000, 1, 0), (3_000, 1, 1), (4_000, 0, 1)]


@pytest.mark.servers
def test_named_offsets_have_to_be_there(kafka_address: str) -> None:
    """Those that retention deleted are an error."""
    topics = make_topics(kafka_address, partitions=1)
    produce(topics, [(f"{number}", {}) for number in range(4)])
    delete_records(kafka_address, topics.source, 0, 2)
    settings = consumer_settings(kafka_address, KafkaOptions(group="replayed"))

    def named(start: int, end: int) -> list[int]:
        source = RangeSource(settings, [topics.source], ReadLimits(), {(topics.source, 0): (start, end)})
        return [offset for _, _, offset in places(read(source))]

    assert [named(*some) for some in ((2, 3), (2, 4))] == [[2], [2, 3]]
    with pytest.raises(SourceError):
        named(0, 1)


def test_the_group_does_not_come_to_know_of_it(address: str) -> None:
    """Nothing is committed for the group whose name the settings have."""
    send(address, [(0, 1_000)])
    assert len(read(source_of(address))) == 1
    looking = Consumer({"bootstrap.servers": address, "group.id": "replayed"})
    assert [place.offset for place in looking.committed([TopicPartition(TOPIC, 0)], timeout=WAIT_S)] == [-1001]
    looking.close()


def test_silence_ends_it(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that gives nothing any more is an error, not the end of the range."""
    monkeypatch.setattr(range_source, "SILENCE_MAX_S", 0.5)
    send(address, [(0, 1_000)])
    source = source_of(address)
    source._consumer = Consumer({"bootstrap.servers": address, "group.id": "none"})
    monkeypatch.setattr(range_source, "TopicPartition", lambda topic, number, _: TopicPartition(topic, number, 1))
    with pytest.raises(SourceError, match="no message for"):
        read(source)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("0", Bound(offset=0)),
        ("120000", Bound(offset=120_000)),
        ("1970-01-02", Bound(time_ms=86_400_000)),
        ("1970-01-01T00:00:01Z", Bound(time_ms=1_000)),
        ("1970-01-01T09:00:00.5+09:00", Bound(time_ms=500)),
        ("1970-01-01 00:00:02", Bound(time_ms=2_000)),
        ("1970-01-01T00:01", Bound(time_ms=60_000)),
    ],
)
def test_bounds(text: str, bound: Bound) -> None:
    """Whole numbers are offsets; a time without a zone is UTC."""
    assert parse_bound("--from", text) == bound


@pytest.mark.parametrize("text", ["", "yesterday", "-1", "1.5", "٣", "2026-02-31", "٢٠٢٦-01-01"])
def test_what_is_no_bound(text: str) -> None:
    """It is named, with how to write one."""
    with pytest.raises(ConfigError, match=r"^--from: .*an offset or a time"):
        parse_bound("--from", text)
