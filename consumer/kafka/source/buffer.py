"""The buffer of records that were read from topics but not yet judged, bounded in count and in bytes."""

from collections import deque
from typing import NamedTuple

from consumer.kafka.message import TopicRecord
from consumer.model.limits import ReadLimits
from consumer.model.record import Partition, headers_bytes


class _BufferedMessage(NamedTuple):
    """A message and its size in memory."""

    message: TopicRecord
    size_bytes: int


class Buffer:
    """The buffered records of each partition, in the order in which they came.

    The buffer is full at ``batches_ahead_max`` full batches, but still accepts records. ``is_overfull`` returns true
    once it has one more batch.
    """

    def __init__(self, limits: ReadLimits, batches_ahead_max: int) -> None:
        self._limits = limits
        self._batches_ahead_max = batches_ahead_max
        self._size_bytes = 0
        self._count = 0
        # The first partition is the next one to take a record from.
        self._waiting: dict[Partition, deque[_BufferedMessage]] = {}

    def __len__(self) -> int:
        return self._count

    def add(self, message: TopicRecord) -> None:
        """Append a message to its partition."""
        waiting = _BufferedMessage(message, memory_bytes(message))
        self._waiting.setdefault(message.partition, deque()).append(waiting)
        self._count += 1
        self._size_bytes += waiting.size_bytes

    def take(self) -> tuple[list[TopicRecord], dict[Partition, int]]:
        """Remove and return the records of the next batch, and the offset after the last one in each partition.

        Partitions take turns, record by record. So no partition waits for the backlog of another, and a batch has
        articles that can be judged side by side.
        """
        limits = self._limits
        records: list[TopicRecord] = []
        ends: dict[Partition, int] = {}
        taken_bytes = 0
        while self._waiting and len(records) < limits.batch_records_max:
            partition, waiting = next(iter(self._waiting.items()))
            message, size_bytes = waiting[0]
            if records and taken_bytes + size_bytes > limits.batch_bytes_max:
                break
            waiting.popleft()
            del self._waiting[partition]
            if waiting:
                self._waiting[partition] = waiting
            records.append(message)
            taken_bytes += size_bytes
            ends[partition] = message.start + 1
        self._count -= len(records)
        self._size_bytes -= taken_bytes
        return records, ends

    def clear(self) -> None:
        """Discard all records."""
        self._waiting.clear()
        self._count = self._size_bytes = 0

    def room(self) -> int:
        """Return how many more records may be read; 0 when the buffer is full."""
        batches, limits = self._batches_ahead_max, self._limits
        if self._size_bytes >= batches * limits.batch_bytes_max:
            return 0
        return max(0, batches * limits.batch_records_max - len(self))

    def room_bytes(self) -> int:
        """Return how many more bytes may be read; 0 when the buffer is full."""
        return max(0, self._batches_ahead_max * self._limits.batch_bytes_max - self._size_bytes)

    def is_overfull(self) -> bool:
        """Return whether the buffer exceeds its limit by a whole batch."""
        batches, limits = self._batches_ahead_max + 1, self._limits
        return self._size_bytes >= batches * limits.batch_bytes_max or len(self) >= batches * limits.batch_records_max

    def has_full_batch(self) -> bool:
        """Return whether the next batch is full, so that waiting for more records would not make it larger."""
        limits = self._limits
        return len(self) >= limits.batch_records_max or self._size_bytes >= limits.batch_bytes_max


def memory_bytes(message: TopicRecord) -> int:
    """Return the memory of the parts of a message that its sender controls: value, key and headers."""
    return len(message.data) + len(message.key or b"") + headers_bytes(message.headers)
