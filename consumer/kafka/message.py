"""Messages of topics as records, and positions in topics."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from consumer.model.record import Partition, RawRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(RawRecord):
    """A record of a topic.

    ``leader_epoch`` is committed with the offset, so that a broker can detect that a log was truncated.
    """

    partition: Partition
    leader_epoch: int | None = None


class Offsets(NamedTuple):
    """Where the next batch begins in each partition of a topic, and the assignment of partitions that this is for."""

    next: Mapping[Partition, int]
    assignment: int
