"""``judge()`` tells whether something nearly the same has come before.

The order of the steps is what makes it safe among any number of processes, crashes and replays:

    records        what came, and when, written once
    known copies   copies of an original that this process knows are settled without postings
    postings       written before anything is looked up, so that of two near versions one sees the other
    look up, read  who is near, and what has been decided about them
    decide         in memory, in order of arrival
    settle         by compare-and-set: duplicates, then claims, the kept ones last; where one fails, what
                   is written there is the truth, and the rest is decided anew
    remove         postings of what became a duplicate: only kept versions are matched against

``docs/protocol.md`` says why each step stands where it does; the protocol tests run this code through every
interleaving of small cases.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from consumer.fingerprint import TextKind
from consumer.judge import events
from consumer.judge.candidates import (
    CROWDED_VERIFICATIONS_MAX,
    SOUGHT_POSTINGS_MAX,
    Candidates,
    Probe,
    find_candidates,
    places_to_seek,
    probe_keys,
)
from consumer.judge.comparison import Compared, Comparison, Lineup, not_released
from consumer.judge.decision import Decisions, Duplicate, Neighbour, State, decide
from consumer.judge.known_originals import FLOOD_COPIES_MIN, KNOWN_ORIGINALS_MAX, KnownOriginals
from consumer.judge.settings import JudgeSettings
from consumer.judge.tally import Cost, Tally
from consumer.judge.versions import Came, tombstone
from consumer.model.verdict import VerdictEvent, outcome_of
from storage.errors import StoreError
from storage.interface import Store
from storage.postings import KeyedCode, Row
from storage.records import Record, Stored, Tombstone, Version

SETTLE_ROUNDS_MAX = 1_000
LOOK_UP_PROBES_MAX = 16
"""Articles looked up at once: the rows of so many are held in memory, each of them up to the store's cap."""


class _Sight(NamedTuple):
    """What a look-up showed for a batch: what was read, who is near each version, and for whom it was cut short."""

    stored: Mapping[bytes, Stored]
    neighbours: Mapping[bytes, list[Neighbour]]
    truncated: frozenset[bytes]


@dataclass(slots=True)
class Detector:
    """Judges batches of versions and tombstones against a store. One per process; not for several threads.

    ``clock`` gives the time of decision in milliseconds.
    """

    store: Store
    settings: JudgeSettings
    clock: Callable[[], int]
    known: KnownOriginals = field(default_factory=lambda: KnownOriginals(KNOWN_ORIGINALS_MAX))
    tally: Tally = field(default_factory=Tally)

    def judge(self, batch: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        """Return the verdict of each in the batch, as it is stored; the ids of a batch differ.

        Errors are the store's; after one, or after a crash anywhere, the same batch may be judged again.
        """
        with self.tally.settling():
            tombstones = self.store.retract([one for one in batch if isinstance(one, Tombstone)])
            stored = self.store.create([one for one in batch if isinstance(one, Version)])
            answers = {tombstone.reference: VerdictEvent.read(tombstone.event) for tombstone in tombstones}
            answers |= self._judge_versions(stored)
        self.tally.retractions += len(tombstones)
        return [answers[_reference(one)] for one in batch]

    def retraction(self, article_id: str, came: Came, place: bytes) -> Tombstone:
        """Return the tombstone of an article that is retracted now; ``place`` is as for ``tombstone``."""
        return tombstone(article_id, came, place, self.clock())

    def sweep(self, before_ms: int, versions_max: int) -> int:
        """Remove up to ``versions_max`` versions that arrived before this from the store; return how many were there.

        Errors are the store's. A version that another process removed first does not count.
        """
        return self.store.sweep(before_ms, versions_max)

    def cost(self) -> Cost:
        """Return what judging has cost so far; the difference of two is what a batch has cost."""
        return self.tally.cost()

    @property
    def plan_name(self) -> str:
        """The block plan that articles are looked up by."""
        return self.settings.plan.name

    def query(self, version: Version) -> tuple[list[Neighbour], bool]:
        """The kept versions that this one would be flagged for, best first, and whether the search was cut.

        Stores nothing. An article of a source that is never flagged would be flagged for none.
        """
        reference = version.record.reference
        sight = self._look_up([version.record], {reference: Stored(version.record, None, None)})
        states = {other: _state(one) for other, one in sight.stored.items()}
        near = [other for other in sight.neighbours[reference] if states[other.record.reference] is State.KEPT]
        never = frozenset({reference} if self._never_flagged(version.record) else ())
        decisions = decide([version.record], {reference: near}, states, never)
        return [match for one in decisions.duplicates for match in one.matches], bool(sight.truncated)

    def _judge_versions(self, stored: Sequence[Stored]) -> dict[bytes, VerdictEvent]:
        settled = {one.record.reference: VerdictEvent.read(one.verdict) for one in stored if one.verdict is not None}
        pending = [one for one in stored if one.verdict is None]
        self.tally.versions += len(stored)
        self.tally.replays += len(settled)
        self.tally.without_keywords += sum(one.record.kind == TextKind.EMPTY for one in stored)
        copies = self._settle_known_copies(pending)
        rest = [one.record for one in pending if one.record.reference not in copies]
        decided = self._judge_rest(rest)
        verdicts = settled | copies | decided
        duplicates = [one.record for one in stored if verdicts[one.record.reference].verdict.outcome != "unique"]
        self.tally.duplicates += len(duplicates)
        self.tally.kept += len(stored) - len(duplicates)
        # A known copy got no postings, and deleting what is not there is not free in every store.
        self.store.remove([record for record in duplicates if record.reference not in copies])
        return verdicts

    def _settle_known_copies(self, pending: Sequence[Stored]) -> dict[bytes, VerdictEvent]:
        """Settle what repeats an original that this process knows; return the verdicts as stored."""
        with self.tally.looking_up():
            plan = self._known_copies(pending)
        return self._settle_copies(plan)

    def _known_copies(self, pending: Sequence[Stored]) -> list[Duplicate]:
        hints = {
            one.record.reference: self.known.recall(one.record, self.settings.verifications_max)
            for one in pending
            if not self._never_flagged(one.record)
        }
        asked = {reference for found in hints.values() for reference in found}
        asked |= {reference for reference, found in hints.items() if found}
        if not asked:
            return []
        fresh = self._read(sorted(asked))
        kept = {reference for reference, one in fresh.items() if one.verdict and _is_kept(one.verdict)}
        for reference in {reference for found in hints.values() for reference in found} - kept:
            self.known.forget(reference)
        plan: list[Duplicate] = []
        compared: list[int] = []
        similarities: list[float] = []
        for reference, found in hints.items():
            one = fresh.get(reference)
            if one is None or one.verdict is not None:
                continue
            originals = [fresh[other] for other in found if other in kept]
            compared.append(len(originals))
            near = self._compare(one, originals, similarities)
            decisions = decide(
                [one.record], {reference: near}, dict.fromkeys(kept, State.KEPT) | {reference: State.PENDING}
            )
            plan.extend(decisions.duplicates)
        self.tally.verifications.add(compared)
        self.tally.similarities.add(similarities)
        return plan

    def _settle_copies(self, plan: Sequence[Duplicate]) -> dict[bytes, VerdictEvent]:
        written = self._write([(one.record, self._duplicate_event(one, frozenset())) for one in plan])
        self._remember(plan)
        lost = [one.record.reference for one in plan if one.record.reference not in written]
        self.tally.known_copies += len(written)
        return written | {reference: _stored_verdict(one) for reference, one in self._read(lost).items()}

    def _judge_rest(self, records: Sequence[Record]) -> dict[bytes, VerdictEvent]:
        if not records:
            return {}
        self.store.add(records)
        with self.tally.looking_up():
            sight = self._look_up(records, {})
        return self._settle(records, sight)

    def _look_up(self, records: Sequence[Record], given: Mapping[bytes, Stored]) -> _Sight:
        """Find who is near each record. All are read afresh, to see what has ended them by now, but those ``given``."""
        found: list[Candidates] = []
        for start in range(0, len(records), LOOK_UP_PROBES_MAX):
            found += self._candidates(records[start : start + LOOK_UP_PROBES_MAX])
        wanted = {reference for one in found for reference in one.references}
        wanted |= {record.reference for record in records} - given.keys()
        stored = self._read(sorted(wanted)) | dict(given)
        return self._sight(records, found, stored)

    def _candidates(self, records: Sequence[Record]) -> list[Candidates]:
        probes = [Probe(record, probe_keys(record, self.settings)) for record in records]
        keys = sorted({key for probe in probes for key in probe.keys})
        rows = dict(zip(keys, self.store.look_up(keys), strict=True))
        sought = self._seek(records, rows)
        found = find_candidates(probes, rows, self.settings, sought)
        sizes = {key: len(row.postings) for key, row in rows.items()}
        self.tally.row_reads += sum(len(probe.keys) for probe in probes)
        self.tally.postings_read += sum(sizes[key] for probe in probes for key in probe.keys)
        self.tally.crowded_rows += sum(rows[key].truncated for probe in probes for key in probe.keys)
        self.tally.crowded_articles += sum(one.truncated and one.found > CROWDED_VERIFICATIONS_MAX for one in found)
        self.tally.candidates.add([one.found for one in found])
        self.tally.suspects.add([one.suspects for one in found])
        return found

    def _seek(self, records: Sequence[Record], rows: Mapping[bytes, Row]) -> dict[KeyedCode, Row]:
        """Postings with the codes of these records that may lie beyond the cap of rows that were cut."""
        if not any(row.truncated for row in rows.values()):
            return {}
        places = sorted({place for record in records for place in places_to_seek(record, rows, self.settings)})
        return dict(zip(places, self.store.seek(places, SOUGHT_POSTINGS_MAX), strict=True)) if places else {}

    def _sight(self, records: Sequence[Record], found: Sequence[Candidates], stored: Mapping[bytes, Stored]) -> _Sight:
        neighbours: dict[bytes, list[Neighbour]] = {}
        verifications: list[int] = []
        similarities: list[float] = []
        # One version may be a candidate of every article of the batch: its verdict is looked at once.
        matchable = Lineup([one for one in stored.values() if _state(one) is not State.DUPLICATE])
        for record, candidates in zip(records, found, strict=True):
            if record.reference not in stored:
                raise StoreError(
                    f"{record.id!r} was swept away while it was judged: the window is shorter than the lag"
                )
            compared = matchable.compare(stored[record.reference], candidates.references, self.settings)
            verifications.append(compared.others)
            similarities += compared.similarities
            neighbours[record.reference] = self._neighbours(compared)
        self.tally.verifications.add(verifications)
        self.tally.similarities.add(similarities)
        truncated = frozenset(record.reference for record, one in zip(records, found, strict=True) if one.truncated)
        self.tally.truncated += len(truncated)
        return _Sight(stored, neighbours, truncated)

    def _compare(self, one: Stored, others: Sequence[Stored], similarities: list[float]) -> list[Neighbour]:
        """Which of these are near; how similar each is goes to ``similarities``."""
        compared = Lineup(others).compare(one, [other.record.reference for other in others], self.settings)
        similarities += compared.similarities
        return self._neighbours(compared)

    def _neighbours(self, compared: Compared) -> list[Neighbour]:
        return [
            Neighbour(other.record, comparison.distance, self._similarity(comparison))
            for other, comparison in compared.near
        ]

    def _settle(self, records: Sequence[Record], sight: _Sight) -> dict[bytes, VerdictEvent]:
        """Decide and write until nothing fails; return the verdicts of the records as stored."""
        near = {other.record.reference for others in sight.neighbours.values() for other in others}
        stored = {reference: sight.stored[reference] for reference in near | sight.neighbours.keys()}
        never = frozenset(reference for reference, one in stored.items() if self._never_flagged(one.record))
        for _ in range(SETTLE_ROUNDS_MAX):
            states = {reference: _state(one) for reference, one in stored.items()}
            decisions = decide(records, _not_released(sight.neighbours, stored), states, never)
            written = self._write_in_order(decisions, sight.truncated)
            if written is not None:
                self._remember(decisions.duplicates)
                return {
                    record.reference: written.get(record.reference) or _stored_verdict(stored[record.reference])
                    for record in records
                }
            stored |= self._read(sorted(stored))
        raise StoreError(f"a batch of {len(records)} lost a compare-and-set {SETTLE_ROUNDS_MAX} times in a row")

    def _write_in_order(self, decisions: Decisions, truncated: frozenset[bytes]) -> dict[bytes, VerdictEvent] | None:
        """Write the decisions stage by stage; None as soon as somebody else was first anywhere."""
        written: dict[bytes, VerdictEvent] = {}
        now = self.clock()
        kept = [
            (record, events.kept_event(record, truncated=record.reference in truncated, decided_ms=now))
            for record in decisions.kept
        ]
        stages = (
            [(one.record, self._duplicate_event(one, truncated)) for one in decisions.duplicates],
            [(one.record, self._duplicate_event(one, truncated)) for one in decisions.claims],
            kept,
        )
        for stage in stages:
            done = self._write(stage)
            if len(done) < len(stage):
                return None
            written |= done
        return written

    def _write(self, verdicts: Sequence[tuple[Record, VerdictEvent]]) -> dict[bytes, VerdictEvent]:
        """Settle these; return those that are stored now as asked."""
        if not verdicts:
            return {}
        outcome = self.store.settle([(record.reference, event.encoded) for record, event in verdicts])
        self.tally.lost_compare_and_sets += outcome.count(False)
        return {record.reference: event for (record, event), done in zip(verdicts, outcome, strict=True) if done}

    def _remember(self, duplicates: Sequence[Duplicate]) -> None:
        """Know what was repeated, and whether it is a flood by now."""
        for one in duplicates:
            copies = self.known.remember(one.of.record)
            self.tally.floods += copies == FLOOD_COPIES_MIN
            self.tally.flood_copies += copies >= FLOOD_COPIES_MIN

    def _read(self, references: Sequence[bytes]) -> dict[bytes, Stored]:
        """What is stored under these references; those that are not there are left out."""
        if not references:
            return {}
        self.tally.record_reads += len(references)
        return {one.record.reference: one for one in self.store.read(references) if one is not None}

    def _duplicate_event(self, duplicate: Duplicate, truncated: frozenset[bytes]) -> VerdictEvent:
        cut = duplicate.record.reference in truncated
        return events.duplicate_event(duplicate, truncated=cut, decided_ms=self.clock())

    def _never_flagged(self, record: Record) -> bool:
        return self.settings.rule(record.source).flag == "never"

    def _similarity(self, comparison: Comparison) -> float | None:
        return comparison.similarity if self.settings.verify else None


def _reference(one: Version | Tombstone) -> bytes:
    return one.reference if isinstance(one, Tombstone) else one.record.reference


def _not_released(
    neighbours: Mapping[bytes, list[Neighbour]], stored: Mapping[bytes, Stored]
) -> Mapping[bytes, list[Neighbour]]:
    """The neighbours as of what was read last: one that was pending at the look-up may have been released since."""
    return {
        reference: [other for other in others if not_released(stored[reference], stored[other.record.reference])]
        for reference, others in neighbours.items()
    }


def _stored_verdict(one: Stored) -> VerdictEvent:
    """Return the verdict that another process, or an earlier run, has settled."""
    if one.verdict is None:
        raise StoreError(f"the verdict of {one.record.id!r} was lost to another, and now there is none")
    return VerdictEvent.read(one.verdict)


def _state(one: Stored) -> State:
    if one.verdict is None:
        return State.PENDING
    return State.KEPT if _is_kept(one.verdict) else State.DUPLICATE


def _is_kept(event: bytes) -> bool:
    return outcome_of(event) == "unique"
