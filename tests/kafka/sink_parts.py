"""What the tests of the sinks are made of: topics, records, answers, and a reader of what is committed."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from consumer.kafka.client_settings import KafkaOptions, producer_settings
from consumer.kafka.planned_topics import topic_plan
from consumer.kafka.sink.outbox import AtLeastOnceOutbox
from consumer.kafka.sink.record_times import RecordTimeMoved, RecordTimes
from consumer.kafka.sink.topic_letters import TopicDeadLetters
from consumer.kafka.sink.topic_sink import KafkaSink, MessageRouting
from consumer.kafka.sink.transactions import SinkReconnected, TransactionalOutbox
from consumer.kafka.topics import Shape, SinkTopics, new_topic
from consumer.model.dead_letter import LetterPosition, dead_letter
from consumer.model.errors import BadRecord
from consumer.model.hooks import Hooks, Outage
from consumer.model.ports import JudgedRecord, Rejection
from consumer.model.record import RawRecord
from consumer.model.verdict import Outcome, Verdict, VerdictEvent, encode
from storage.clock import now_ms
from tests.kafka.reading import WAIT_S
from tests.kafka.topics import ordered_producer

GROUP = "readers"
AHEAD_MS_MAX = 300_000
_LOADING: Final = frozenset(
    {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE}
)


def raw(  # what a test does not name is a plain record
    value: bytes = b'{"body": "x"}',
    key: bytes | None = b"a",
    headers: Sequence[tuple[str, bytes | None]] = (),
    *,
    offset: int = 0,
    timestamp_ms: int = 1_700_000_000_123,
    size_bytes: int | None = None,
    null_value: bool = False,
) -> RawRecord:
    """A record of the topic "articles", partition 3."""
    return RawRecord(
        0, offset, value, len(value) if size_bytes is None else size_bytes, None, None,
        partition=("articles", 3), key=key, headers=tuple(headers), time_ms=timestamp_ms, is_null=null_value,
    )  # fmt: skip


def answer(
    article_id: str = "a",
    outcome: Outcome = "unique",
    record: RawRecord | None = None,
    near_miss: bytes | None = None,
) -> JudgedRecord:
    """An answer to this record, or to a plain one with the id as its key."""
    verdict = Verdict(
        id=article_id,
        version=None if outcome == "retracted" else "ab" * 16,
        outcome=outcome,
        scheme=None if outcome == "retracted" else "test/1",
        arrived_at="2026-01-02T03:04:05.678Z",
        decided_at="2026-01-02T03:04:06.789Z",
    )
    event = VerdictEvent(encode(verdict), verdict, near_miss)
    return JudgedRecord(raw(key=article_id.encode()) if record is None else record, event)


def duplicates(*ids: str) -> list[JudgedRecord]:
    """Answers that each make one event."""
    return [answer(article_id, "duplicate") for article_id in ids]


def rejection(record: RawRecord) -> Rejection:
    """A record that was refused."""
    fault = BadRecord("invalid_json", "it is not JSON")
    return Rejection(record, dead_letter(fault, LetterPosition("articles", 0, record.start), record.data))


class Watching:
    """Notes what a sink says of itself."""

    def __init__(self) -> None:
        self.outages: list[str | None] = []
        self.reconnections = 0
        self.times_moved = 0

    def listen(self, hooks: Hooks) -> None:
        """Listen."""
        hooks.on(Outage, lambda outage: self.outages.append(outage.reason))
        hooks.on(SinkReconnected, self._reconnected)
        hooks.on(RecordTimeMoved, self._moved)

    def _reconnected(self, _: SinkReconnected) -> None:
        self.reconnections += 1

    def _moved(self, _: RecordTimeMoved) -> None:
        self.times_moved += 1


class Given(NamedTuple):
    """Sinks for verdicts and dead letters over one outbox, and what they work with."""

    outbox: Any
    sink: KafkaSink
    letters: TopicDeadLetters
    topics: SinkTopics
    watching: Watching


def letter_headers(rejection: Rejection) -> list[tuple[str, bytes | None]]:
    """The record's own, and the reason."""
    own = rejection.record.headers
    return [*own, ("reason", rejection.letter.reason.encode())]


def dress(answer: JudgedRecord) -> list[tuple[str, bytes | None]]:
    """The outcome, and nothing else."""
    return [("outcome", answer.event.verdict.outcome.encode())]


def fresh_topics(
    address: str, settings: Mapping[str, Mapping[str, str]] | None = None, *, every: bool = True
) -> SinkTopics:
    """Topics with a prefix of their own, made on the broker but for those whose settings are None."""
    topics = SinkTopics(f"test-{uuid.uuid4().hex[:12]}", every, every, every)
    own = settings or {}
    wanted = [
        topic._replace(settings={**topic.settings, **own.get(topic.name.rpartition(".")[2], {})})
        for topic in topic_plan(topics)
    ]
    admin = AdminClient({"bootstrap.servers": address})
    for creation in admin.create_topics([new_topic(topic, Shape(1, 1), 1) for topic in wanted]).values():
        creation.result()
    return topics


def sink_to(
    address: str,
    topics: SinkTopics,
    *,
    transactional: bool = False,
    give_up: Callable[[], None] = lambda: None,
    options: KafkaOptions | None = None,
    **own: str | float,
) -> Given:
    """A sink, with these of librdkafka's settings, an underscore for each dot."""
    settings = producer_settings(address, options or KafkaOptions(), transactional=transactional)
    settings |= {name.replace("_", "."): value for name, value in own.items()}
    watching = Watching()
    hooks = Hooks(watching)
    kind = TransactionalOutbox if transactional else AtLeastOnceOutbox
    times = RecordTimes(now_ms, AHEAD_MS_MAX, hooks)
    outbox = kind(settings, times, hooks, give_up)
    letters = TopicDeadLetters(outbox, topics.dead_letters_topic, letter_headers)
    return Given(outbox, KafkaSink(outbox, MessageRouting(topics, dress)), letters, topics, watching)


class Read(NamedTuple):
    """A message as a reader gets it."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]
    timestamp_ms: int


def read(
    address: str, topic: str, *, committed: bool = True, held_up: bool = False, wait_s: float = WAIT_S
) -> list[Read]:
    """All messages of a topic's only partition, as a ``read_committed`` reader sees them, to its end.

    A commit is known before it can be read: what a transaction wrote is waited for, unless the reader is to be
    ``held_up`` by one that is open.
    """
    end = 0 if held_up else end_of(address, topic)
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "nobody",
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "fetch.wait.max.ms": 20,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Read] = []
        until_s = time.monotonic() + wait_s
        while time.monotonic() < until_s:
            message = consumer.poll(0.5)
            if message is None:
                continue
            error = message.error()
            if error is None:
                headers: Any = message.headers() or []
                found.append(Read(message.key(), message.value(), headers, message.timestamp()[1]))
            elif error.code() == KafkaError._PARTITION_EOF and (message.offset() or 0) >= end:
                return found
        raise AssertionError(f"{topic} came to no end within {wait_s} s")
    finally:
        consumer.close()


_LEADERLESS: Final = {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE}


def end_of(address: str, topic: str) -> int:
    """The offset of the next message of a topic's only partition, including messages of open transactions."""
    asking = Consumer({"bootstrap.servers": address, "group.id": "nobody", "isolation.level": "read_uncommitted"})
    until_s = time.monotonic() + WAIT_S
    try:
        while True:
            try:
                return int(asking.get_watermark_offsets(TopicPartition(topic, 0), timeout=WAIT_S)[1])
            except KafkaException as error:
                # On a busy machine a broker may miss its own heartbeats, and lead nothing for a moment.
                if error.args[0].code() not in _LEADERLESS or time.monotonic() > until_s:
                    raise
                time.sleep(0.1)
    finally:
        asking.close()


def keys(found: Sequence[Read]) -> list[str]:
    """The ids of messages, in their order."""
    return [(message.key or b"").decode() for message in found]


def client_threads() -> set[str]:
    """Return the ids of the threads of librdkafka in this process, which names all of them ``rdk:``."""
    found = set()
    for thread in Path("/proc/self/task").iterdir():
        # It may end in the meantime.
        with suppress(OSError):
            if (thread / "comm").read_text().startswith("rdk:"):
                found.add(thread.name)
    return found


class Member:
    """A consumer of a group that has a topic's only partition, as a transaction's offsets need one."""

    def __init__(self, address: str, topic: str, group: str | None = None) -> None:
        self.topic = topic
        self.group = group or f"group-{uuid.uuid4().hex[:8]}"
        self._address = address
        self.consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": self.group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6_000,
                "isolation.level": "read_committed",
            }
        )
        self.consumer.subscribe([topic])
        until_s = time.monotonic() + WAIT_S
        while not self.consumer.assignment():
            self.consumer.poll(0.05)
            assert time.monotonic() < until_s, "the group gave nobody a partition"

    def metadata(self) -> object:
        """Its metadata in the group at this moment."""
        return self.consumer.consumer_group_metadata()

    def committed(self) -> int:
        """The offset where the group continues, as the brokers have it; negative if nothing was committed."""
        until_s = time.monotonic() + WAIT_S
        while True:
            try:
                (place,) = self.consumer.committed([TopicPartition(self.topic, 0)], timeout=WAIT_S)
                break
            except KafkaException as error:
                # A broker that was started again does not coordinate the group at once.
                if error.args[0].code() not in _LOADING or time.monotonic() > until_s:
                    raise
                time.sleep(0.05)
        offset: int = place.offset
        return offset

    def close(self) -> None:
        """Leave the group."""
        self.consumer.close()


def put(address: str, topic: str, count: int) -> None:
    """Give a topic records."""
    producer = ordered_producer(address)
    for number in range(count):
        producer.produce(topic, b"{}", str(number).encode())
    assert producer.flush(20) == 0
