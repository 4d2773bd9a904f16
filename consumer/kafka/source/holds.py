"""Holds partitions with too many bad records or an unreadable batch, and keeps the client from fetching them.

A few bad records become dead letters, but a feed full of them is a fault that needs attention. The limit counts the
last records of each partition, across restarts: the counts are part of the note with its offset.
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
    EMPTY_NOTE,
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
    """The partitions of this consumer, each with the reason why it is held, or None. Reported on any change."""

    reasons: Mapping[Partition, str | None]


class NoteIgnored(NamedTuple):
    """The metadata of a committed offset could not be read, and is ignored."""


class Holds:
    """The held partitions of a client; for its thread only."""

    def __init__(self, handover: Handover, hooks: Hooks) -> None:
        self._handover = handover
        self._hooks = hooks
        self._holds: dict[Partition, HoldReason | None] = {}

    def read_note(self, place: TopicPartition) -> Note:
        """Return the note of a committed offset, without the mark of a migration.

        An unreadable note is logged and reported, and counts as empty.
        """
        try:
            return msgspec.structs.replace(decode_note(place.metadata), migrate=None)
        except UnreadableNote as error:
            where = partition_name((place.topic, place.partition))
            log.warning("The metadata of the offset of %s cannot be read, and is ignored: %s", where, error)
            self._hooks.report(NoteIgnored())
            return EMPTY_NOTE

    def update(self, consumer: Consumer) -> None:
        """Hold blocked partitions, pause and log newly held ones, and report any change of held or owned partitions."""
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
        """Return whether the client's fetching of this partition is paused by a hold."""
        return self._holds.get(partition) is not None

    def release(self, consumer: Consumer, partitions: Collection[Partition]) -> None:
        """Resume partitions before they leave; the client remembers a pause, and would not fetch them later."""
        if paused := [partition for partition in partitions if self.has(partition)]:
            consumer.resume(to_client(paused))

    def forget(self) -> None:
        """Forget the pauses, which a new client does not have."""
        self._holds = {}


@dataclass(frozen=True, slots=True)
class PartitionGate(Gate):
    """A gate that admits batches while none of their partitions has too many bad records.

    ``hold`` is called with the end of the batch and the partitions to hold.
    """

    limit: PoisonLimit
    ledger: Ledger
    hold: Callable[[Offsets, Mapping[Partition, HoldRequest]], None]

    @override
    def before_judging(self, batch: RawBatch, rejections: Sequence[Rejection]) -> None:
        """Count the records of the batch. Raises ``Abandoned`` if one of its partitions is held from now on."""
        reasons = {id(rejection.record): rejection.letter.reason for rejection in rejections}
        holdings: dict[Partition, HoldRequest] = {}
        for partition, records in _by_partition(batch.records).items():
            note = self.ledger.note(partition)
            counted = [record for record in records if record.start >= note.free_until]
            bad = [reasons[id(record)] for record in counted if id(record) in reasons]
            window = self.limit.advance(note.window, len(counted), len(bad))
            if bad and self.limit.is_exceeded(window):
                records_total, bad_total = totals(window)
                ((reason, _),) = Counter(bad).most_common(1)
                held = HoldReason(bad=bad_total, records=records_total, reason=reason[:REASON_CHARS_MAX])
                holdings[partition] = HoldRequest(records[0].start, held)
            free_until = 0 if counted else note.free_until
            self.ledger.put(partition, msgspec.structs.replace(note, window=window, free_until=free_until))
        if holdings:
            self.hold(offsets_in(batch.end), holdings)
            raise Abandoned("; ".join(f"{partition_name(partition)} is held from now on" for partition in holdings))


def _by_partition(records: Sequence[RawRecord]) -> dict[Partition, list[RawRecord]]:
    by_partition: defaultdict[Partition, list[RawRecord]] = defaultdict(list)
    for record in records:
        by_partition[record.known_partition()].append(record)
    return by_partition
