"""Single records, read by their offsets with one client, from a real broker."""

import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer, Producer

from consumer.kafka.client_settings import KafkaOptions, consumer_settings
from consumer.kafka.clients import new_consumer
from consumer.kafka.source import offset_reader
from consumer.kafka.source.offset_reader import OffsetReader
from consumer.model.errors import SourceError
from consumer.model.limits import ReadLimits
from deploy.local.ports import free_ports
from tests.kafka.reading import delete_records, delete_topic, make_topic, send, until

pytestmark = pytest.mark.servers

COUNT = 200
VALUE = b"x" * 3_000


def reader_of(address: str) -> OffsetReader:
    """A reader with the settings of a run."""
    return OffsetReader(consumer_settings(address, KafkaOptions(group="g")), ReadLimits().record_bytes_max)


@pytest.fixture
def reader(kafka_address: str) -> Iterator[OffsetReader]:
    """One that is closed afterwards."""
    opened = reader_of(kafka_address)
    yield opened
    opened.close()


@pytest.fixture
def created(monkeypatch: pytest.MonkeyPatch) -> list[Consumer]:
    """The clients that are created from now on."""
    clients: list[Consumer] = []
    create = new_consumer

    def noted(settings: dict[str, object]) -> Consumer:
        clients.append(create(settings))
        return clients[-1]

    monkeypatch.setattr("consumer.kafka.source.offset_reader.new_consumer", noted)
    return clients


@pytest.fixture
def topic(kafka_address: str) -> str:
    """Two partitions: the even numbers, and the odd ones."""
    name = make_topic(kafka_address)
    send(kafka_address, name, range(COUNT), value=VALUE)
    return name


def key_at(reader: OffsetReader, topic: str, partition: int, offset: int) -> bytes | None:
    """The key of the record there, which is the one that was asked for; None where there is none."""
    record = reader.read((topic, partition), offset)
    if record is None:
        return None
    assert (record.partition, record.start) == ((topic, partition), offset)
    return record.key


def test_any_record_is_read_with_one_client(
    reader: OffsetReader, topic: str, kafka_address: str, created: list[Consumer]
) -> None:
    """Forth and back, in any partition and topic; also by several threads, and what came after the first read."""
    other = make_topic(kafka_address)
    send(kafka_address, other, range(1_000, 1_010))
    for number in (0, COUNT - 1, 7, 6, 7, COUNT - 2):
        assert key_at(reader, topic, number % 2, number // 2) == b"%d" % number
    assert key_at(reader, other, 1, 4) == b"1009"
    send(kafka_address, topic, [COUNT])
    assert key_at(reader, topic, 0, COUNT // 2) == b"%d" % COUNT
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: key_at(reader, topic, number % 2, number // 2), range(COUNT)))
    assert found == [b"%d" % number for number in range(COUNT)]
    assert len(created) == 1


def test_between_reads_nothing_is_fetched(reader: OffsetReader, topic: str, created: list[Consumer]) -> None:
    """A client that is kept for the next release must not load the brokers."""
    for offset in (3, COUNT):
        reader.read((topic, 0), offset)
        assert created[0].assignment() == []


def test_no_read_waits_for_a_fetch_of_the_one_before(reader: OffsetReader, topic: str) -> None:
    """Which is over at once behind the last record, and does not put off the next one elsewhere."""
    key_at(reader, topic, 0, 0)
    took_s = []
    for number in [COUNT - 2] * 20 + [*range(60)]:
        began_s = time.monotonic()
        assert key_at(reader, topic, number % 2, number // 2) == b"%d" % number
        took_s.append(time.monotonic() - began_s)
    assert sorted(took_s[:20])[2] < 0.08, took_s
    assert sorted(took_s)[40] < 0.9, took_s


def test_what_is_not_there_is_none(reader: OffsetReader, topic: str, kafka_address: str) -> None:
    """Deleted records, offsets behind the end, other partitions, and what a transaction left."""
    delete_records(kafka_address, topic, 0, 50)
    assert [key_at(reader, topic, 0, offset) for offset in (49, 50)] == [None, b"100"]
    assert [key_at(reader, topic, 0, offset) for offset in (COUNT // 2, COUNT)] == [None, None]
    assert key_at(reader, topic, 2, 0) is None
    producer = Producer({"bootstrap.servers": kafka_address, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    for number, finish in enumerate([producer.abort_transaction, producer.commit_transaction]):
        producer.begin_transaction()
        producer.produce(topic, b"", b"of transaction %d" % number, 1)
        producer.flush(30)
        finish(30)
    # A record and a marker each.
    end = COUNT // 2
    assert [key_at(reader, topic, 1, end + place) for place in range(4)] == [None, None, b"of transaction 1", None]


def test_a_topic_that_was_made_anew_is_read_as_it_is(
    reader: OffsetReader, topic: str, kafka_address: str, created: list[Consumer]
) -> None:
    """While it is missing the error says so; then the same client, or another, finds what lies there now."""
    assert key_at(reader, topic, 0, 3) == b"6"
    delete_topic(kafka_address, topic)
    until(lambda: _error(reader, topic) == f"there is no topic {topic} at {kafka_address}")
    made_again = make_topic(kafka_address, topic=topic)
    send(kafka_address, made_again, range(500, 510))
    assert key_at(reader, made_again, 0, 3) == b"506"
    assert key_at(reader, made_again, 0, 5) is None
    # Each error replaces the client.
    assert len(created) > 1


def test_a_topic_may_be_made_anew_between_two_reads(reader: OffsetReader, topic: str, kafka_address: str) -> None:
    """The client learns of it by itself."""
    assert key_at(reader, topic, 0, 3) == b"6"
    delete_topic(kafka_address, topic)
    until(lambda: _made(kafka_address, topic))
    send(kafka_address, topic, range(500, 510))
    assert key_at(reader, topic, 0, 3) == b"506"


def test_reads_take_turns(reader: OffsetReader, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read would take away the assignment of another. It waits, but no longer than for brokers."""
    goes_on, reads, message = threading.Event(), threading.Event(), offset_reader._MessageWait.message

    def held(self: offset_reader._MessageWait, wait_s: float) -> object:
        reads.set()
        assert goes_on.wait(60)
        return message(self, wait_s)

    monkeypatch.setattr(offset_reader._MessageWait, "message", held)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(key_at, reader, topic, 0, 3)
        assert reads.wait(60)
        monkeypatch.setattr(offset_reader._MessageWait, "message", message)
        monkeypatch.setattr(offset_reader, "READ_S", 0.1)
        assert (
            _error(reader, topic) == f"kafka://{reader._brokers}/{topic} cannot be read: waited 0.1 s for other reads"
        )
        monkeypatch.setattr(offset_reader, "READ_S", 30.0)
        goes_on.set()
        assert first.result(60) == b"6"
    assert key_at(reader, topic, 1, 3) == b"7"


def test_without_brokers_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the time limit."""
    monkeypatch.setattr(offset_reader, "READ_S", 1.0)
    (port,) = free_ports(1)
    reader = reader_of(f"127.0.0.1:{port}")
    with pytest.raises(SourceError, match=rf"no broker answers at 127\.0\.0\.1:{port}"):
        reader.read(("articles", 0), 0)
    reader.close()


def _error(reader: OffsetReader, topic: str) -> str:
    try:
        reader.read((topic, 0), 3)
    except SourceError as error:
        return str(error).partition(";")[0]
    return ""


def _made(address: str, topic: str) -> bool:
    """Make the topic once the old one is gone for good."""
    try:
        return make_topic(address, topic=topic) == topic
    except Exception:  # noqa: BLE001  # the client's own, while it is still being deleted
        return False
