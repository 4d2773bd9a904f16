"""The judge of a fill: what was said of an article stands, and only what nobody has judged is judged.

A new store is filled beside one in force, whose verdicts have been sent. Judged anew by other settings, an article
that readers know as unique might become a duplicate, and the next copy of it be kept: the same story twice. So a
verdict is taken over as it is, under the new settings' fingerprint and keys. docs/migration.md says what follows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from consumer.judge.detector import Detector
from consumer.model.verdict import Verdict, VerdictEvent
from consumer.store_tools.inspection import reference_in
from storage.interface import Store
from storage.records import Record, Stored, Tombstone, Version


@dataclass(slots=True)
class Adopted:
    """What was taken over, in counts; ``flagged_now`` and ``kept_now`` are what the new settings would have changed."""

    kept: int = 0
    duplicates: int = 0
    flagged_now: int = 0
    kept_now: int = 0


@dataclass(slots=True)
class AdoptingDetector(Detector):
    """A detector that asks ``before`` first, the store in force; None where there is none.

    Verdicts are taken over with the arrival they were given, and postings only for what was kept. Done again after a
    crash anywhere, the result is the same. For one process; nobody else may judge into the store meanwhile.
    """

    before: Store | None = None
    adopted: Adopted = field(default_factory=Adopted)

    def judge(self, batch: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        """As ``Detector.judge``, but for what the store in force has an answer to."""
        known = self._retractions([one for one in batch if isinstance(one, Tombstone)])
        events = self.adopt([one for one in batch if isinstance(one, Version)])
        rest = [known.get(_reference(one), one) for one in batch if _reference(one) not in events]
        # Not super(): a class with slots is made anew, and does not find itself.
        judged = Detector.judge(self, rest)
        events |= {_reference(one): event for one, event in zip(rest, judged, strict=True)}
        return [events[_reference(one)] for one in batch]

    def adopt(self, versions: Sequence[Version]) -> dict[bytes, VerdictEvent]:
        """Take over the verdicts of those that the store in force has one of; their events by reference."""
        told = self._told([one.record.reference for one in versions])
        taken = [
            Version(
                msgspec.structs.replace(
                    one.record,
                    time_ms=told[one.record.reference].record.time_ms,
                    sequence=told[one.record.reference].record.sequence,
                ),
                one.body,
            )
            for one in versions
            if one.record.reference in told
        ]
        if not taken:
            return {}
        stored = self.store.create(taken)
        pending = [one.record for one in stored if one.verdict is None]
        events = {one.record.reference: VerdictEvent.read(one.verdict) for one in stored if one.verdict is not None}
        events |= self._write_adopted(pending, {one.reference: _stored_verdict(told[one.reference]) for one in pending})
        self.tally.versions += len(taken)
        self.tally.replays += len(taken) - len(pending)
        kept = sum(_is_kept(event) for event in events.values())
        self.tally.kept += kept
        self.tally.duplicates += len(taken) - kept
        self._count(pending, events)
        return events

    def _told(self, references: Sequence[bytes]) -> dict[bytes, Stored]:
        """What the store in force has a verdict of."""
        if self.before is None or not references:
            return {}
        found = self.before.read(references)
        return {one.record.reference: one for one in found if one is not None and one.verdict is not None}

    def _retractions(self, tombstones: Sequence[Tombstone]) -> Mapping[bytes, Tombstone]:
        """These retractions as the store in force has them."""
        if self.before is None:
            return {}
        wanted = {one.reference for one in tombstones}
        found = (two for one in tombstones for two in self.before.history(one.id_hash))
        return {one.reference: one for one in found if isinstance(one, Tombstone) and one.reference in wanted}

    def _write_adopted(
        self, records: Sequence[Record], events: Mapping[bytes, VerdictEvent]
    ) -> dict[bytes, VerdictEvent]:
        """Give each its verdict; return those that are stored now."""
        # Before the verdicts: one that has a verdict is not looked at again after a crash.
        self.store.add([one for one in records if _is_kept(events[one.reference])])
        written = self._write([(one, events[one.reference]) for one in records])
        lost = [one.reference for one in records if one.reference not in written]
        return written | {reference: _stored_verdict(one) for reference, one in self._read(lost).items()}

    def _count(self, records: Sequence[Record], events: Mapping[bytes, VerdictEvent]) -> None:
        """Count what was taken over, and what of it the new settings would have decided otherwise."""
        kept = {one.reference for one in records if _is_kept(events[one.reference])}
        self.adopted.kept += len(kept)
        self.adopted.duplicates += len(records) - len(kept)
        if not records:
            return
        sight = self._look_up(records)
        repeats = {
            one.reference: any(other.record.arrival < one.arrival for other in sight.neighbours[one.reference])
            for one in records
        }
        self.adopted.flagged_now += sum(repeats[reference] for reference in kept)
        alone = [one.reference for one in records if one.reference not in kept and not repeats[one.reference]]
        originals = [_original(events[reference].verdict) for reference in alone]
        # One that came before the fill cannot be found, whatever the settings.
        there = self._read(sorted(set(originals)))
        self.adopted.kept_now += sum(reference in there for reference in originals)


def _original(flag: Verdict) -> bytes:
    return reference_in(flag.duplicate_of or "", flag.duplicate_of_version)


def _stored_verdict(one: Stored) -> VerdictEvent:
    """Return the verdict of a version that has one; ``UnreadableEvent`` where it is missing after all."""
    return VerdictEvent.read(one.verdict or b"")


def _is_kept(event: VerdictEvent) -> bool:
    return event.verdict.outcome == "unique"


def _reference(one: Version | Tombstone) -> bytes:
    return one.reference if isinstance(one, Tombstone) else one.record.reference
