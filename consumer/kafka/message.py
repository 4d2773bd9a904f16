"""Records and positions of topics, and conversions between the client's partitions and ours."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import Message as ClientMessage
from confluent_kafka import TopicPartition

from consumer.model.record import End, Partition, RawRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord(RawRecord):
    """A record of a topic.

    ``leader_epoch`` is committed with the offset, so that a broker can detect that a log was truncated.
    """

    partition: Partition
    leader_epoch: int | None = None


class Offsets(NamedTuple):
    """The next offset of each partition after a batch, and the number of the assignment that they belong to."""

    next: Mapping[Partition, int]
    assignment: int


def offsets_in(end: End) -> Offsets:
    """Return the end of a batch that was read from topics. Raises ``TypeError`` for another end."""
    if not isinstance(end, Offsets):
        raise TypeError("a batch of topics ends at offsets")
    return end


def from_client(partitions: Sequence[TopicPartition]) -> set[Partition]:
    """Return the client's partitions as ours."""
    return {(partition.topic, partition.partition) for partition in partitions}


def partition_of(message: ClientMessage) -> Partition:
    """Return the partition of a message, or of an error in its place; ("", -1) for an error without a partition."""
    number = message.partition()
    return message.topic() or "", -1 if number is None else number


def to_client(partitions: Collection[Partition]) -> list[TopicPartition]:
    """Return our partitions as the client's, without offsets."""
    return [TopicPartition(topic, number) for topic, number in partitions]


def log_names(partitions: Collection[Partition]) -> str:
    """Return the partitions in order, as the log names them; "nothing" without partitions."""
    return ", ".join(f"{topic} [{number}]" for topic, number in sorted(partitions)) or "nothing"
