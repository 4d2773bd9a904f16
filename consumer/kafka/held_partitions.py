"""Held partitions, seen from outside of their group: lists them, and resumes them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

import msgspec

from consumer.kafka.groups import STOP_THEM, Committed, Group, Topics
from consumer.kafka.offset_metadata import Held, Note
from consumer.model.errors import ConfigError
from consumer.model.record import Partition, partition_name


class HeldPartition(NamedTuple):
    """A held partition: the offset that it waits at, how many messages wait there, and why it is held."""

    partition: Partition
    offset: int
    waiting: int
    held: Held

    @property
    def name(self) -> str:
        """The partition as commands take it, for example articles:0."""
        return partition_name(self.partition)


class Way(NamedTuple):
    """How a partition resumes: bad records before ``until`` do not count; messages before ``skip_to`` are not read."""

    until: int | None = None
    skip_to: int | None = None


@dataclass(frozen=True, slots=True)
class HeldPartitions:
    """The held partitions of one group. Calls raise ``SourceError`` where no broker answers in time."""

    group: Group
    topics: Topics

    def waiting(self, *, settled: bool = False) -> list[HeldPartition]:
        """Return the partitions that are held; ``settled`` as in ``Group.committed``."""
        return [partition for partition, _ in self._found(settled=settled)]

    def resume(self, names: Sequence[str], way: Way = Way()) -> list[HeldPartition]:  # noqa: B008  # immutable
        """Resume the named partitions, or all that are held; return how they were before.

        Raises ``ConfigError`` where the group has consumers, a partition is not held, or an offset makes no sense.
        """
        if not self.topics.empty(self.group.name):
            raise ConfigError(f"the group {self.group.name} has running consumers: {STOP_THEM}")
        found = {partition.name: (partition, note) for partition, note in self._found(settled=True)}
        for name in names:
            if name not in found:
                raise ConfigError(f"{name} is not held in the group {self.group.name}; see dupwatch poison list")
        chosen = [found[name] for name in names or found]
        if way != Way() and len(chosen) != 1:
            raise ConfigError("an offset belongs to one partition: name it, for example articles:0")
        if chosen:
            self.group.commit({waiting.partition: _resumed(waiting, note, way) for waiting, note in chosen})
        return [waiting for waiting, _ in chosen]

    def _found(self, *, settled: bool) -> list[tuple[HeldPartition, Note]]:
        marks = self.topics.marks()
        committed = self.group.committed([*marks], settled=settled)
        return [*_held(committed, marks)]


def _held(
    committed: Mapping[Partition, Committed], marks: Mapping[Partition, tuple[int, int]]
) -> Iterator[tuple[HeldPartition, Note]]:
    for partition, (offset, note) in sorted(committed.items(), key=itemgetter(0)):
        if note.held is not None:
            low, high = marks[partition]
            yield HeldPartition(partition, offset, max(0, high - max(low, offset)), note.held), note


def _resumed(held: HeldPartition, note: Note, way: Way) -> Committed:
    """Return where a partition resumes; its bad records are counted from zero."""
    end = held.offset + held.waiting
    if way.until is not None and way.until <= held.offset:
        raise ConfigError(f"{held.name} waits at offset {held.offset}: --until takes a later one")
    if way.skip_to is not None and not held.offset < way.skip_to <= end:
        raise ConfigError(f"{held.name} waits at offset {held.offset}: --skip-to takes a later one, up to {end}")
    offset = held.offset if way.skip_to is None else way.skip_to
    return Committed(offset, msgspec.structs.replace(note, held=None, window=(), free_until=way.until or 0))
