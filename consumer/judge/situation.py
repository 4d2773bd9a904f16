"""What a batch is decided by, and what is decided: pure functions between reading and writing."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from consumer.judge import events
from consumer.judge.comparison import not_released
from consumer.judge.decision import Duplicate, Neighbour, Neighbourhood, VersionState, decide, state_of
from consumer.judge.events import Remarks, ended_before, reference_in
from consumer.judge.seen_texts import NOTHING_RECALLED, RememberedTexts
from consumer.model.verdict import Part, SeenBefore, VerdictEvent
from storage.records import Record, StoredVersion


class Situation(NamedTuple):
    """What a batch is decided by: its pending versions, the known copies among them, and what is near the others.

    ``recalled`` is what was remembered of the texts of the batch. What verdicts say besides is by reference:
    ``seen_before`` and ``parts``.
    """

    pending: Sequence[StoredVersion]
    copies: Sequence[Duplicate]
    near: Neighbourhood
    recalled: RememberedTexts = NOTHING_RECALLED
    seen_before: Mapping[bytes, SeenBefore] = MappingProxyType({})
    parts: Mapping[bytes, tuple[Part, ...]] = MappingProxyType({})

    def stored(self) -> dict[bytes, StoredVersion]:
        """Return the pending versions and the neighbours of any, by reference, as they were read last."""
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

    def without_repeats(self, decided: "BatchWrites") -> "Situation":
        """Leave out of what verdicts say besides the versions that become duplicates with this batch."""
        if not self.parts and not self.near.ended:
            return self
        repeats = {each.record.reference for each in (*decided.copies, *decided.duplicates, *decided.claims)}
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
        reference = record.reference
        return Remarks(
            self.seen_before.get(reference),
            self.parts.get(reference, ()),
            ended_before(self.near.ended.get(reference, ())),
        )


class BatchWrites(NamedTuple):
    """What to write: known copies, other duplicates and claims, in any order, and then the kept versions."""

    copies: Sequence[Duplicate]
    duplicates: Sequence[Duplicate]
    claims: Sequence[Duplicate]
    kept: Sequence[Record]


def decisions_of(found: Situation, stored: Mapping[bytes, StoredVersion], never: frozenset[bytes]) -> BatchWrites:
    """Decide the versions that are pending by ``stored``."""
    states = {reference: state_of(version) for reference, version in stored.items()}
    copies = [copy for copy in found.copies if states[copy.record.reference] is VersionState.PENDING]
    # Decided before the others. A crash may have left postings of a copy, but nothing may repeat or claim it.
    states |= {copy.record.reference: VersionState.DUPLICATE for copy in copies}
    records = [version.record for version in found.pending if version.record.reference in found.near.neighbours]
    decisions = decide(records, _not_released(found.near.neighbours, stored), states, never)
    return BatchWrites(copies, *decisions)


def _not_released(
    neighbours: Mapping[bytes, list[Neighbour]], stored: Mapping[bytes, StoredVersion]
) -> Mapping[bytes, list[Neighbour]]:
    """Drop pairs that a person has released since the look-up: a version that was pending then may be released now."""
    return {
        reference: [other for other in others if not_released(stored[reference], stored[other.record.reference])]
        for reference, others in neighbours.items()
    }
