"""The judge of a fill: existing verdicts stand, and only what has no verdict is judged.

A new store is filled beside one in force, whose verdicts have been sent. Judged again with other settings, an article
that readers know as unique might become a duplicate, and the next copy of it be kept: the same story twice. So a
verdict is adopted unchanged, with the fingerprint and keys of the new settings. docs/migration.md says what follows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from typing_extensions import override

from consumer.judge.detector import Detector
from consumer.judge.events import original_of
from consumer.judge.judge import Judge
from consumer.judge.tally import Cost, Tally
from consumer.judge.verdict_cells import verdict_of
from consumer.judge.versions import ArrivedAt
from consumer.model.verdict import VerdictEvent
from storage.interface import Store
from storage.records import Record, Stored, Tombstone, Version


@dataclass(slots=True)
class Adopted:
    """Counts of adopted verdicts; ``flagged_now`` and ``kept_now`` count what the new settings would change."""

    kept: int = 0
    duplicates: int = 0
    flagged_now: int = 0
    kept_now: int = 0


@dataclass(slots=True)
class AdoptingJudge(Judge):
    """Adopts the verdicts of ``in_force``, the store in force (None where there is none); ``detector`` judges the rest.

    Verdicts are adopted with their arrivals, and postings are written only for what was kept. Repeated after a crash
    anywhere, the result is the same. For one process; nobody else may judge into the store meanwhile.
    """

    detector: Detector
    in_force: Store | None = None
    adopted: Adopted = field(default_factory=Adopted)

    @property
    def tally(self) -> Tally:
        """What judging and adopting have cost."""
        return self.detector.tally

    @property
    @override
    def plan_name(self) -> str:
        return self.detector.plan_name

    @override
    def judge(self, batch: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        """Adopt what the store in force has verdicts of, and judge the rest."""
        tombstones = self._known_tombstones([arrived for arrived in batch if isinstance(arrived, Tombstone)])
        events = self.adopt([arrived for arrived in batch if isinstance(arrived, Version)])
        rest = [tombstones.get(arrived.reference, arrived) for arrived in batch if arrived.reference not in events]
        judged = self.detector.judge(rest)
        events |= {arrived.reference: event for arrived, event in zip(rest, judged, strict=True)}
        return [events[arrived.reference] for arrived in batch]

    @override
    def retraction(self, article_id: str, arrived_at: ArrivedAt, origin: bytes) -> Tombstone:
        return self.detector.retraction(article_id, arrived_at, origin)

    @override
    def sweep(self, before_ms: int, versions_max: int) -> int:
        return self.detector.sweep(before_ms, versions_max)

    @override
    def cost(self) -> Cost:
        return self.detector.cost()

    def adopt(self, versions: Sequence[Version]) -> dict[bytes, VerdictEvent]:
        """Adopt the verdicts that the store in force has of these versions; return their events by reference."""
        judged = self._judged_in_force([version.reference for version in versions])
        adopting = [
            Version(_arrived_as(version.record, judged[version.reference].record), version.body)
            for version in versions
            if version.reference in judged
        ]
        if not adopting:
            return {}
        stored = self.detector.store.create(adopting)
        pending = [version.record for version in stored if version.verdict is None]
        events = {version.record.reference: verdict_of(version) for version in stored if version.verdict is not None}
        events |= self._settle(pending, {record.reference: verdict_of(judged[record.reference]) for record in pending})
        self.tally.versions += len(adopting)
        self.tally.replays += len(adopting) - len(pending)
        kept = sum(_is_kept(event) for event in events.values())
        self.tally.kept += kept
        self.tally.duplicates += len(adopting) - kept
        self._count(pending, events)
        return events

    def _judged_in_force(self, references: Sequence[bytes]) -> dict[bytes, Stored]:
        """Return the versions that have a verdict in the store in force."""
        if self.in_force is None or not references:
            return {}
        return {
            stored.record.reference: stored
            for stored in self.in_force.read(references)
            if stored is not None and stored.verdict is not None
        }

    def _known_tombstones(self, tombstones: Sequence[Tombstone]) -> Mapping[bytes, Tombstone]:
        """Return these tombstones as the store in force has them."""
        if self.in_force is None:
            return {}
        references = {tombstone.reference for tombstone in tombstones}
        history = (stored for tombstone in tombstones for stored in self.in_force.history(tombstone.id_hash))
        return {
            stored.reference: stored
            for stored in history
            if isinstance(stored, Tombstone) and stored.reference in references
        }

    def _settle(self, records: Sequence[Record], events: Mapping[bytes, VerdictEvent]) -> dict[bytes, VerdictEvent]:
        """Give each record its verdict; return the verdicts that are stored now."""
        # Postings before verdicts: after a crash, a version that has a verdict is not looked at again.
        self.detector.store.add([record for record in records if _is_kept(events[record.reference])])
        cells = self.detector.cells
        settled = cells.settle([(record, events[record.reference]) for record in records])
        return settled.written | cells.verdicts(settled.lost)

    def _count(self, records: Sequence[Record], events: Mapping[bytes, VerdictEvent]) -> None:
        """Count what was adopted, and what of it the new settings would have decided differently."""
        kept = {record.reference for record in records if _is_kept(events[record.reference])}
        self.adopted.kept += len(kept)
        self.adopted.duplicates += len(records) - len(kept)
        if not records:
            return
        near = self.detector.search.look_up(records, {})
        repeats = {
            record.reference: any(
                neighbour.record.arrival < record.arrival for neighbour in near.neighbours[record.reference]
            )
            for record in records
        }
        self.adopted.flagged_now += sum(repeats[reference] for reference in kept)
        alone = [
            record.reference for record in records if record.reference not in kept and not repeats[record.reference]
        ]
        originals = [original_of(events[reference].verdict) for reference in alone]
        # An original from before the fill cannot be found, whatever the settings.
        stored = self.detector.cells.read(sorted(set(originals)))
        self.adopted.kept_now += sum(reference in stored for reference in originals)


def _arrived_as(record: Record, known: Record) -> Record:
    """Return the record with the arrival that it has in the store in force."""
    return msgspec.structs.replace(record, time_ms=known.time_ms, sequence=known.sequence)


def _is_kept(event: VerdictEvent) -> bool:
    return event.verdict.outcome == "unique"
