"""Held partitions, seen from outside of their group: which there are, and letting them go on."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from consumer.config.config import Config
from consumer.kafka.client_settings import admin_settings, is_kafka, parse_kafka
from consumer.kafka.groups import STOP_THEM, Committed, Group, Topics
from consumer.kafka.offset_metadata import Held, Note
from consumer.model.errors import ConfigError
from consumer.model.record import Partition, partition_name
from consumer.wiring.parts import kafka_options


class HeldPartition(NamedTuple):
    """A partition that waits: at which offset, how many offsets are behind that, and why."""

    partition: Partition
    offset: int
    waiting: int
    held: Held

    @property
    def name(self) -> str:
        """As commands take it."""
        return partition_name(self.partition)


class Way(NamedTuple):
    """How a partition goes on: the limit does not count before ``until``; nothing before ``skip_to`` is read at all."""

    until: int | None = None
    skip_to: int | None = None


@dataclass(frozen=True, slots=True)
class Holding:
    """The held partitions of one group. Calls raise ``SourceError`` where no answer comes in time."""

    group: Group
    topics: Topics

    def waiting(self, *, settled: bool = False) -> list[HeldPartition]:
        """Those that are held; ``settled`` as in ``Group.committed``."""
        return [one for one, _ in self._found(settled=settled)]

    def resume(self, names: Sequence[str], way: Way = Way()) -> list[HeldPartition]:  # noqa: B008  # immutable
        """Let these go on, all that are held where none is named; how they were before.

        ``ConfigError`` where consumers are in the group, where one is not held, and where an offset cannot be meant.
        """
        if not self.topics.empty(self.group.name):
            raise ConfigError(f"there are consumers in the group {self.group.name}: {STOP_THEM}")
        found = {one.name: (one, note) for one, note in self._found(settled=True)}
        for name in names:
            if name not in found:
                raise ConfigError(f"{name} is not held in the group {self.group.name}; see dupwatch poison list")
        chosen = [found[name] for name in names or found]
        if way != Way() and len(chosen) != 1:
            raise ConfigError("an offset is one partition's: name that one, as in articles:0")
        if chosen:
            self.group.commit({one.partition: _resumed(one, note, way) for one, note in chosen})
        return [one for one, _ in chosen]

    def _found(self, *, settled: bool) -> list[tuple[HeldPartition, Note]]:
        marks = self.topics.marks()
        committed = self.group.committed([*marks], settled=settled)
        return [*_held(committed, marks)]


def _held(
    committed: Mapping[Partition, Committed], marks: Mapping[Partition, tuple[int, int]]
) -> Iterator[tuple[HeldPartition, Note]]:
    for partition, (offset, note) in sorted(committed.items(), key=lambda one: one[0]):
        if note.held is not None:
            low, high = marks[partition]
            yield HeldPartition(partition, offset, max(0, high - max(low, offset)), note.held), note


def _resumed(one: HeldPartition, note: Note, way: Way) -> Committed:
    """Where a partition goes on, with counts that begin anew."""
    end = one.offset + one.waiting
    if way.until is not None and way.until <= one.offset:
        raise ConfigError(f"{one.name} waits at offset {one.offset}: --until takes a later one")
    if way.skip_to is not None and not one.offset < way.skip_to <= end:
        raise ConfigError(f"{one.name} waits at offset {one.offset}: --skip-to takes a later one, up to {end}")
    offset = one.offset if way.skip_to is None else way.skip_to
    return Committed(offset, msgspec.structs.replace(note, held=None, window=(), free_until=way.until or 0))


@contextmanager
def holding(config: Config) -> Iterator[Holding]:
    """The held partitions of the configured group and topics."""
    if not is_kafka(config.source.url):
        raise ConfigError("partitions are those of topics: name them with --source kafka://HOST:PORT/TOPIC")
    place = parse_kafka(config.source.url)
    asked = admin_settings(place.brokers, kafka_options(config))
    with ExitStack() as held:
        topics = held.enter_context(closing(Topics(asked, place.names)))
        yield Holding(held.enter_context(closing(Group(asked, config.kafka.group))), topics)
