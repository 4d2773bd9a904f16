"""The judge's protocol: ``Attempt.judge`` decides whether each version of a batch repeats one that arrived earlier.

The order of the steps makes the protocol safe with any number of processes, crashes and replays:

    records        store each version with its arrival and the known texts it repeats; a stored record never changes.
                   Content that ended and is delivered again is stored as another version (``stretches.py``)
    known copies   find copies of originals that this process remembers; the copies get no postings
    postings       write the postings of the rest before any look-up: of two near versions at least one sees the other
    look up, read  find near versions and their verdicts
    decide         in memory, in order of arrival
    settle         write the verdicts by compare-and-set: duplicates and claims first, kept versions last; if one
                   fails, read the versions again, and decide again
    remove         while kept versions are written, delete the postings of duplicates, which are never matched
    note           remember the texts beyond the window if configured; this memory was read before deciding

``docs/contributing/protocol.md`` says why the steps are in this order; the protocol tests run this code through every
interleaving of small cases.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from consumer.fingerprint import TextKind
from consumer.judge.decision import Duplicate, Neighbour, Neighbourhood, VersionState, decide
from consumer.judge.events import bank_mentions, ended_before
from consumer.judge.judge import QueryResult
from consumer.judge.known_originals import KnownCopies
from consumer.judge.near_misses import NearMisses, near_miss_events
from consumer.judge.part_search import PartSearch
from consumer.judge.search import Search, swept_error
from consumer.judge.seen_texts import TextMemory
from consumer.judge.settings import JudgeSettings
from consumer.judge.situation import BatchWrites, Situation, decisions_of
from consumer.judge.stretches import Stretches
from consumer.judge.tally import Tally
from consumer.judge.verdict_cells import VerdictCells, verdict_of
from consumer.model.verdict import VerdictEvent
from consumer.text.counts import counted
from storage.errors import StoreError
from storage.interface import Store
from storage.records import Record, StoredVersion, Tombstone, Version

BankMatcher = Callable[[Sequence[Version]], Sequence[Version]]
"""Adds the known texts that versions repeat to their records. Called from any thread; must not use the store."""
SETTLE_ROUNDS_MAX: Final = 1_000
"""Limit on the rounds in which a batch is decided again after lost compare-and-sets; then the batch fails."""


@dataclass(slots=True)
class AttemptFindings:
    """The tally of an attempt, and the duplicates and kept versions that it found.

    These are valid once everything that the attempt wrote is stored.
    """

    tally: Tally = field(default_factory=Tally)
    repeats: list[Duplicate] = field(default_factory=list)
    kept: list[Record] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to judge a batch or answer a query, with the objects that read and write the store.

    These objects count into ``findings.tally``. Migrations use them to adopt verdicts
    (``consumer.migration.adopting``).
    """

    store: Store
    settings: JudgeSettings
    clock: Callable[[], int]
    findings: AttemptFindings
    cells: VerdictCells
    search: Search
    copies: KnownCopies
    seen_texts: TextMemory
    part_search: PartSearch
    stretches: Stretches
    with_bank_matches: BankMatcher = list

    @property
    def tally(self) -> Tally:
        """The counts and times of this attempt."""
        return self.findings.tally

    def judge(self, batch: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        """Return the stored verdict of each item of the batch. Must be called within ``Store.together``."""
        tombstones = self.store.retract([arrived for arrived in batch if isinstance(arrived, Tombstone)])
        versions = [arrived for arrived in batch if isinstance(arrived, Version)]
        created = self.stretches.create(self.part_search.without_common_anchors(self.with_bank_matches(versions)))
        verdicts = self._judge_versions(created.stored)
        answers = {tombstone.reference: VerdictEvent.read(tombstone.event) for tombstone in tombstones}
        for version, stored in zip(versions, created.stored, strict=True):
            event = verdicts[stored.record.reference]
            answers[version.reference] = (
                event.truncated() if stored.record.reference in created.limited_references else event
            )
        self.tally.retractions += len(tombstones)
        return [answers[arrived.reference] for arrived in batch]

    def query(self, versions: Sequence[Version]) -> list[QueryResult]:
        """Return the matches of each of these versions as if it arrived alone. Writes nothing."""
        versions = self.part_search.without_common_anchors(self.with_bank_matches(versions), are_posted=False)
        records = [version.record for version in versions]
        with self.tally.looking_up():
            near = self.search.look_up_unstored(records)
        sightings = self.seen_texts.sightings_of_unstored(records)
        matches = {record.reference: self._matches(record, near) for record in records}
        parts = self.part_search.find(records, near, are_posted=False)
        return [
            QueryResult(
                matches[record.reference],
                record.reference in near.truncated,
                any(near.state(other) is VersionState.PENDING for other in near.neighbours[record.reference]),
                sightings.get(record.reference),
                parts.get(record.reference, ()),
                ended_before(near.ended.get(record.reference, ())),
                bank_mentions(record),
            )
            for record in records
        ]

    def _matches(self, record: Record, near: Neighbourhood) -> list[Neighbour]:
        """Return the kept versions that an unstored version would be flagged for, best first."""
        neighbours = near.neighbours[record.reference]
        kept = [other for other in neighbours if near.state(other) is VersionState.KEPT]
        states = {record.reference: VersionState.PENDING} | {
            other.record.reference: VersionState.KEPT for other in kept
        }
        never_flagged = frozenset({record.reference} if self.settings.never_flags(record) else ())
        decisions = decide([record], {record.reference: kept}, states, never_flagged)
        return [match for duplicate in decisions.duplicates for match in duplicate.matches]

    def _judge_versions(self, stored: Sequence[StoredVersion]) -> dict[bytes, VerdictEvent]:
        pending = [version for version in stored if version.verdict is None]
        verdicts = {version.record.reference: verdict_of(version) for version in stored if version.verdict is not None}
        self.tally.versions += len(stored)
        self.tally.replays += len(verdicts)
        self.tally.without_keywords += sum(version.record.kind == TextKind.EMPTY for version in stored)
        # After a crash, a replayed duplicate may still have postings.
        stale = [version.record for version in stored if _is_duplicate(verdicts.get(version.record.reference))]
        recalled = self.seen_texts.recall([version.record for version in stored])
        near = Neighbourhood({}, {}, frozenset())
        if pending:
            situation = self._situation(pending)._replace(recalled=recalled)
            near = situation.near
            verdicts |= self._decide_and_settle(situation, stale)
        else:
            self.store.remove(stale)
        self.seen_texts.note(recalled)
        duplicates = sum(_is_duplicate(verdicts[version.record.reference]) for version in stored)
        self.tally.duplicates += duplicates
        self.tally.kept += len(stored) - duplicates
        settled = [event.verdict for event in verdicts.values()]
        self.tally.seen_before += sum(verdict.seen_before is not msgspec.UNSET for verdict in settled)
        self.tally.with_parts += sum(verdict.parts is not msgspec.UNSET for verdict in settled)
        self.tally.ended_before += sum(verdict.ended_before is not msgspec.UNSET for verdict in settled)
        if self.search.near_misses is not None:
            with_near_miss = self._near_misses(self.search.near_misses, stored, verdicts, near)
            self.tally.near_misses += len(with_near_miss)
            verdicts |= with_near_miss
        return verdicts

    def _near_misses(
        self,
        near_misses: NearMisses,
        stored: Sequence[StoredVersion],
        verdicts: Mapping[bytes, VerdictEvent],
        near: Neighbourhood,
    ) -> dict[bytes, VerdictEvent]:
        """Return the verdicts that have a near miss, with the near miss attached, by reference.

        ``stored`` is the batch before it was settled.
        """
        # The process that settled a version may have died before it sent the near miss.
        settled = [version.record for version in stored if version.verdict is not None]
        sampled = [record for record in settled if near_misses.samples(record)]
        before = self.search.look_up_unstored(sampled).missed if sampled else {}
        kept = {version.record.reference: version.record for version in stored if _is_kept(verdicts, version.record)}
        return near_miss_events(near_misses, verdicts, kept, near, before)

    def _situation(self, pending: Sequence[StoredVersion]) -> Situation:
        """Find copies of known originals; post the other versions, and find their neighbours and parts."""
        with self.tally.looking_up():
            copies = self.copies.find([version for version in pending if not self.settings.never_flags(version.record)])
        repeated = {copy.record.reference for copy in copies}
        rest = [version for version in pending if version.record.reference not in repeated]
        near = self._post_and_look_up(rest) if rest else Neighbourhood({}, {}, frozenset())
        parts = self.part_search.find([version.record for version in rest], near)
        return Situation(pending, copies, near, parts=parts)

    def _post_and_look_up(self, versions: Sequence[StoredVersion]) -> Neighbourhood:
        """Write the postings of these versions, and find their neighbours."""
        records = [version.record for version in versions]
        self.store.add(records)
        with self.tally.looking_up():
            created = {version.record.reference: version for version in versions}
            return self.search.look_up(records, created=created)

    def _decide_and_settle(self, situation: Situation, stale: Sequence[Record]) -> dict[bytes, VerdictEvent]:
        """Decide and write until no compare-and-set fails; return the stored verdicts of the pending versions.

        Postings of duplicates and of the ``stale`` records are deleted.
        """
        stored = situation.stored()
        never_flagged = frozenset(
            reference for reference, version in stored.items() if self.settings.never_flags(version.record)
        )
        for _ in range(SETTLE_ROUNDS_MAX):
            writes = decisions_of(situation, stored, never_flagged)
            sightings = self.seen_texts.sightings(situation.recalled, [claim.record for claim in writes.claims])
            with_remarks = situation._replace(seen_before=sightings).without_repeats(writes)
            written = self._settle_in_order(writes, with_remarks, stale)
            if written is not None:
                self.findings.repeats += (*situation.copies, *writes.duplicates)
                self.findings.kept += writes.kept
                verdicts = {
                    version.record.reference: written.get(version.record.reference)
                    or verdict_of(stored[version.record.reference])
                    for version in situation.pending
                }
                self._remove_rest(situation, writes, verdicts)
                return verdicts
            read = self.cells.read(sorted(stored))
            for version in situation.pending:
                if version.record.reference not in read:
                    raise swept_error(version.record)
            stored |= read
        versions = counted(len(situation.pending), "version")
        raise StoreError(f"a batch of {versions} lost a compare-and-set {SETTLE_ROUNDS_MAX} times in a row")

    def _settle_in_order(
        self, writes: BatchWrites, situation: Situation, stale: Sequence[Record]
    ) -> dict[bytes, VerdictEvent] | None:
        """Write duplicates and claims, then kept versions; return None if another process settled any of them first.

        The postings of the duplicates are deleted while the kept versions are written.
        """
        duplicates = (*writes.copies, *writes.duplicates, *writes.claims)
        first = self.cells.settle([(each.record, situation.duplicate_event(each, self.clock())) for each in duplicates])
        self.tally.known_copies += sum(copy.record.reference in first.written for copy in writes.copies)
        if first.lost:
            return None
        now = self.clock()
        kept = [(record, situation.kept_event(record, now)) for record in writes.kept]
        # Known copies are left out: they have no postings, and deleting nothing is not free in every store.
        last = self.cells.settle(kept, [*stale, *(duplicate.record for duplicate in writes.duplicates)])
        return None if last.lost else first.written | last.written

    def _remove_rest(self, situation: Situation, writes: BatchWrites, verdicts: Mapping[bytes, VerdictEvent]) -> None:
        """Delete the postings of versions that another process or an earlier round settled as duplicates."""
        done = {each.record.reference for each in (*situation.copies, *writes.duplicates)}
        records = [version.record for version in situation.pending if version.record.reference not in done]
        rest = [record for record in records if _is_duplicate(verdicts[record.reference])]
        if rest:
            self.store.remove(rest)


def _is_duplicate(event: VerdictEvent | None) -> bool:
    return event is not None and event.verdict.outcome != "unique"


def _is_kept(verdicts: Mapping[bytes, VerdictEvent], record: Record) -> bool:
    """Return whether the judge itself kept a version; a version that a person released was flagged before."""
    verdict = verdicts[record.reference].verdict
    return verdict.outcome == "unique" and verdict.released is msgspec.UNSET
