"""Stands in for librdkafka's consumer and its brokers, and does what real ones seldom do."""

import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from consumer.model.record import Partition

NO_OFFSET = -1001
"""What librdkafka has where no offset is given or committed."""


class _Polled:
    """What a poll may return; each concerns one partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def topic(self) -> str:
        """Return the topic."""
        return self._partition[0]

    def partition(self) -> int:
        """Return the number of the partition."""
        return self._partition[1]


class OutOfRange(_Polled):
    """Says that the client has ended a partition, because its position is not in the log."""

    def error(self) -> KafkaError:
        """Return librdkafka's error for it."""
        return KafkaError(KafkaError._AUTO_OFFSET_RESET)


class BadBatch(_Polled):
    """Says that the client cannot unpack the batch at an offset."""

    def __init__(self, partition: Partition, offset: int, code: int = KafkaError._BAD_COMPRESSION) -> None:
        super().__init__(partition)
        self._offset = offset
        self._code = code

    def error(self) -> KafkaError:
        """Return the error with this code."""
        return KafkaError(self._code)

    def offset(self) -> int:
        """Return where the batch begins."""
        return self._offset


class EmptyMessage(_Polled):
    """A message without key and value."""

    def __init__(self, partition: Partition, offset: int) -> None:
        super().__init__(partition)
        self._offset = offset

    def error(self) -> None:
        """Return that nothing is wrong."""

    def offset(self) -> int:
        """Return its offset."""
        return self._offset

    def value(self) -> None:
        """Return that it has no value."""

    def key(self) -> None:
        """Return that it has no key."""


class FakeGroup:
    """What the brokers know of a group: its member, its offsets with their metadata, and how they refuse commits."""

    def __init__(self) -> None:
        self.member = b"one"
        self.offsets: dict[Partition, int] = {}
        self.notes: dict[Partition, str] = {}
        self.refusal: int | None = None

    def metadata(self) -> bytes:
        """Return the group metadata as librdkafka writes it."""
        return b"CGMDv2:" + struct.pack("=i", 1) + b"group\0" + self.member + b"\0\x01"

    def committed(self, asked: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return offsets and metadata of these partitions."""
        keys = [(place.topic, place.partition) for place in asked]
        return [TopicPartition(*key, self.offsets.get(key, NO_OFFSET), self.notes.get(key, "")) for key in keys]

    def commit(self, places: Sequence[TopicPartition]) -> None:
        """Take these offsets, unless commits are refused."""
        if self.refusal is not None:
            raise KafkaException(KafkaError(self.refusal))
        for place in places:
            self.offsets[place.topic, place.partition] = place.offset
            if place.metadata:
                self.notes[place.topic, place.partition] = place.metadata


class FakeConsumer:
    """A consumer of one topic. What waits in ``next_polls`` is called or returned by the polls that follow.

    ``logs`` has the first and the next offset of each partition. ``calls`` has the name of each call that changes
    something, and the partitions that it was about. ``when_unassigned`` is called by ``incremental_unassign``: real
    clients call back while they wait for that.
    """

    def __init__(self, group: FakeGroup, logs: Mapping[Partition, tuple[int, int]]) -> None:
        self.calls: list[tuple[str, dict[Partition, int]]] = []
        self.next_polls: deque[OutOfRange | BadBatch | Callable[[], None]] = deque()
        self.when_unassigned: Callable[[], None] = lambda: None
        self.on_commit: Callable[..., None] = lambda *_: None
        self.on_error: Callable[..., None] = lambda *_: None
        self._callbacks: dict[str, Any] = {}
        self._group = group
        self._logs = logs

    def calls_of(self, name: str) -> list[dict[Partition, int]]:
        """Return the partitions of each call of this name, with their offsets."""
        return [partitions for called, partitions in self.calls if called == name]

    def call_back(self, name: str, *partitions: Partition) -> None:
        """Have the next poll call a callback of the subscription, such as ``on_assign``."""
        self.next_polls.append(
            lambda: self._callbacks[name](self, [TopicPartition(*partition) for partition in partitions])
        )

    def subscribe(self, topics: Sequence[str], **callbacks: Any) -> None:  # noqa: ANN401  # the thread's own
        """Keep the callbacks."""
        assert topics == ["t"]
        self._callbacks = callbacks

    def consumer_group_metadata(self) -> bytes:
        """Return the group's metadata."""
        return self._group.metadata()

    def poll(self, timeout: float) -> OutOfRange | BadBatch | None:
        """Call what waits, up to the first message."""
        del timeout
        while self.next_polls:
            waiting = self.next_polls.popleft()
            if not callable(waiting):
                return waiting
            waiting()
        return None

    def consume(self, count: int, timeout: float) -> list[EmptyMessage]:
        """Return nothing: everything comes by ``poll``."""
        del count, timeout
        return []

    def committed(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        """Return the group's offsets."""
        del timeout
        return self._group.committed(asked)

    def commit(self, offsets: list[TopicPartition], *, asynchronous: bool) -> list[TopicPartition]:
        """Commit to the group; the answer to an asynchronous commit comes with the next poll."""
        self._note("commit", offsets)
        self._group.commit(offsets)
        if asynchronous:
            self.next_polls.append(lambda: self.on_commit(None, offsets))
        return offsets

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """Call ``when_unassigned``."""
        self._note("unassign", partitions)
        self.when_unassigned()

    def get_watermark_offsets(self, of: TopicPartition, **_: Any) -> tuple[int, int]:  # noqa: ANN401  # a time-out
        """Return where the log begins and ends."""
        return self._logs[of.topic, of.partition]

    def list_topics(self, *_: object, **_time_out: object) -> None:
        """Fail as if no broker answered."""
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Note any other call."""
        return lambda *args, **_: self._note(name, args[0] if args and isinstance(args[0], list) else [])

    def _note(self, name: str, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append((name, {(place.topic, place.partition): place.offset for place in partitions}))
