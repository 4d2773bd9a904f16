"""Partitions that are held: their notes beside the offsets, and that the client fetches nothing of them."""

import logging
from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec
from confluent_kafka import Consumer, TopicPartition

from consumer.kafka.message import to_client
from consumer.kafka.offset_metadata import NOTHING, Held, Note, UnreadableNote, decode_note
from consumer.kafka.source.handover import Handover
from consumer.model.hooks import Hooks
from consumer.model.record import Partition, partition_name

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
        """Return the note beside a committed offset, without the part of a migration."""
        try:
            return msgspec.structs.replace(decode_note(place.metadata), migrate=None)
        except UnreadableNote as error:
            where = partition_name((place.topic, place.partition))
            log.warning("The metadata of the offset of %s cannot be read, and is ignored: %s", where, error)
            self._hooks.report(NoteUnreadable())
            return NOTHING

    def keep(self, consumer: Consumer) -> None:
        """Pause the partitions that are held now; log and report where they, or the owned ones, have changed."""
        with self._handover.changed:
            self._handover.partitions.hold_blocked()
            holds = self._handover.partitions.holds()
            if holds == self._holds:
                return
            places = self._handover.partitions.owned()
        new = {key: held for key, held in holds.items() if held is not None and not self.has(key)}
        if new:
            consumer.pause(to_client(new))
        for partition, held in new.items():
            log.error(
                "%s is held at offset %d: %s. %s",
                partition_name(partition),
                places[partition].offset,
                held.sentence(),
                held.remedy(),
            )
        self._holds = holds
        reasons = {partition: None if held is None else held.sentence() for partition, held in holds.items()}
        self._hooks.report(PartitionsHeld(reasons))

    def has(self, partition: Partition) -> bool:
        """Return whether the client fetches nothing of this partition."""
        return self._holds.get(partition) is not None

    def leaving(self, consumer: Consumer, partitions: Collection[Partition]) -> None:
        """Resume partitions before they leave: the client remembers a pause, and would not fetch them later."""
        if paused := [partition for partition in partitions if self.has(partition)]:
            consumer.resume(to_client(paused))

    def forget(self) -> None:
        """Forget the pauses: another client has none."""
        self._holds = {}
