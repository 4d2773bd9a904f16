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
from consumer.model.verdict import Verdict, VerdictEvent
from consumer.store_tools.inspection import reference_in
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
class AdoptingDetector(Detector):
    """A detector that asks ``before`` first, the store in force; None where there is none.

    Verdicts are adopted with their arrivals, and postings are written only for what was kept. Repeated after a crash
    anywhere, the result is the same. For one process; nobody else may judge into the store meanwhile.
    """

    before: Store | None = None
    adopted: Adopted = field(default_factory=Adopted)

    @override
    def judge(self, batch: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        """Judge what the store in force has no answer to."""
        known = self._retractions([item for item in batch if isinstance(item, Tombstone)])
        events = self.adopt([item for item in batch if isinstance(item, Version)])
        rest = [known.get(_reference(item), item) for item in batch if _reference(item) not in events]
        # Not super(): slots=True creates the class again, and super() would refer to the one before.
        judged = Detector.judge(self, rest)
        events |= {_reference(item): event for item, event in zip(rest, judged, strict=True)}
        return [events[_reference(item)] for item in batch]

    def adopt(self, versions: Sequence[Version]) -> dict[bytes, VerdictEvent]:
        """Adopt the verdicts that the store in force has of these versions; return their events by reference."""
        in_force = self._in_force([version.record.reference for version in versions])
        taken = [
            Version(_arrived_as(version.record, in_force[version.record.reference].record), version.body)
            for version in versions
            if version.record.reference in in_force
        ]
        if not taken:
            return {}
        stored = self.store.create(taken)
        pending = [known.record for known in stored if known.verdict is None]
        events = {
            known.record.reference: VerdictEvent.read(known.verdict) for known in stored if known.verdict is not None
        }
        events |= self._write_adopted(
            pending, {record.reference: _stored_verdict(in_force[record.reference]) for record in pending}
        )
        self.tally.versions += len(taken)
        self.tally.replays += len(taken) - len(pending)
        kept = sum(_is_kept(event) for event in events.values())
        self.tally.kept += kept
        self.tally.duplicates += len(taken) - kept
        self._count(pending, events)
        return events

    def _in_force(self, references: Sequence[bytes]) -> dict[bytes, Stored]:
        """Return what the store in force has a verdict of."""
        if self.before is None or not references:
            return {}
        found = self.before.read(references)
        return {known.record.reference: known for known in found if known is not None and known.verdict is not None}

    def _retractions(self, tombstones: Sequence[Tombstone]) -> Mapping[bytes, Tombstone]:
        """Return these retractions as the store in force has them."""
        if self.before is None:
            return {}
        wanted = {tombstone.reference for tombstone in tombstones}
        found = (known for tombstone in tombstones for known in self.before.history(tombstone.id_hash))
        return {known.reference: known for known in found if isinstance(known, Tombstone) and known.reference in wanted}

    def _write_adopted(
        self, records: Sequence[Record], events: Mapping[bytes, VerdictEvent]
    ) -> dict[bytes, VerdictEvent]:
        """Give each record its verdict; return the verdicts that are stored now."""
        # Postings before verdicts: after a crash, a version that has a verdict is not looked at again.
        self.store.add([record for record in records if _is_kept(events[record.reference])])
        written = self._write([(record, events[record.reference]) for record in records])
        lost = [record.reference for record in records if record.reference not in written]
        return written | {reference: _stored_verdict(stored) for reference, stored in self._read(lost).items()}

    def _count(self, records: Sequence[Record], events: Mapping[bytes, VerdictEvent]) -> None:
        """Count what was adopted, and what of it the new settings would have decided differently."""
        kept = {record.reference for record in records if _is_kept(events[record.reference])}
        self.adopted.kept += len(kept)
        self.adopted.duplicates += len(records) - len(kept)
        if not records:
            return
        sight = self._look_up(records)
        repeats = {
            record.reference: any(
                neighbour.record.arrival < record.arrival for neighbour in sight.neighbours[record.reference]
            )
            for record in records
        }
        self.adopted.flagged_now += sum(repeats[reference] for reference in kept)
        alone = [
            record.reference for record in records if record.reference not in kept and not repeats[record.reference]
        ]
        originals = [_original(events[reference].verdict) for reference in alone]
        # An original from before the fill cannot be found, whatever the settings.
        found = self._read(sorted(set(originals)))
        self.adopted.kept_now += sum(reference in found for reference in originals)


def _arrived_as(record: Record, known: Record) -> Record:
    """Return the record with the arrival that it has in the store in force."""
    return msgspec.structs.replace(record, time_ms=known.time_ms, sequence=known.sequence)


def _original(flag: Verdict) -> bytes:
    return reference_in(flag.duplicate_of or "", flag.duplicate_of_version)


def _stored_verdict(stored: Stored) -> VerdictEvent:
    """Return the verdict of a version that has one; ``UnreadableEvent`` where it is missing after all."""
    return VerdictEvent.read(stored.verdict or b"")


def _is_kept(event: VerdictEvent) -> bool:
    return event.verdict.outcome == "unique"


def _reference(item: Version | Tombstone) -> bytes:
    return item.reference if isinstance(item, Tombstone) else item.record.reference
