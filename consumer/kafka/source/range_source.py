"""Reads a range of topics once, in the order of the messages' times, without joining a group.

Partitions are merged by time. If they were read one after another, the earliest article could be judged last. Merging
needs some messages of each partition in memory. Only partitions with too few messages are assigned to the client, each
at its next offset, so that no partition has to be paused. Messages that the client had prefetched are discarded.
"""

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka import Message as ClientMessage
from typing_extensions import override

from consumer.kafka.client_log import client_log
from consumer.kafka.clients import broker_request, new_consumer
from consumer.kafka.errors import UNKNOWN_TOPICS, describe, is_fatal, is_refusal
from consumer.kafka.message import Offsets, TopicRecord, partition_of
from consumer.kafka.offset_range import OffsetRange, Ranges, offsets_at, partitions_of, watermarks
from consumer.kafka.source.records import record_of
from consumer.kafka.source.unpacking import UNPACK_ERRORS, AttemptCounter, is_final, unpack_failure
from consumer.model.errors import SourceError
from consumer.model.limits import ReadLimits
from consumer.model.ports import Source
from consumer.model.record import RawBatch

SILENCE_MAX_S: Final = 60.0
"""The run fails if it waits this long for a message."""
_REQUEST_TIMEOUT_S: Final = 30.0
_LOOK_S: Final = 0.2
_CONSUME_MAX: Final = 1_000
_KEPT_BYTES_MAX: Final = 64 << 20
"""The approximate memory of all partitions together. Each has a share, and may exceed it by the result of one call."""
_SHARE_BYTES_MIN: Final = 64 << 10

_ENDS: Final = frozenset({KafkaError._PARTITION_EOF}) | UNPACK_ERRORS  # noqa: SLF001  # librdkafka's own code
"""At an offset after the range, these errors mean that the client has delivered the whole range."""

_SETTINGS: Final[Mapping[str, Any]] = {
    "enable.partition.eof": True,
    # Messages fetched beyond a partition's share are discarded.
    "queued.max.messages.kbytes": 4_096,
}


@dataclass(slots=True)
class _Part:
    """One partition: its next offset, its end, and records that were read but not delivered yet.

    ``time_ms`` is the highest time so far.
    """

    topic: str
    number: int
    next: int
    end: int
    time_ms: int = -1
    kept: deque[tuple[int, TopicRecord]] = field(default_factory=deque)
    kept_bytes: int = 0

    @property
    def is_read(self) -> bool:
        """Return whether the partition was read to its end."""
        return self.next >= self.end

    def take_in(self, record: TopicRecord) -> None:
        """Keep a record, with at least the time of the one before it, so that partitions keep the order of offsets."""
        self.time_ms = max(self.time_ms, record.time_ms)
        self.kept.append((self.time_ms, record))
        self.kept_bytes += len(record.data)
        self.next = record.start + 1

    def take(self) -> TopicRecord:
        """Remove and return the first kept record."""
        record = self.kept.popleft()[1]
        self.kept_bytes -= len(record.data)
        return record


class RangeSource(Source):
    """A source that reads a range of topics, or named ranges of offsets.

    A range of topics ends no later than the topics did when the source was created. All offsets of named ranges must
    exist. ``settings`` come from ``consumer_settings``; nothing is committed, and the group is not involved.
    ``stopped`` is called for each record and while waiting for messages; reading ends when it returns true. Raises
    ``SourceError`` and ``ConfigError``.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        topics: Sequence[str],
        limits: ReadLimits,
        offsets: OffsetRange | Ranges,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._limits = limits
        self._stopped = stopped
        self._attempts = AttemptCounter()
        brokers = str(settings["bootstrap.servers"])
        self._name = f"kafka://{brokers}/{','.join(topics)}"
        self._consumer = new_consumer({**settings, **_SETTINGS})
        try:
            with broker_request(brokers, f"{self._name} cannot be read"):
                self._parts = (
                    _range_parts(self._consumer, topics, brokers, offsets)
                    if isinstance(offsets, OffsetRange)
                    else _named_parts(offsets)
                )
        except SourceError:
            self._consumer.close()
            raise
        self._offsets = sum(part.end - part.next for part in self._parts.values())
        self._next = {key: part.next for key, part in self._parts.items()}
        self._share_bytes = max(_SHARE_BYTES_MIN, _KEPT_BYTES_MAX // max(1, len(self._parts)))

    @override
    def batches(self) -> Iterator[RawBatch]:
        records: list[TopicRecord] = []
        size_bytes = 0
        for record in self._records():
            full = len(records) == self._limits.batch_records_max
            if records and (full or size_bytes + len(record.data) > self._limits.batch_bytes_max):
                yield self._batch(records)
                records, size_bytes = [], 0
            records.append(record)
            size_bytes += len(record.data)
        if records and not self._stopped():
            yield self._batch(records)

    def progress(self) -> tuple[int, int]:
        """Return the delivered and the total number of offsets in the range; some offsets have no message."""
        left = sum(part.end - part.next + len(part.kept) for part in self._parts.values())
        return self._offsets - left, self._offsets

    @override
    def close(self) -> None:
        self._consumer.close()

    @property
    def name(self) -> str:
        """Return the name of the input in messages."""
        return self._name

    def _batch(self, records: Sequence[TopicRecord]) -> RawBatch:
        for record in records:
            self._next[record.partition] = record.start + 1
        return RawBatch(tuple(records), Offsets(dict(self._next), 0))

    def _records(self) -> Iterator[TopicRecord]:
        """Yield all records by time, with a heap of the first kept record of each partition."""
        heap: list[tuple[int, tuple[str, int]]] = []
        self._fill()
        for key, part in self._parts.items():
            if part.kept:
                heapq.heappush(heap, (part.kept[0][0], key))
        while heap and not self._stopped():
            _, key = heapq.heappop(heap)
            part = self._parts[key]
            yield part.take()
            if not part.kept and not part.is_read:
                self._fill()
            if part.kept:
                heapq.heappush(heap, (part.kept[0][0], key))

    def _fill(self) -> None:
        """Read more of every partition with less than half of its share, until it has its share or is at its end."""
        unfilled = {
            key: part
            for key, part in self._parts.items()
            if not part.is_read and (not part.kept or part.kept_bytes < self._share_bytes // 2)
        }
        if not unfilled:
            return
        self._consumer.assign([TopicPartition(*key, part.next) for key, part in unfilled.items()])
        answered_s = time.monotonic()
        while unfilled and not self._stopped():
            for message in self._consumer.consume(_CONSUME_MAX, _LOOK_S):
                key = partition_of(message)
                # Messages of a filled partition are read again later.
                if (part := unfilled.get(key)) is not None:
                    if message.error() is None:
                        answered_s = time.monotonic()
                    self._take_in(part, message)
                    if part.is_read or part.kept_bytes >= self._share_bytes:
                        del unfilled[key]
                elif (error := message.error()) is not None:
                    self._handle_error(error)
            if time.monotonic() - answered_s > SILENCE_MAX_S:
                raise SourceError(f"{self._name}: no message for {SILENCE_MAX_S:.0f} s; rerun the command")

    def _take_in(self, part: _Part, message: ClientMessage) -> None:
        error, offset = message.error(), message.offset()
        if error is not None and error.code() in UNPACK_ERRORS and (offset or 0) < part.end:
            self._cannot_unpack(part, error, offset or 0)
        elif error is not None and error.code() not in _ENDS:
            self._handle_error(error)
        elif offset is not None and offset >= part.next:
            if offset >= part.end or error is not None:
                # The last offsets of a partition have no message if they were compacted, or end a transaction.
                part.next = part.end
            else:
                part.take_in(record_of(message, self._limits.record_bytes_max))

    def _cannot_unpack(self, part: _Part, error: KafkaError, offset: int) -> None:
        key = (part.topic, part.number)
        if is_final(error, self._attempts.count_failure(key, part.next, offset)):
            raise SourceError(
                f"{unpack_failure(error, key, offset)}. Choose a range that ends before this batch or begins after it,"
                " or delete the records of the partition up to the end of the batch (kafka-delete-records.sh)"
            )

    def _handle_error(self, error: KafkaError) -> None:
        deleted = error.code() == KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001  # as above
        if is_fatal(error) or is_refusal(error) or error.code() in UNKNOWN_TOPICS or deleted:
            more = "; its first messages were deleted during reading" if deleted else ""
            raise SourceError(f"{self._name} cannot be read: {describe(error)}{more}")
        # For example the end of a partition that was read already.
        client_log.debug("%s", describe(error))


def _range_parts(
    consumer: Consumer, topics: Sequence[str], brokers: str, offsets: OffsetRange
) -> dict[tuple[str, int], _Part]:
    """Return the partitions of a range, each with its beginning and end."""
    keys = [
        (topic, number) for topic in topics for number in partitions_of(consumer, topic, brokers, _REQUEST_TIMEOUT_S)
    ]
    marks = {key: watermarks(consumer, *key, _REQUEST_TIMEOUT_S) for key in keys}
    starts = offsets_at(consumer, marks, offsets.since)
    ends = {key: high for key, (_, high) in marks.items()}
    if offsets.until is not None:
        ends = offsets_at(consumer, marks, offsets.until)
    if offsets.offsets_max is not None:
        ends = {key: min(end, starts[key] + offsets.offsets_max) for key, end in ends.items()}
    return {key: _Part(*key, starts[key], max(starts[key], ends[key])) for key in keys}


def _named_parts(ranges: Ranges) -> dict[tuple[str, int], _Part]:
    return {key: _Part(*key, start, max(start, end)) for key, (start, end) in ranges.items()}
