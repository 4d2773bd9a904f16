"""Gaps: positions that a partition no longer has, because records were deleted unread or the topic was recreated.

The client stops such a partition, and refuses to seek in it (librdkafka's issue 2961). So the partition is removed from
the client's assignment, and added again where reading can continue. If a rebalance is waiting for its answer at that
moment, the client takes the new assignment for the answer and joins again: a partition may belong to another consumer
before its revocation is reported here. So a gap is bridged only when all records read so far are answered,
and no message is accepted until all pending callbacks are served.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from consumer.kafka.errors import REQUEST_TIMEOUT_S, RETRY_PAUSE_S
from consumer.kafka.source.handover import Handover
from consumer.model.errors import SourceError
from consumer.model.hooks import Hooks
from consumer.model.record import Partition

log = logging.getLogger("dupwatch")

GAP_ERRORS: Final = frozenset(
    {
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001  # librdkafka's own codes begin with _
        KafkaError._LOG_TRUNCATION,  # noqa: SLF001  # as above
        KafkaError.OFFSET_OUT_OF_RANGE,
    }
)


@dataclass(frozen=True, slots=True)
class Gap:
    """A position that may be outside the offsets of its partition, which begin at ``low`` and end before ``high``."""

    partition: Partition
    position: int
    low: int
    high: int

    @property
    def exists(self) -> bool:
        """Return whether the position is still out of range."""
        return self.position >= 0 and not self.low <= self.position <= self.high

    @property
    def records(self) -> int:
        """Return how many records at most were deleted unread; 0 if unknown, because the topic was recreated."""
        return max(0, self.low - self.position)

    @property
    def resume_at(self) -> int:
        """Return the offset where reading can continue."""
        return self.low if self.exists else self.position

    def description(self) -> str:
        """Return a description of the gap, as part of a message."""
        topic, number = self.partition
        if self.position > self.high:
            return (
                f"partition {number} of {topic} ends at offset {self.high}, but this group has read up to"
                f" {self.position}: the topic was recreated, or lost records"
            )
        return f"{self.records} records of partition {number} of {topic} were deleted before they were read"

    def advice(self) -> str:
        """Return the remedy, as part of a message."""
        restart = 'to continue with the remaining records, start with kafka.on_gap = "continue"'
        return restart if self.position > self.high else f"raise the topic's retention; {restart}"


class RecordsDeleted(NamedTuple):
    """Records were deleted from a topic before they were read."""

    records: int


class Gaps:
    """The partitions that have a gap; for the client's thread only."""

    def __init__(self, on_gap: Literal["stop", "continue"], handover: Handover, hooks: Hooks) -> None:
        self._on_gap = on_gap
        self._handover = handover
        self._hooks = hooks
        self._stopped: set[Partition] = set()
        self._next_attempt_s = 0.0

    def add(self, partition: Partition) -> None:
        """Note that the client has stopped this partition; no message is accepted until the gap is bridged."""
        self._stopped.add(partition)
        with self._handover.changed:
            self._handover.partitions.suspend()

    def bridge(self, consumer: Consumer, serve: Callable[[], None], note_error: Callable[[KafkaError], None]) -> None:
        """Continue after the gaps once all records read so far are answered; fetching has to be paused.

        ``serve`` serves all pending callbacks. If the brokers do not answer, ``note_error`` gets the error, and the gap
        is bridged later. Raises ``SourceError`` if a gap has to end the run.
        """
        with self._handover.changed:
            if not self._handover.partitions.suspended or self._handover.partitions.unanswered():
                return
        if time.monotonic() < self._next_attempt_s:
            return
        self._next_attempt_s = time.monotonic() + RETRY_PAUSE_S
        for partition in sorted(self._stopped):
            try:
                self._bridge(consumer, partition)
            except KafkaException as error:
                note_error(error.args[0])
            else:
                self._stopped.discard(partition)
        serve()
        if not self._stopped:
            with self._handover.changed:
                self._handover.partitions.resume()

    def _bridge(self, consumer: Consumer, partition: Partition) -> None:
        with self._handover.changed:
            position = self._handover.partitions.position(partition)
        if position is None:
            return
        topic, number = partition
        gap = Gap(
            partition,
            position,
            *consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=REQUEST_TIMEOUT_S),
        )
        if gap.exists and self._on_gap == "stop":
            raise SourceError(f"{gap.description()}; {gap.advice()}")
        consumer.incremental_unassign([TopicPartition(topic, number)])
        consumer.incremental_assign([TopicPartition(topic, number, gap.resume_at)])
        consumer.pause([TopicPartition(topic, number)])
        if gap.exists:
            log.warning("%s; continuing at offset %d", gap.description(), gap.resume_at)
            self._hooks.report(RecordsDeleted(gap.records))
        with self._handover.changed:
            self._handover.partitions.jump(partition, gap.resume_at)
