"""Partitions that are held: what stands beside their offsets, and that the client fetches nothing of them."""

import logging
from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec
from confluent_kafka import Consumer, TopicPartition

from consumer.kafka.offset_metadata import NOTHING, Held, Note, UnreadableNote, decode_note
from consumer.model.hooks import Hooks
from consumer.model.record import Partition, partition_name
from consumer.sources.handover import Handover

log = logging.getLogger("dupwatch")


class PartitionsHeld(NamedTuple):
    """The partitions that are this consumer's, and why each is held; None where it is not. Reported on any change."""

    reasons: Mapping[Partition, str | None]


class NoteUnreadable(NamedTuple):
    """The metadata beside a committed offset could not be read, and is ignored."""


class Holds:
    """The held partitions of a client; for its thread only."""

    def __init__(self, handover: Handover, hooks: Hooks) -> None:
        self._handover = handover
        self._hooks = hooks
        self._holds: dict[Partition, Held | None] = {}

    def read_note(self, place: TopicPartition) -> Note:
        """The note beside a committed offset, without what a migration has said there."""
        try:
            return msgspec.structs.replace(decode_note(place.metadata), migrate=None)
        except UnreadableNote as error:
            where = partition_name((place.topic, place.partition))
            log.warning("The metadata of the offset of %s cannot be read, and counts as none: %s", where, error)
            self._hooks.report(NoteUnreadable())
            return NOTHING

    def keep(self, consumer: Consumer) -> None:
        """Pause what is held by now, and say so where that, or what is ours, has changed."""
        with self._handover.changed:
            self._handover.partitions.hold_blocked()
            holds = self._handover.partitions.holds()
            if holds == self._holds:
                return
            places = self._handover.partitions.owned()
        new = {one: held for one, held in holds.items() if held is not None and not self.has(one)}
        if new:
            consumer.pause([TopicPartition(*one) for one in new])
        for one, held in new.items():
            log.error(
                "%s is held at offset %d: %s. %s",
                partition_name(one),
                places[one].offset,
                held.sentence(),
                held.remedy(),
            )
        self._holds = holds
        reasons = {partition: None if held is None else held.sentence() for partition, held in holds.items()}
        self._hooks.report(PartitionsHeld(reasons))

    def has(self, partition: Partition) -> bool:
        """Whether the client fetches nothing of this partition."""
        return self._holds.get(partition) is not None

    def leaving(self, consumer: Consumer, partitions: Collection[Partition]) -> None:
        """Before these go: a client remembers a pause, and would not fetch them when they come back."""
        if paused := [one for one in partitions if self.has(one)]:
            consumer.resume([TopicPartition(*one) for one in paused])

    def forget(self) -> None:
        """Another client has paused nothing."""
        self._holds = {}
