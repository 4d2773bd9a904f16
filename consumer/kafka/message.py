"""Messages of topics as records, positions in topics, and partitions as the client names them."""

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
    """Where the next batch begins in each partition of a topic, and the assignment of partitions that this is for."""

    next: Mapping[Partition, int]
    assignment: int


def offsets_in(end: End) -> Offsets:
    """Return where a batch of topics ends."""
    if not isinstance(end, Offsets):
        raise TypeError("a batch of topics ends at offsets")
    return end


def from_client(partitions: Sequence[TopicPartition]) -> set[Partition]:
    """Return the partitions that the client names."""
    return {(partition.topic, partition.partition) for partition in partitions}


def partition_of(message: ClientMessage) -> Partition:
    """Return the partition that a message, or an error in a message's place, is of; ("", -1) for an error of none."""
    number = message.partition()
    return message.topic() or "", -1 if number is None else number


def to_client(partitions: Collection[Partition]) -> list[TopicPartition]:
    """Return partitions, without offsets, as the client takes them."""
    return [TopicPartition(topic, number) for topic, number in partitions]


def log_names(partitions: Collection[Partition]) -> str:
    """Return the partitions as the log names them, in order."""
    return ", ".join(f"{topic} [{number}]" for topic, number in sorted(partitions)) or "nothing"
