"""Topics with records in them, and readers of a group that judge nothing, for tests of the source."""

import socket
import struct
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from confluent_kafka import Consumer, ConsumerGroupState, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from consumer.kafka.client_settings import KafkaOptions, SourceOptions, consumer_settings
from consumer.kafka.message import Offsets, TopicRecord
from consumer.kafka.source.client_thread import LagMeasured
from consumer.kafka.source.fetching import FetchingPaused, FetchingWaited
from consumer.kafka.source.gaps import RecordsDeleted
from consumer.kafka.source.group_source import KafkaSource
from consumer.kafka.source.handover import ClientProgressed
from consumer.kafka.source.holds import NoteIgnored, PartitionsHeld
from consumer.kafka.source.rebalances import PartitionsRebalanced
from consumer.model.errors import Abandoned
from consumer.model.hooks import Hooks, Outage
from consumer.model.limits import ReadLimits
from consumer.model.record import Partition, RawBatch, RawRecord
from tests.cli.command import wait_for
from tests.kafka.topics import ordered_producer

GroupProtocol = Literal["classic", "consumer"]
SMALL = ReadLimits(batch_records_max=10)
WAIT_S = 120.0
"""A broker that is started again takes 20 s beside other tests."""
_WITHOUT_MEMBERS = {ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD}


def until(what: Callable[[], bool], wait_s: float = WAIT_S) -> None:
    """Wait until something holds; the test fails where it never does."""
    wait_for(what, wait_s, 0.005)


def make_topic(address: str, partitions: int = 2, topic: str | None = None) -> str:
    """A new topic that no other test has."""
    topic = topic or f"topic-{uuid.uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(WAIT_S)
    return topic


def delete_topic(address: str, topic: str) -> None:
    """Delete a topic, and wait until the broker no longer has it: it only promises that when it answers."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.delete_topics([topic])[topic].result(WAIT_S)
    until(lambda: topic not in admin.list_topics(timeout=WAIT_S).topics)


def delete_records(address: str, topic: str, partition: int, before: int) -> None:
    """What retention does: the records before this offset are gone."""
    admin = AdminClient({"bootstrap.servers": address})
    for done in admin.delete_records([TopicPartition(topic, partition, before)]).values():
        done.result(WAIT_S)


def send(address: str, topic: str, numbers: Iterable[int], partitions: int = 2, value: bytes = b"") -> None:
    """Send these numbers, each as a key, to the partition that it is of."""
    producer = ordered_producer(address, {"linger.ms": 5, "message.max.bytes": 8_000_000})
    for number in numbers:
        producer.produce(topic, value or b"%d" % number, b"%d" % number, partition=number % partitions)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0


def committed(address: str, group: str, topic: str, partitions: int = 2) -> list[int]:
    """What the group has committed; -1001 where nothing."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": group})
    try:
        asked = [TopicPartition(topic, number) for number in range(partitions)]
        return [partition.offset for partition in consumer.committed(asked, timeout=WAIT_S)]
    finally:
        consumer.close()


def evict(address: str, group: str, instance_id: str) -> None:
    """Have a static member out of its group, as the brokers do when its session has run out: LeaveGroup, version 3."""

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    leaving = struct.pack(">hhi", 13, 3, 1) + text("test") + text(group) + struct.pack(">i", 1) + text("")
    request = leaving + text(instance_id)
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), WAIT_S) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = connection.makefile("rb")
        (size,) = struct.unpack(">i", answer.read(4))
        # Correlation and throttling, four bytes each, are before the two errors: of the request, and of the one member.
        received = answer.read(size)
        assert (received[8:10], received[-2:]) == (b"\0\0", b"\0\0")


def commit(address: str, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Commit these offsets, by partition, once the group is empty.

    A consumer may have ended before the broker has processed that it left.
    """
    admin = AdminClient({"bootstrap.servers": address})
    until(lambda: admin.describe_consumer_groups([group])[group].result().state in _WITHOUT_MEMBERS)
    consumer = Consumer({"bootstrap.servers": address, "group.id": group})
    places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def message_of(record: RawRecord) -> TopicRecord:
    """The record, which is one of a topic."""
    assert isinstance(record, TopicRecord)
    return record


def number_of(record: RawRecord) -> int:
    """The number that was sent."""
    return int(record.key or b"")


@dataclass
class Watched:
    """Keeps what a source reports."""

    hooks: Hooks = field(default_factory=Hooks)
    beats: int = 0
    events: list[str] = field(default_factory=list)
    troubles: list[str | None] = field(default_factory=list)
    gaps: list[int] = field(default_factory=list)
    lags: dict[int, int] = field(default_factory=dict)
    pauses: list[bool] = field(default_factory=list)
    waits_s: list[float] = field(default_factory=list)
    held: Mapping[Partition, str] = field(default_factory=dict)
    unreadable_notes: int = 0
    partitions: int = 0

    def __post_init__(self) -> None:
        """Listen."""
        on = self.hooks.on
        on(ClientProgressed, self._turned)
        on(PartitionsRebalanced, self._rebalanced)
        on(LagMeasured, lambda lag: self.lags.update({lag.partition: lag.records}))
        on(PartitionsHeld, self._hold)
        on(NoteIgnored, self._unreadable)
        on(FetchingPaused, lambda fetching: self.pauses.append(fetching.paused))
        on(FetchingWaited, lambda fetching: self.waits_s.append(fetching.seconds))
        on(Outage, lambda outage: self.troubles.append(outage.reason))
        on(RecordsDeleted, lambda deleted: self.gaps.append(deleted.records))

    def _turned(self, _: ClientProgressed) -> None:
        self.beats += 1

    def _rebalanced(self, rebalanced: PartitionsRebalanced) -> None:
        self.events.append(rebalanced.what)
        self.partitions = rebalanced.partitions

    def _hold(self, report: PartitionsHeld) -> None:
        self.held = {partition: why for partition, why in report.reasons.items() if why is not None}

    def _unreadable(self, _: NoteIgnored) -> None:
        self.unreadable_notes += 1


class Member:
    """A member of a group whose thread answers every batch as the pipeline would, or holds it if asked to."""

    def __init__(self, source: KafkaSource, watched: Watched) -> None:
        self.source = source
        self.watched = watched
        self.batches: list[list[RawRecord]] = []
        self.abandoned = 0
        self.error: Exception | None = None
        self.go_on = threading.Event()
        self.go_on.set()
        self.begun: RawBatch | None = None
        self.arrived_s: dict[int, float] = {}
        self.pace_s = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> "Member":
        """Read from now on."""
        self._thread.start()
        return self

    def hold(self) -> None:
        """Begin the next batch, and do not finish it."""
        self.go_on.clear()

    def finished(self) -> list[RawRecord]:
        """All records that were answered, in order."""
        return [record for batch in self.batches for record in batch]

    def numbers(self) -> list[int]:
        """The numbers of all records that were answered, in order."""
        return [number_of(record) for record in self.finished()]

    def close(self) -> None:
        """Leave the group; the thread ends."""
        self.go_on.set()
        self.source.close()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            for batch in self.source.batches():
                for record in batch.records:
                    self.arrived_s.setdefault(number_of(record), time.time())
                try:
                    self._answer(batch)
                except Abandoned:
                    self.abandoned += 1
                    self.begun = None
                    self.source.abandon()
        except Exception as error:  # noqa: BLE001  # the test looks at it
            self.error = error

    def _answer(self, batch: RawBatch) -> None:
        assert isinstance(batch.end, Offsets)
        notes = self.source.begin(batch.end)
        self.begun = batch
        time.sleep(self.pace_s)
        while not self.go_on.wait(0.005):
            self.source.check()
        self.source.commit(batch.end, notes)
        self.batches.append(list(batch.records))
        self.begun = None


@dataclass
class Group:
    """Members of one group on one topic, all closed at the end."""

    address: str
    topic: str
    protocol: GroupProtocol
    group: str
    members: list[Member] = field(default_factory=list)

    def member(
        self,
        limits: ReadLimits = SMALL,
        instance_id: str | None = None,
        client: dict[str, Any] | None = None,
        **options: Any,  # noqa: ANN401  # whichever of the source's options
    ) -> Member:
        """A member, not started yet; ``client`` may have settings that no user may change."""
        settings = consumer_settings(
            self.address,
            KafkaOptions(
                group=self.group,
                instance_id=instance_id,
                group_protocol=self.protocol,
                client={"reconnect.backoff.max.ms": 500},
                consumer={} if self.protocol == "consumer" else {"heartbeat.interval.ms": 300},
            ),
        )
        settings |= client or {}
        watched = Watched()
        source = KafkaSource(settings, [self.topic], limits, SourceOptions(**options), watched.hooks)
        self.members.append(Member(source, watched))
        return self.members[-1]

    def joined(self, **options: Any) -> Member:  # noqa: ANN401  # as above
        """A member that reads, and has partitions."""
        member = self.member(**options).start()
        until(lambda: member.watched.partitions > 0 or member.error is not None)
        return member

    def answered(self) -> list[int]:
        """What all members have answered, sorted."""
        return sorted(number for member in self.members for number in member.numbers())

    def committed(self, partitions: int = 2) -> list[int]:
        """What the group has committed."""
        return committed(self.address, self.group, self.topic, partitions)

    def commit(self, offset: int) -> None:
        """Commit this offset of the first partition, while the group is empty."""
        commit(self.address, self.group, self.topic, {0: offset})


@contextmanager
def grouped(address: str, topic: str, protocol: GroupProtocol = "classic", group: str | None = None) -> Iterator[Group]:
    """A group, a new one where it is not named, whose members are closed at the end, whatever happens."""
    consumers = Group(address, topic, protocol, group or f"group-{uuid.uuid4().hex}")
    with ExitStack() as stack:
        yield consumers
        for member in consumers.members:
            stack.callback(member.close)


def by_partition(records: Iterable[RawRecord]) -> dict[int, list[int]]:
    """The offsets of each partition, in the order in which they were given."""
    offsets: dict[int, list[int]] = defaultdict(list)
    for record in records:
        offsets[record.known_partition()[1]].append(record.start)
    return dict(offsets)
