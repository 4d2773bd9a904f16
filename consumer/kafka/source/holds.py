"""Partitions that are held: which are, their notes beside the offsets, and that the client fetches nothing of them.

A few bad records become dead letters; a feed of them is a fault that needs attention. The limit counts the last records
of each partition, across restarts: the counts are part of its note.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from confluent_kafka import Consumer, TopicPartition
from typing_extensions import override

from consumer.kafka.message import Offsets, offsets_in, to_client
from consumer.kafka.offset_metadata import (
    NOTHING,
    REASON_CHARS_MAX,
    HoldReason,
    HoldRequest,
    Ledger,
    Note,
    UnreadableNote,
    decode_note,
)
from consumer.kafka.source.handover import Handover
from consumer.model.errors import Abandoned
from consumer.model.hooks import Hooks
from consumer.model.ports import Rejection
from consumer.model.record import Partition, RawBatch, RawRecord, partition_name
from consumer.pipeline.dead_letter_policy import Gate, PoisonLimit, totals

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
        self._holds: dict[Partition, HoldReason | None] = {}

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


@dataclass(frozen=True, slots=True)
class PartitionGate(Gate):
    """Admits batches while none of their partitions has too many bad records.

    ``hold`` is called with partitions that are to be held.
    """

    limit: PoisonLimit
    ledger: Ledger
    hold: Callable[[Offsets, Mapping[Partition, HoldRequest]], None]

    @override
    def before_judging(self, batch: RawBatch, rejections: Sequence[Rejection]) -> None:
        """Count the batch. Raises ``Abandoned`` if a partition of it is held from now on."""
        reasons = {id(rejection.record): rejection.letter.reason for rejection in rejections}
        holdings: dict[Partition, HoldRequest] = {}
        for partition, records in _by_partition(batch.records).items():
            note = self.ledger.note(partition)
            counted = [record for record in records if record.start >= note.free_until]
            bad = [reasons[id(record)] for record in counted if id(record) in reasons]
            window = self.limit.after(note.window, len(counted), len(bad))
            if bad and self.limit.exceeded(window):
                seen, found = totals(window)
                ((reason, _),) = Counter(bad).most_common(1)
                held = HoldReason(bad=found, records=seen, reason=reason[:REASON_CHARS_MAX])
                holdings[partition] = HoldRequest(records[0].start, held)
            free_until = 0 if counted else note.free_until
            self.ledger.put(partition, msgspec.structs.replace(note, window=window, free_until=free_until))
        if holdings:
            self.hold(offsets_in(batch.end), holdings)
            raise Abandoned("; ".join(f"{partition_name(partition)} is held from now on" for partition in holdings))


def _by_partition(records: Sequence[RawRecord]) -> dict[Partition, list[RawRecord]]:
    found: defaultdict[Partition, list[RawRecord]] = defaultdict(list)
    for record in records:
        found[record.known_partition()].append(record)
    return found
