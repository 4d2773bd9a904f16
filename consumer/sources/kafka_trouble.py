"""What a Kafka client's errors mean to a source: wait, bridge a gap, or end; and the words for it."""
# ruff: noqa: SLF001  # the client's names of its own errors begin like that

import time
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from consumer.ports import SourceWatcher
from consumer.sources.partitions import Partition

GAPS: Final = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE})
UNKNOWN_TOPICS: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
)
_REFUSALS: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.INCONSISTENT_GROUP_PROTOCOL,
        KafkaError.GROUP_MAX_SIZE_REACHED,
        KafkaError.UNSUPPORTED_VERSION,
    }
)
_CERTAIN: Final = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION})
_TRANSPORT: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
        KafkaError._SSL,
        KafkaError._TIMED_OUT,
        KafkaError._WAIT_COORD,
    }
)
_PROBE_S: Final = 1.0
_PROBE_WAIT_S: Final = 0.5
_ASK_S: Final = 5.0


def is_fatal(error: KafkaError) -> bool:
    """Whether the client is of no use any more: fenced by another instance, most often."""
    return error.fatal() or error.code() in {KafkaError._FATAL, KafkaError.FENCED_INSTANCE_ID}


def is_refusal(error: KafkaError) -> bool:
    """Whether the cluster will not have us, however often it is asked."""
    return error.code() in _REFUSALS


def describe(error: KafkaError) -> str:
    """The client's words and its name for the error."""
    return f"{error.str()} ({error.name()})"


class Trouble:
    """Whether the brokers can be reached. A suspicion is looked into; one of several brokers may go at any time."""

    def __init__(self, watcher: SourceWatcher) -> None:
        self._watcher = watcher
        self._suspicion: str | None = None
        self._reported = False
        self._again_s = 0.0

    def heed(self, error: KafkaError) -> None:
        """An error that was not the end of the client; most are none of a broker that is out of reach."""
        if error.code() in _CERTAIN or error.code() in _TRANSPORT:
            self.suspect(describe(error), certain=error.code() in _CERTAIN)

    def suspect(self, why: str, *, certain: bool) -> None:
        """Something points to trouble; say so at once where it is certain."""
        if self._suspicion is None:
            self._again_s = time.monotonic()
        self._suspicion = why
        if certain:
            self._report(why)

    def over(self) -> None:
        """A broker has answered."""
        self._suspicion = None
        self._report(None)

    def probe(self, consumer: Consumer, topic: str) -> None:
        """Ask a broker for anything, now and then, as long as there is a suspicion."""
        if self._suspicion is None or time.monotonic() < self._again_s:
            return
        try:
            consumer.list_topics(topic, timeout=_PROBE_WAIT_S)
        except KafkaException:
            if self._suspicion is not None:
                self._report(self._suspicion)
            self._again_s = time.monotonic() + _PROBE_S
        else:
            self.over()

    def _report(self, why: str | None) -> None:
        if (why is not None) != self._reported:
            self._reported = why is not None
            self._watcher.source_trouble(why)


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


def find_gap(consumer: Consumer, partition: Partition, position: int) -> Gap:
    """Compare a position with what the partition has; raises ``KafkaException`` where nobody answers."""
    low, high = consumer.get_watermark_offsets(TopicPartition(*partition), timeout=_ASK_S)
    return Gap(partition, position, low, high)


def ask_committed(consumer: Consumer, asked: list[TopicPartition]) -> list[TopicPartition]:
    """What the group has committed, negative offsets where nothing; raises ``KafkaException`` without an answer."""
    found = consumer.committed(asked, timeout=_ASK_S)
    for one in found:
        if one.error is not None:
            raise KafkaException(one.error)
    return found


def topic_missing(consumer: Consumer, topic: str) -> bool | None:
    """Whether the cluster does not know the topic; None where nobody answers."""
    try:
        found = consumer.list_topics(topic, timeout=_ASK_S).topics.get(topic)
    except KafkaException:
        return None
    return found is None or (found.error is not None and found.error.code() in UNKNOWN_TOPICS)
