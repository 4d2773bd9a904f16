"""Partitions that are held: what stands beside their offsets, and that the client fetches nothing of them."""

import logging
from collections.abc import Collection

import msgspec
from confluent_kafka import Consumer, TopicPartition

from consumer.notes import NOTHING, Held, Note, UnreadableNote, decode_note
from consumer.ports import Partition, SourceWatcher, partition_name
from consumer.sources.handover import Handover

log = logging.getLogger("dupwatch")


class Holds:
    """The held partitions of a client; for its thread only."""

    def __init__(self, handover: Handover, watcher: SourceWatcher) -> None:
        self._handover = handover
        self._watcher = watcher
        self._held: dict[Partition, Held] = {}

    def read_note(self, place: TopicPartition) -> Note:
        """The note beside a committed offset, without what a migration has said there."""
        try:
            return msgspec.structs.replace(decode_note(place.metadata), migrate=None)
        except UnreadableNote as error:
            where = partition_name((place.topic, place.partition))
            log.warning("The metadata of the offset of %s cannot be read, and counts as none: %s", where, error)
            self._watcher.note_unreadable()
            return NOTHING

    def keep(self, consumer: Consumer) -> None:
        """Pause what is held by now, and say so where that is another set of partitions than before."""
        with self._handover.changed:
            held = self._handover.partitions.poisoned()
            places = self._handover.partitions.owned()
        if held == self._held:
            return
        if new := held.keys() - self._held.keys():
            consumer.pause([TopicPartition(*one) for one in sorted(new)])
        for one in sorted(new):
            log.error(
                "%s is held at offset %d: %s. Correct the producer or the field mapping, stop the consumers of the"
                " group, and let the partition go on: dupwatch poison resume",
                partition_name(one),
                places[one].offset,
                held[one].sentence(),
            )
        self._held = held
        self._watcher.holding({one: why.sentence() for one, why in held.items()})

    def has(self, partition: Partition) -> bool:
        """Whether the client fetches nothing of this partition."""
        return partition in self._held

    def leaving(self, consumer: Consumer, partitions: Collection[Partition]) -> None:
        """Before these go: a client remembers a pause, and would not fetch them when they come back."""
        if gone := self._held.keys() & partitions:
            consumer.resume([TopicPartition(*one) for one in sorted(gone)])

    def forget(self) -> None:
        """Another client has paused nothing."""
        self._held = {}
