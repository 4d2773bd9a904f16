"""Topics for tests: made, filled and read to their end."""

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from consumer.kafka.source.client_headers import read_client_headers

WAIT_S = 120.0
SINKS = ("duplicates", "verdicts", "unique", "dead-letters", "floods", "stories", "near-misses", "bank-matches")


class Seen(NamedTuple):
    """A message as a reader sees it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp_ms: int

    @property
    def content(self) -> dict[str, Any]:
        """The value as JSON."""
        found: dict[str, Any] = json.loads(self.value or b"null")
        return found


class Topics(NamedTuple):
    """A source topic, and the prefix of what is made of it."""

    address: str
    source: str
    prefix: str
    partitions: int

    def url(self) -> str:
        """The source."""
        return f"kafka://{self.address}/{self.source}"

    def sink_url(self) -> str:
        """The sink."""
        return f"kafka://{self.address}/{self.prefix}"

    def sink(self, name: str) -> str:
        """One topic of the sink."""
        return f"{self.prefix}.{name}"


def make_topics(
    address: str,
    partitions: int = 2,
    source_settings: Mapping[str, str] | None = None,
    sink_settings: Mapping[str, str] | None = None,
    replicas: int = 1,
) -> Topics:
    """Topics that no other test has; those of the articles and of the sink may have settings of their own."""
    name = f"t{uuid.uuid4().hex[:12]}"
    topics = Topics(address, f"{name}-articles", name, partitions)
    source = NewTopic(topics.source, partitions, replicas, config=dict(source_settings or {}))
    sinks = [NewTopic(topics.sink(name), partitions, replicas, config=dict(sink_settings or {})) for name in SINKS]
    new = [source, *sinks]
    admin = AdminClient({"bootstrap.servers": address})
    for creation in admin.create_topics(new).values():
        creation.result(WAIT_S)
    wait_until_known(admin, [topic.topic for topic in new])
    return topics


def wait_until_known(admin: AdminClient, names: Sequence[str]) -> None:
    """Return when all these topics are listed: for a moment after they were made they are not."""
    until_s = time.monotonic() + WAIT_S
    while not set(names) <= admin.list_topics(timeout=WAIT_S).topics.keys():
        assert time.monotonic() < until_s, names


def ordered_producer(address: str, settings: Mapping[str, str | int] | None = None) -> Producer:
    """Return a producer that keeps the order of its records even if a busy broker makes it send some again."""
    return Producer({"bootstrap.servers": address, "enable.idempotence": True, **(settings or {})})


def send(
    topics: Topics,
    records: Iterable[tuple[str | bytes | None, object]],
    headers: Sequence[tuple[str, bytes]] = (),
    rate: float = 0,
) -> int:
    """Send (key, value) to the source: bytes as they are, None as none, anything else as JSON; how many there were."""
    producer = ordered_producer(topics.address, {"linger.ms": 5})
    count = 0
    for key, value in records:
        raw = value if value is None or isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
        while True:
            try:
                producer.produce(topics.source, raw, key, headers=[*headers])
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
        count += 1
        if rate:
            time.sleep(1 / rate)
    assert producer.flush(WAIT_S) == 0
    return count


def reader(address: str, *, committed: bool = True) -> Consumer:
    """A consumer that commits nothing and says where a partition ends; what it reads is assigned to it."""
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
    )


def read_all(topics: Topics, topic: str, *, committed: bool = True) -> list[Seen]:
    """Everything that is in a topic now, partition by partition."""
    consumer = reader(topics.address, committed=committed)
    found: list[Seen] = []
    until_s = time.monotonic() + WAIT_S
    try:
        for partition in range(topics.partitions):
            consumer.assign([TopicPartition(topic, partition, 0)])
            at_end = False
            while not at_end:
                assert time.monotonic() < until_s, f"{topic} [{partition}] could not be read to its end"
                for message in consumer.consume(500, 0.1):
                    error = message.error()
                    if error is None:
                        found.append(_seen(message))
                    else:
                        assert error.code() == KafkaError._PARTITION_EOF, error
                        at_end = True
    finally:
        consumer.close()
    return found


def _seen(message: Message) -> Seen:
    headers = list(read_client_headers(message).pairs)
    key, value = _bytes(message.key()), _bytes(message.value())
    return Seen(message.partition() or 0, message.offset() or 0, key, value, headers, message.timestamp()[1])


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def wait_for_count(topics: Topics, names: Sequence[str], count: int, seconds: float = WAIT_S) -> None:
    """Return when this many messages can be read from the topics of the sink together."""
    consumer = Consumer(
        {
            "bootstrap.servers": topics.address,
            "group.id": "counter",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    partitions = range(topics.partitions)
    consumer.assign([TopicPartition(topics.sink(name), partition, 0) for name in names for partition in partitions])
    until_s = time.monotonic() + seconds
    seen = 0
    try:
        while seen < count:
            assert time.monotonic() < until_s, f"{seen} of {count} came"
            for message in consumer.consume(500, 0.05):
                assert message.error() is None, message.error()
                seen += 1
    finally:
        consumer.close()
