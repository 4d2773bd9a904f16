"""The judge's protocol: ``Attempt.judge`` decides whether each version of a batch repeats one that arrived earlier.

The order of the steps makes it safe among any number of processes, crashes and replays:

    records        store each version and its arrival, and which known texts it repeats; what is stored never changes.
                   Content that has ended and is delivered again is stored as another version (``stretches.py``)
    known copies   find copies of an original that this process remembers: they get no postings
    postings       write the postings of the rest before any look-up: of two near versions at least one sees the other
    look up, read  find what is near, and what has been decided about it
    decide         in memory, in order of arrival
    settle         write the verdicts by compare-and-set: duplicates and claims first, the kept ones last; where one
                   fails, read again what is stored, and decide the rest again
    remove         while the kept ones are written, delete the postings of duplicates: only kept versions are matched
                   against
    note           remember the texts beyond the window, where that is wanted; what is remembered was read before

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
from consumer.judge.search import Search, swept
from consumer.judge.seen_texts import TextMemory
from consumer.judge.settings import JudgeSettings
from consumer.judge.situation import BatchWrites, Situation, decisions_of
from consumer.judge.stretches import Stretches
from consumer.judge.tally import Tally
from consumer.judge.verdict_cells import VerdictCells, verdict_of
from consumer.model.verdict import VerdictEvent
from storage.errors import StoreError
from storage.interface import Store
from storage.records import Record, StoredVersion, Tombstone, Version

BankMatcher = Callable[[Sequence[Version]], Sequence[Version]]
"""Returns the versions with the known texts that they repeat in their records; from any thread, without the store."""
SETTLE_ROUNDS_MAX: Final = 1_000
"""How often a batch is decided again after a lost compare-and-set before it fails."""


@dataclass(slots=True)
class AttemptFindings:
    """What an attempt has counted and learned: the duplicates that it found, and the versions that it kept.

    It holds once everything that the attempt wrote is stored.
    """

    tally: Tally = field(default_factory=Tally)
    repeats: list[Duplicate] = field(default_factory=list)
    kept: list[Record] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to judge a batch, or to answer a query: the parts that read and write the store.

    They count into ``learned.tally``. A fill adopts verdicts with them, too (``consumer.migration.adopting``).
    """

    store: Store
    settings: JudgeSettings
    clock: Callable[[], int]
    learned: AttemptFindings
    cells: VerdictCells
    search: Search
    copies: KnownCopies
    seen_texts: TextMemory
    part_search: PartSearch
    stretches: Stretches
    with_bank_matches: BankMatcher = list

    @property
    def tally(self) -> Tally:
        """What this attempt has counted."""
        return self.learned.tally

    def judge(self, batch: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        """Return the verdict of each in the batch, as it is stored. Called within ``together`` of the store."""
        tombstones = self.store.retract([arrived for arrived in batch if isinstance(arrived, Tombstone)])
        versions = [arrived for arrived in batch if isinstance(arrived, Version)]
        created = self.stretches.create(self.part_search.posted(self.with_bank_matches(versions)))
        verdicts = self._judge_versions(created.stored)
        answers = {tombstone.reference: VerdictEvent.read(tombstone.event) for tombstone in tombstones}
        for version, stored in zip(versions, created.stored, strict=True):
            event = verdicts[stored.record.reference]
            answers[version.reference] = event.truncated() if stored.record.reference in created.limited else event
        self.tally.retractions += len(tombstones)
        return [answers[arrived.reference] for arrived in batch]

    def query(self, versions: Sequence[Version]) -> list[QueryResult]:
        """Return what each of these versions would be flagged for. Writes nothing."""
        records = [version.record for version in self.with_bank_matches(versions)]
        with self.tally.looking_up():
            found = self.search.look_up_unstored(records)
        said = self.seen_texts.said_of_unstored(records)
        matches = {record.reference: self._matches(record, found) for record in records}
        parts = self.part_search.find(records, found.references(), are_posted=False)
        return [
            QueryResult(
                matches[record.reference],
                record.reference in found.truncated,
                any(found.state(other) is VersionState.PENDING for other in found.neighbours[record.reference]),
                said.get(record.reference),
                parts.get(record.reference, ()),
                ended_before(found.ended.get(record.reference, ())),
                bank_mentions(record),
            )
            for record in records
        ]

    def _matches(self, record: Record, found: Neighbourhood) -> list[Neighbour]:
        """Return the kept versions that a version which is not stored would be flagged for, best first."""
        neighbours = found.neighbours[record.reference]
        near = [other for other in neighbours if found.state(other) is VersionState.KEPT]
        states = {record.reference: VersionState.PENDING} | {
            other.record.reference: VersionState.KEPT for other in near
        }
        never = frozenset({record.reference} if self.settings.never_flags(record) else ())
        decisions = decide([record], {record.reference: near}, states, never)
        return [match for duplicate in decisions.duplicates for match in duplicate.matches]

    def _judge_versions(self, stored: Sequence[StoredVersion]) -> dict[bytes, VerdictEvent]:
        pending = [version for version in stored if version.verdict is None]
        verdicts = {version.record.reference: verdict_of(version) for version in stored if version.verdict is not None}
        self.tally.versions += len(stored)
        self.tally.replays += len(verdicts)
        self.tally.without_keywords += sum(version.record.kind == TextKind.EMPTY for version in stored)
        # After a crash a replayed duplicate may still have postings.
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
        said = [event.verdict for event in verdicts.values()]
        self.tally.seen_before += sum(verdict.seen_before is not msgspec.UNSET for verdict in said)
        self.tally.with_parts += sum(verdict.parts is not msgspec.UNSET for verdict in said)
        self.tally.ended_before += sum(verdict.ended_before is not msgspec.UNSET for verdict in said)
        if self.search.near_misses is not None:
            missing = self._near_misses(self.search.near_misses, stored, verdicts, near)
            self.tally.near_misses += len(missing)
            verdicts |= missing
        return verdicts

    def _near_misses(
        self,
        near_misses: NearMisses,
        stored: Sequence[StoredVersion],
        verdicts: Mapping[bytes, VerdictEvent],
        near: Neighbourhood,
    ) -> dict[bytes, VerdictEvent]:
        """Return the verdicts that have a near miss, with it; ``stored`` is the batch as it was before."""
        # Whoever settled a version may have ended before its near miss was sent.
        settled = [version.record for version in stored if version.verdict is not None]
        drawn = [record for record in settled if near_misses.draws(record)]
        before = self.search.look_up_unstored(drawn).missed if drawn else {}
        kept = {version.record.reference: version.record for version in stored if _is_kept(verdicts, version.record)}
        return near_miss_events(near_misses, verdicts, kept, near, before)

    def _situation(self, pending: Sequence[StoredVersion]) -> Situation:
        """Find copies of known originals; write the postings of the rest, and find what is near them."""
        with self.tally.looking_up():
            copies = self.copies.find([version for version in pending if not self.settings.never_flags(version.record)])
        repeated = {copy.record.reference for copy in copies}
        rest = [version for version in pending if version.record.reference not in repeated]
        near = self._post_and_look_up(rest) if rest else Neighbourhood({}, {}, frozenset())
        parts = self.part_search.find([version.record for version in rest], near.references())
        return Situation(pending, copies, near, parts=parts)

    def _post_and_look_up(self, versions: Sequence[StoredVersion]) -> Neighbourhood:
        """Write the postings of these versions, and find what is near."""
        records = [version.record for version in versions]
        self.store.add(records)
        with self.tally.looking_up():
            created = {version.record.reference: version for version in versions}
            return self.search.look_up(records, created=created)

    def _decide_and_settle(self, found: Situation, stale: Sequence[Record]) -> dict[bytes, VerdictEvent]:
        """Decide and write until nothing fails; return the verdicts of the pending versions as stored.

        Postings of duplicates are deleted, and so are those of the ``stale`` records.
        """
        stored = found.stored()
        never = frozenset(
            reference for reference, version in stored.items() if self.settings.never_flags(version.record)
        )
        for _ in range(SETTLE_ROUNDS_MAX):
            decided = decisions_of(found, stored, never)
            said = self.seen_texts.said(found.recalled, [claim.record for claim in decided.claims])
            said_besides = found._replace(seen_before=said).without_repeats(decided)
            written = self._settle_in_order(decided, said_besides, stale)
            if written is not None:
                self.learned.repeats += (*found.copies, *decided.duplicates)
                self.learned.kept += decided.kept
                verdicts = {
                    version.record.reference: written.get(version.record.reference)
                    or verdict_of(stored[version.record.reference])
                    for version in found.pending
                }
                self._remove_rest(found, decided, verdicts)
                return verdicts
            read = self.cells.read(sorted(stored))
            for version in found.pending:
                if version.record.reference not in read:
                    raise swept(version.record)
            stored |= read
        count = len(found.pending)
        raise StoreError(f"a batch of {count} lost a compare-and-set {SETTLE_ROUNDS_MAX} times in a row")

    def _settle_in_order(
        self, decided: BatchWrites, found: Situation, stale: Sequence[Record]
    ) -> dict[bytes, VerdictEvent] | None:
        """Write duplicates and claims, and then the kept ones; return None where another process settled any first.

        The postings of the duplicates are deleted while the kept ones are written.
        """
        duplicates = (*decided.copies, *decided.duplicates, *decided.claims)
        first = self.cells.settle([(each.record, found.duplicate_event(each, self.clock())) for each in duplicates])
        self.tally.known_copies += sum(copy.record.reference in first.written for copy in decided.copies)
        if first.lost:
            return None
        now = self.clock()
        kept = [(record, found.kept_event(record, now)) for record in decided.kept]
        # A known copy has no postings, and deleting what is not there is not free in every store.
        last = self.cells.settle(kept, [*stale, *(duplicate.record for duplicate in decided.duplicates)])
        return None if last.lost else first.written | last.written

    def _remove_rest(self, found: Situation, decided: BatchWrites, verdicts: Mapping[bytes, VerdictEvent]) -> None:
        """Delete the postings of those that another process, or an earlier round, settled as duplicates."""
        done = {each.record.reference for each in (*found.copies, *decided.duplicates)}
        records = [version.record for version in found.pending if version.record.reference not in done]
        rest = [record for record in records if _is_duplicate(verdicts[record.reference])]
        if rest:
            self.store.remove(rest)


def _is_duplicate(event: VerdictEvent | None) -> bool:
    return event is not None and event.verdict.outcome != "unique"


def _is_kept(verdicts: Mapping[bytes, VerdictEvent], record: Record) -> bool:
    """Return whether a version repeats nothing by its judge: what a person released was flagged before."""
    verdict = verdicts[record.reference].verdict
    return verdict.outcome == "unique" and verdict.released is msgspec.UNSET
