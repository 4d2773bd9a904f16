"""Takes messages from the client: reads while the buffer has room, pauses while it is full, and seeks."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as ClientMessage

from consumer.kafka.client_log import client_log
from consumer.kafka.errors import BrokerHealth
from consumer.kafka.message import TopicRecord, partition_of, to_client
from consumer.kafka.source.handover import Handover
from consumer.kafka.source.records import record_of
from consumer.kafka.source.unpacking import UNPACK_ERRORS, UnpackingFailures
from consumer.model.hooks import Hooks
from consumer.model.limits import ReadLimits
from consumer.model.record import Partition

POLL_S: Final = 0.1
_NO_ENDS: Final[Mapping[Partition, int]] = MappingProxyType({})


class FetchingPaused(NamedTuple):
    """Fetching was paused, because fetched records have not been judged yet, or was resumed."""

    paused: bool


class FetchingWaited(NamedTuple):
    """A period without reading from the client, because records that were read have not been judged yet."""

    seconds: float


class FetchSize:
    """The number of messages to take in one call of the client, which copies them before their sizes are known."""

    def __init__(self, messages_max: int) -> None:
        self._messages_max = messages_max
        self._large_bytes = 1

    def next_count(self, room: int, room_bytes: int) -> int:
        """Return how many messages of the largest recent size fit; at least one if there is room."""
        if not room:
            return 0
        return min(room, self._messages_max, max(1, room_bytes // self._large_bytes))

    def observe(self, sizes_bytes: Iterable[int]) -> None:
        """Note the sizes of messages. Each later call halves the size that a large message counts for."""
        self._large_bytes = max(self._large_bytes // 2, *sizes_bytes, 1)


class MessageFetcher:
    """The reader of the client's messages; for the client's thread only.

    ``handle_error`` is called for errors in place of messages, except the end of a partition and a batch that cannot be
    unpacked. A message or the end of a partition tells ``broker_health`` that a broker has answered. ``rebalances``
    counts assignments, revocations and losses of partitions.
    """

    def __init__(
        self,
        limits: ReadLimits,
        pause_after_s: float,
        handover: Handover,
        hooks: Hooks,
        broker_health: BrokerHealth,
        handle_error: Callable[[KafkaError, Partition], None],
    ) -> None:
        self.paused = False
        self.rebalances = 0
        self._record_bytes_max = limits.record_bytes_max
        self._pause_after_s = pause_after_s
        self._handover = handover
        self._hooks = hooks
        self._broker_health = broker_health
        self._handle_error = handle_error
        self._full_since_s: float | None = None
        self._unpacking = UnpackingFailures(handover)
        self._fetch_size = FetchSize(limits.batch_records_max)

    def turn(self, consumer: Consumer) -> None:
        """Read new messages; without room in the buffer, only keep the client alive."""
        if self._has_room():
            self._resume(consumer)
            self._read(consumer)
        else:
            self._keep_alive(consumer)

    def seek(self, consumer: Consumer) -> None:
        """Make the seeks that are due. A partition that the client does not fetch yet is tried in the next turn."""
        with self._handover.changed:
            seeks = self._handover.partitions.seeks()
        for (topic, number), offset in seeks.items():
            try:
                consumer.seek(TopicPartition(topic, number, offset))
            except KafkaException as error:
                client_log.debug("%s [%d] cannot be sought to %d yet: %s", topic, number, offset, error)
                continue
            with self._handover.changed:
                self._handover.partitions.note_sought((topic, number), offset)

    def serve(self, consumer: Consumer) -> None:
        """Serve all pending callbacks, and take in the messages before them.

        Fetching must be paused, or the call might not end.
        """
        while not self._handover.closing and (message := consumer.poll(0)) is not None:
            self._take_in([message])

    def note_rebalance(self) -> None:
        """Note a rebalance: messages that the current call returns may have been fetched before it."""
        self.rebalances += 1

    def pause_new(self, consumer: Consumer, partitions: Collection[Partition]) -> None:
        """Pause newly assigned partitions if fetching is paused."""
        if self.paused and partitions:
            consumer.pause(to_client(partitions))

    def release(self, consumer: Consumer, partitions: Collection[Partition]) -> bool:
        """Forget partitions that leave. If fetching is paused, lift their pause, and return True."""
        for partition in partitions:
            self._unpacking.forget(partition)
        if self.paused:
            # The client remembers a pause after the assignment ends, and would not fetch a partition that comes back.
            consumer.resume(to_client(partitions))
        return self.paused

    def forget(self) -> None:
        """Reset the counts of unpacking failures, for a new client."""
        self._unpacking = UnpackingFailures(self._handover)

    def _has_room(self) -> bool:
        with self._handover.changed:
            return self._handover.partitions.room() > 0

    def _resume(self, consumer: Consumer) -> None:
        self._full_since_s = None
        if not self.paused:
            return
        self.paused = False
        with self._handover.changed:
            # The client may have lost assignments and seeks made around a pause.
            self._handover.partitions.rewind()
            owned = [partition for partition, held in self._handover.partitions.holds().items() if held is None]
        consumer.resume(to_client(owned))
        self._hooks.report(FetchingPaused(paused=False))
        self.seek(consumer)

    def _read(self, consumer: Consumer) -> None:
        first = consumer.poll(POLL_S)
        if first is None:
            return
        self._take_in([first])
        with self._handover.changed:
            room, room_bytes = self._handover.partitions.room(), self._handover.partitions.room_bytes()
        self._fetch_size.observe([_size_bytes(first)])
        count = self._fetch_size.next_count(room, room_bytes)
        rebalances = self.rebalances
        more = consumer.consume(count, 0) if count else []
        self._fetch_size.observe(map(_size_bytes, more))
        if rebalances != self.rebalances:
            # These messages may have been fetched before a partition left and came back.
            more = [message for message in more if message.error() is not None]
            with self._handover.changed:
                self._handover.partitions.rewind()
        self._take_in(more)

    def _take_in(self, messages: Sequence[ClientMessage]) -> None:
        records: list[TopicRecord] = []
        ends: dict[Partition, int] = {}
        for message in messages:
            error = message.error()
            if error is None:
                records.append(record_of(message, self._record_bytes_max))
                continue
            partition = partition_of(message)
            if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  # librdkafka's own codes begin with _
                ends[partition] = message.offset() or 0
            elif error.code() in UNPACK_ERRORS:
                # Messages before the batch move the position; messages after it may have to be discarded.
                self._deliver(records)
                records = []
                self._unpacking.note_failure(error, partition, message.offset() or 0)
            else:
                self._handle_error(error, partition)
        self._deliver(records, ends)

    def _deliver(self, records: Sequence[TopicRecord], ends: Mapping[Partition, int] = _NO_ENDS) -> None:
        if not records and not ends:
            return
        self._broker_health.note_answer()
        with self._handover.changed:
            self._handover.partitions.deliver(records)
            for partition, offset in ends.items():
                self._handover.partitions.note_end(partition, offset)
            self._handover.changed.notify_all()

    def _keep_alive(self, consumer: Consumer) -> None:
        """Serve callbacks, and read at most one message.

        Pause after a while, or at once for a gap or an overfull buffer.
        """
        handover, now_s = self._handover, time.monotonic()
        if self._full_since_s is None:
            self._full_since_s = now_s
        with handover.changed:
            handover.changed.wait_for(lambda: handover.closing or handover.partitions.room() > 0, POLL_S)
            overfull = handover.partitions.is_overfull() or handover.partitions.suspended
            owned = list(handover.partitions.owned())
        self._hooks.report(FetchingWaited(time.monotonic() - now_s))
        if not self.paused and (overfull or now_s - self._full_since_s >= self._pause_after_s):
            self.paused = True
            consumer.pause(to_client(owned))
            self._hooks.report(FetchingPaused(paused=True))
        message = consumer.poll(0)
        if message is not None:
            self._take_in([message])


def _size_bytes(message: ClientMessage) -> int:
    """Return the size of a message's value; 0 for an error in its place."""
    return len(message.value() or b"") if message.error() is None else 0
