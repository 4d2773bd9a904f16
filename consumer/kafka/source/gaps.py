"""Positions that a partition does not have, because records were deleted unread or the topic was recreated.

The client stops such a partition, and refuses to seek in it (librdkafka's issue 2961). So the partition is removed from
the client's assignment, and added again where reading can continue. If a rebalance waits for its answer at that moment,
the client takes this for the answer and joins again: a partition may belong to another consumer before its revocation
is reported here. That is why it is done while no batch is being judged, and why nothing is taken in before all pending
callbacks are served.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from consumer.kafka.errors import AGAIN_S, ASK_S
from consumer.kafka.source.handover import Handover
from consumer.model.errors import SourceError
from consumer.model.hooks import Hooks
from consumer.model.record import Partition

log = logging.getLogger("dupwatch")

GAPS: Final = frozenset(
    {
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001  # librdkafka's own codes are named so
        KafkaError._LOG_TRUNCATION,  # noqa: SLF001  # as above
        KafkaError.OFFSET_OUT_OF_RANGE,
    }
)


@dataclass(frozen=True, slots=True)
class Gap:
    """A position that a partition does not have; it has the offsets from ``low`` up to ``high``, which is excluded."""

    partition: Partition
    position: int
    low: int
    high: int

    @property
    def real(self) -> bool:
        """Return whether the position is still out of range."""
        return self.position >= 0 and not self.low <= self.position <= self.high

    @property
    def records(self) -> int:
        """Return how many records were deleted unread; 0 where the topic was recreated, since nobody knows."""
        return max(0, self.low - self.position)

    @property
    def resume_at(self) -> int:
        """Return where reading can continue."""
        return self.low if self.real else self.position

    def what(self) -> str:
        """Return what has happened, as part of a message."""
        topic, number = self.partition
        if self.position > self.high:
            return (
                f"partition {number} of {topic} ends at offset {self.high}, and this group has read up to"
                f" {self.position}: the topic was recreated, or lost records"
            )
        return f"{self.records} records of partition {number} of {topic} were deleted before they were read"

    def advice(self) -> str:
        """Return what to do about it, as part of a message."""
        after = 'to continue with the records that are left, start with kafka.on_gap = "continue"'
        return after if self.position > self.high else f"raise the topic's retention; {after}"


class RecordsDeleted(NamedTuple):
    """This number of records was deleted from a topic before they were read."""

    records: int


class Gaps:
    """The partitions whose position is gone; for the client's thread only."""

    def __init__(self, on_gap: Literal["stop", "continue"], handover: Handover, hooks: Hooks) -> None:
        self._on_gap = on_gap
        self._handover = handover
        self._hooks = hooks
        self._found: set[Partition] = set()
        self._again_s = 0.0

    def add(self, partition: Partition) -> None:
        """Note that the client has stopped this partition; nothing more is taken in until the gap is bridged."""
        self._found.add(partition)
        with self._handover.changed:
            self._handover.partitions.suspend()

    def bridge(self, consumer: Consumer, serve: Callable[[], None], heed: Callable[[KafkaError], None]) -> None:
        """Continue behind the gaps once everything that was read before is answered; fetching has to be paused.

        ``serve`` returns when all pending callbacks were served. ``heed`` gets the error of brokers that do not answer,
        and the gap is tried again later. Raises ``SourceError`` where a gap has to end the run.
        """
        with self._handover.changed:
            if not self._handover.partitions.suspended or self._handover.partitions.unanswered():
                return
        if time.monotonic() < self._again_s:
            return
        self._again_s = time.monotonic() + AGAIN_S
        for partition in sorted(self._found):
            try:
                self._bridge(consumer, partition)
            except KafkaException as error:
                heed(error.args[0])
            else:
                self._found.discard(partition)
        serve()
        if not self._found:
            with self._handover.changed:
                self._handover.partitions.resume()

    def _bridge(self, consumer: Consumer, partition: Partition) -> None:
        with self._handover.changed:
            position = self._handover.partitions.position(partition)
        if position is None:
            return
        topic, number = partition
        gap = Gap(partition, position, *consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=ASK_S))
        if gap.real and self._on_gap == "stop":
            raise SourceError(f"{gap.what()}; {gap.advice()}")
        consumer.incremental_unassign([TopicPartition(topic, number)])
        consumer.incremental_assign([TopicPartition(topic, number, gap.resume_at)])
        consumer.pause([TopicPartition(topic, number)])
        if gap.real:
            log.warning("%s; continuing at offset %d", gap.what(), gap.resume_at)
            self._hooks.report(RecordsDeleted(gap.records))
        with self._handover.changed:
            self._handover.partitions.jump(partition, gap.resume_at)
