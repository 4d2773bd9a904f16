"""Between partitions as we name them, a topic and a number, and the client's objects for them."""

from collections.abc import Collection, Sequence

from confluent_kafka import Message, TopicPartition

from consumer.model.record import Partition


def from_client(partitions: Sequence[TopicPartition]) -> set[Partition]:
    """Return the partitions that the client names."""
    return {(partition.topic, partition.partition) for partition in partitions}


def partition_of(message: Message) -> Partition:
    """Return the partition that a message, or an error in a message's place, is of; ("", -1) for an error of none."""
    number = message.partition()
    return message.topic() or "", -1 if number is None else number


def to_client(partitions: Collection[Partition]) -> list[TopicPartition]:
    """Return partitions, without offsets, as the client takes them."""
    return [TopicPartition(topic, number) for topic, number in partitions]


def log_names(partitions: Collection[Partition]) -> str:
    """Return the partitions as the log names them, in order."""
    return ", ".join(f"{topic} [{number}]" for topic, number in sorted(partitions)) or "nothing"
