"""Positions that a partition does not have, since records were deleted unread or the log is another one.

The client has ended such a partition, and refuses to seek in it (librdkafka's issue 2961): it is taken out of the
client's assignment, and put back where reading can go on. Where a rebalance waits for its answer at that moment, the
client takes this for the answer, and joins again: a partition may be another's before we have heard that it goes. So
this is done with nothing in the judge's hands, and nothing is taken in before the client has called back whatever it
has to say by then.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from consumer.kafka.errors import AGAIN_S, ASK_S
from consumer.model.errors import SourceError
from consumer.model.hooks import Hooks
from consumer.model.record import Partition
from consumer.sources.handover import Handover

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
    """A position that a partition does not have: it has offsets from ``low`` up to, not including, ``high``."""

    partition: Partition
    position: int
    low: int
    high: int

    @property
    def real(self) -> bool:
        """Whether it is out of range at all by now."""
        return self.position >= 0 and not self.low <= self.position <= self.high

    @property
    def records(self) -> int:
        """How many were deleted unread, 0 where the log is another one and nobody can say."""
        return max(0, self.low - self.position)

    @property
    def resume_at(self) -> int:
        """Where reading can go on."""
        return self.low if self.real else self.position

    def what(self) -> str:
        """What has happened, for a person."""
        topic, number = self.partition
        if self.position > self.high:
            return (
                f"partition {number} of {topic} ends at offset {self.high}, and this group has read up to"
                f" {self.position}: the topic was made anew, or lost records"
            )
        return f"{self.records} records of partition {number} of {topic} were deleted before they were read"

    def advice(self) -> str:
        """What to do about it, for a person."""
        after = 'to go on with what is there, start with kafka.on_gap = "continue"'
        return after if self.position > self.high else f"raise the topic's retention; {after}"


class RecordsDeleted(NamedTuple):
    """So many records were deleted from a topic before they were read."""

    records: int


class Gaps:
    """The partitions that cannot be read on; for the client's thread only."""

    def __init__(self, on_gap: Literal["stop", "continue"], handover: Handover, hooks: Hooks) -> None:
        self._on_gap = on_gap
        self._handover = handover
        self._hooks = hooks
        self._found: set[Partition] = set()
        self._again_s = 0.0

    def add(self, partition: Partition) -> None:
        """The client says that it has ended this partition; nothing more is taken in before that is mended."""
        self._found.add(partition)
        with self._handover.changed:
            self._handover.partitions.suspend()

    def bridge(self, consumer: Consumer, serve: Callable[[], None], heed: Callable[[KafkaError], None]) -> None:
        """Go on behind what is missing, once all that was read before it is answered; fetching has to be paused.

        ``serve`` returns when the client has called back whatever it has to say, ``heed`` is told of brokers that do
        not answer; then it is tried again. Raises ``SourceError`` where a gap is to end the run.
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
            log.warning("%s; going on at offset %d", gap.what(), gap.resume_at)
            self._hooks.report(RecordsDeleted(gap.records))
        with self._handover.changed:
            self._handover.partitions.jump(partition, gap.resume_at)
