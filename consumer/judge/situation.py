"""The data by which a batch is decided, and the pure functions that decide it, between reading and writing."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from consumer.judge import events
from consumer.judge.comparison import not_released
from consumer.judge.decision import Duplicate, Neighbour, Neighbourhood, VersionState, decide, state_of
from consumer.judge.events import NO_REMARKS, Remarks, ended_before, reference_in
from consumer.judge.seen_texts import NOTHING_RECALLED, RememberedTexts
from consumer.model.verdict import Part, SeenBefore, VerdictEvent
from storage.records import Record, StoredVersion


class Situation(NamedTuple):
    """The data by which a batch is decided: pending versions, known copies among them, the neighbours of the others.

    ``recalled`` has the earlier arrivals of the batch's texts. ``seen_before`` and ``parts``, by reference, are remarks
    for readers of the verdicts, and decide nothing.
    """

    pending: Sequence[StoredVersion]
    copies: Sequence[Duplicate]
    near: Neighbourhood
    recalled: RememberedTexts = NOTHING_RECALLED
    seen_before: Mapping[bytes, SeenBefore] = MappingProxyType({})
    parts: Mapping[bytes, tuple[Part, ...]] = MappingProxyType({})

    def stored(self) -> dict[bytes, StoredVersion]:
        """Return the pending versions and all neighbours, by reference, as last read."""
        near = self.near
        others = {other.record.reference for neighbours in near.neighbours.values() for other in neighbours}
        stored = {version.record.reference: version for version in self.pending}
        return stored | {reference: near.stored[reference] for reference in others | near.neighbours.keys()}

    def kept_event(self, record: Record, decided_ms: int) -> VerdictEvent:
        """Return the verdict on a version that repeats nothing."""
        truncated = record.reference in self.near.truncated
        return events.kept_event(record, truncated=truncated, decided_ms=decided_ms, remarks=self._remarks(record))

    def duplicate_event(self, duplicate: Duplicate, decided_ms: int) -> VerdictEvent:
        """Return the verdict on a version that repeats another one."""
        record = duplicate.record
        truncated = record.reference in self.near.truncated
        return events.duplicate_event(
            duplicate, truncated=truncated, decided_ms=decided_ms, remarks=self._remarks(record)
        )

    def without_repeats(self, writes: "BatchWrites") -> "Situation":
        """Return the situation, without remarks that name a version which becomes a duplicate in this batch."""
        if not self.parts and not self.near.ended:
            return self
        repeats = {each.record.reference for each in (*writes.copies, *writes.duplicates, *writes.claims)}
        return self._replace(
            parts={
                reference: tuple(part for part in parts if reference_in(part.id, part.version) not in repeats)
                for reference, parts in self.parts.items()
            },
            near=self.near._replace(
                ended={
                    reference: [other for other in ended if other.neighbour.record.reference not in repeats]
                    for reference, ended in self.near.ended.items()
                }
            ),
        )

    def _remarks(self, record: Record) -> Remarks:
        if not (self.seen_before or self.parts or self.near.ended):
            return NO_REMARKS
        reference = record.reference
        return Remarks(
            self.seen_before.get(reference),
            self.parts.get(reference, ()),
            ended_before(self.near.ended.get(reference, ())),
        )


class BatchWrites(NamedTuple):
    """The verdicts to write: known copies, other duplicates and claims in any order, then the kept versions."""

    copies: Sequence[Duplicate]
    duplicates: Sequence[Duplicate]
    claims: Sequence[Duplicate]
    kept: Sequence[Record]


def decisions_of(
    situation: Situation, stored: Mapping[bytes, StoredVersion], never_flagged: frozenset[bytes]
) -> BatchWrites:
    """Return the decisions for the versions that are pending according to ``stored``."""
    states = {reference: state_of(version) for reference, version in stored.items()}
    copies = [copy for copy in situation.copies if states[copy.record.reference] is VersionState.PENDING]
    # Decide copies first: a crash may have left postings of a copy, but no version may repeat or claim it.
    states |= {copy.record.reference: VersionState.DUPLICATE for copy in copies}
    records = [version.record for version in situation.pending if version.record.reference in situation.near.neighbours]
    decisions = decide(records, _not_released(situation.near.neighbours, stored), states, never_flagged)
    return BatchWrites(copies, *decisions)


def _not_released(
    neighbours: Mapping[bytes, list[Neighbour]], stored: Mapping[bytes, StoredVersion]
) -> Mapping[bytes, list[Neighbour]]:
    """Return the neighbours without pairs that a person has released since the look-up."""
    return {
        reference: [other for other in others if not_released(stored[reference], stored[other.record.reference])]
        for reference, others in neighbours.items()
    }
