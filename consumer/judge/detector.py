"""``judge()`` decides whether something nearly the same has come before.

The order of the steps makes it safe among any number of processes, crashes and replays:

    records        what came, and when, written once
    known copies   copies of an original that this process knows are settled without postings
    postings       written before anything is looked up, so that of two near versions one sees the other
    look up, read  what is near, and what has been decided about it
    decide         in memory, in order of arrival
    settle         by compare-and-set: duplicates, then claims, the kept ones last; where one fails, what
                   is written there is the truth, and the rest is decided again
    remove         postings of what became a duplicate: only kept versions are matched against

``docs/protocol.md`` says why the steps are in this order; the protocol tests run this code through every
interleaving of small cases.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from consumer.fingerprint import TextKind
from consumer.judge import events
from consumer.judge.comparison import not_released
from consumer.judge.decision import Decisions, Duplicate, Neighbour, State, decide, state_of
from consumer.judge.known_copies import KnownCopies
from consumer.judge.known_originals import KNOWN_ORIGINALS_MAX, KnownOriginals
from consumer.judge.search import Search, Sight
from consumer.judge.settings import JudgeSettings
from consumer.judge.tally import Cost, Tally
from consumer.judge.versions import ArrivedAt, tombstone
from consumer.model.verdict import VerdictEvent
from storage.errors import StoreError
from storage.interface import Store
from storage.records import Record, Stored, Tombstone, Version

SETTLE_ROUNDS_MAX: Final = 1_000
"""How often a batch is decided again after a lost compare-and-set before it fails."""


@dataclass(slots=True)
class Detector:
    """Judges batches of versions and tombstones against a store. One per process; not thread-safe.

    ``clock`` gives the time of decision in milliseconds.
    """

    store: Store
    settings: JudgeSettings
    clock: Callable[[], int]
    known: KnownOriginals = field(default_factory=lambda: KnownOriginals(KNOWN_ORIGINALS_MAX))
    tally: Tally = field(default_factory=Tally)
    _search: Search = field(init=False, repr=False)
    _copies: KnownCopies = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Build the parts that share the store and the tally."""
        self._search = Search(self.store, self.settings, self.tally)
        self._copies = KnownCopies(self.known, self._search)

    def judge(self, batch: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        """Return the verdict of each in the batch, as it is stored; the ids of a batch differ.

        Raises the store's errors. After one, or after a crash anywhere, the same batch may be judged again.
        """
        with self.tally.settling():
            tombstones = self.store.retract([each for each in batch if isinstance(each, Tombstone)])
            stored = self.store.create([each for each in batch if isinstance(each, Version)])
            answers = {tombstone.reference: VerdictEvent.read(tombstone.event) for tombstone in tombstones}
            answers |= self._judge_versions(stored)
        self.tally.retractions += len(tombstones)
        return [answers[_reference(each)] for each in batch]

    def query(self, version: Version) -> tuple[list[Neighbour], bool]:
        """Return the kept versions that this one would be flagged for, best first, and whether the search was cut.

        Stores nothing. An article of a source that is never flagged has none. Raises the store's errors.
        """
        record = version.record
        sight = self._search.look_up([record], {record.reference: Stored(record, None, None)})
        states = {reference: state_of(stored) for reference, stored in sight.stored.items()}
        near = [other for other in sight.neighbours[record.reference] if states[other.record.reference] is State.KEPT]
        never = frozenset({record.reference} if self._never_flagged(record) else ())
        decisions = decide([record], {record.reference: near}, states, never)
        return [match for duplicate in decisions.duplicates for match in duplicate.matches], bool(sight.truncated)

    def retraction(self, article_id: str, at: ArrivedAt, place: bytes) -> Tombstone:
        """Return the tombstone of an article that is retracted now; ``place`` is as for ``tombstone``."""
        return tombstone(article_id, at, place, self.clock())

    def sweep(self, before_ms: int, versions_max: int) -> int:
        """Remove at most ``versions_max`` versions that arrived earlier; return how many were removed.

        Raises the store's errors.
        """
        return self.store.sweep(before_ms, versions_max)

    def cost(self) -> Cost:
        """Return what judging has cost so far; two of them tell what the batches between have cost."""
        return self.tally.cost()

    @property
    def plan_name(self) -> str:
        """The block plan that articles are looked up by."""
        return self.settings.plan.name

    def _judge_versions(self, stored: Sequence[Stored]) -> dict[bytes, VerdictEvent]:
        pending = [each for each in stored if each.verdict is None]
        settled = {each.record.reference: _stored_verdict(each) for each in stored if each.verdict is not None}
        self.tally.versions += len(stored)
        self.tally.replays += len(settled)
        self.tally.without_keywords += sum(each.record.kind == TextKind.EMPTY for each in stored)
        copies = self._settle_known_copies(pending)
        rest = [each.record for each in pending if each.record.reference not in copies]
        decided = self._judge_rest(rest)
        verdicts = settled | copies | decided
        duplicates = [each.record for each in stored if verdicts[each.record.reference].verdict.outcome != "unique"]
        self.tally.duplicates += len(duplicates)
        self.tally.kept += len(stored) - len(duplicates)
        # A known copy got no postings, and deleting what is not there is not free in every store.
        self.store.remove([record for record in duplicates if record.reference not in copies])
        return verdicts

    def _settle_known_copies(self, pending: Sequence[Stored]) -> dict[bytes, VerdictEvent]:
        """Settle copies of originals that this process knows; return their verdicts as stored."""
        with self.tally.looking_up():
            copies = self._copies.find([each for each in pending if not self._never_flagged(each.record)])
        return self._settle_copies(copies)

    def _settle_copies(self, copies: Sequence[Duplicate]) -> dict[bytes, VerdictEvent]:
        written = self._write([(copy.record, self._duplicate_event(copy, frozenset())) for copy in copies])
        self._copies.remember(copies)
        lost = [copy.record.reference for copy in copies if copy.record.reference not in written]
        self.tally.known_copies += len(written)
        return written | {reference: _stored_verdict(stored) for reference, stored in self._read(lost).items()}

    def _judge_rest(self, records: Sequence[Record]) -> dict[bytes, VerdictEvent]:
        if not records:
            return {}
        self.store.add(records)
        with self.tally.looking_up():
            sight = self._look_up(records)
        return self._settle(records, sight)

    def _look_up(self, records: Sequence[Record]) -> Sight:
        return self._search.look_up(records, {})

    def _settle(self, records: Sequence[Record], sight: Sight) -> dict[bytes, VerdictEvent]:
        """Decide and write until nothing fails; return the verdicts of the records as stored."""
        near = {other.record.reference for others in sight.neighbours.values() for other in others}
        stored = {reference: sight.stored[reference] for reference in near | sight.neighbours.keys()}
        never = frozenset(reference for reference, each in stored.items() if self._never_flagged(each.record))
        for _ in range(SETTLE_ROUNDS_MAX):
            states = {reference: state_of(each) for reference, each in stored.items()}
            decisions = decide(records, _not_released(sight.neighbours, stored), states, never)
            written = self._write_in_order(decisions, sight.truncated)
            if written is not None:
                self._copies.remember(decisions.duplicates)
                return {
                    record.reference: written.get(record.reference) or _stored_verdict(stored[record.reference])
                    for record in records
                }
            stored |= self._read(sorted(stored))
        raise StoreError(f"a batch of {len(records)} lost a compare-and-set {SETTLE_ROUNDS_MAX} times in a row")

    def _write_in_order(self, decisions: Decisions, truncated: frozenset[bytes]) -> dict[bytes, VerdictEvent] | None:
        """Write duplicates, claims, and then the kept ones; return None where another process settled any first."""
        written: dict[bytes, VerdictEvent] = {}
        now = self.clock()
        kept = [
            (record, events.kept_event(record, truncated=record.reference in truncated, decided_ms=now))
            for record in decisions.kept
        ]
        stages = (
            [(duplicate.record, self._duplicate_event(duplicate, truncated)) for duplicate in decisions.duplicates],
            [(claim.record, self._duplicate_event(claim, truncated)) for claim in decisions.claims],
            kept,
        )
        for stage in stages:
            done = self._write(stage)
            if len(done) < len(stage):
                return None
            written |= done
        return written

    def _write(self, verdicts: Sequence[tuple[Record, VerdictEvent]]) -> dict[bytes, VerdictEvent]:
        """Settle these verdicts by compare-and-set; return those that are stored now."""
        if not verdicts:
            return {}
        outcome = self.store.settle([(record.reference, event.encoded) for record, event in verdicts])
        self.tally.lost_compare_and_sets += outcome.count(False)
        return {record.reference: event for (record, event), done in zip(verdicts, outcome, strict=True) if done}

    def _read(self, references: Sequence[bytes]) -> dict[bytes, Stored]:
        return self._search.read(references)

    def _duplicate_event(self, duplicate: Duplicate, truncated: frozenset[bytes]) -> VerdictEvent:
        cut = duplicate.record.reference in truncated
        return events.duplicate_event(duplicate, truncated=cut, decided_ms=self.clock())

    def _never_flagged(self, record: Record) -> bool:
        return self.settings.rule(record.source).flag == "never"


def _reference(arrived: Version | Tombstone) -> bytes:
    return arrived.reference if isinstance(arrived, Tombstone) else arrived.record.reference


def _not_released(
    neighbours: Mapping[bytes, list[Neighbour]], stored: Mapping[bytes, Stored]
) -> Mapping[bytes, list[Neighbour]]:
    """Drop pairs that a person has released since the look-up: a version that was pending then may be released now."""
    return {
        reference: [other for other in others if not_released(stored[reference], stored[other.record.reference])]
        for reference, others in neighbours.items()
    }


def _stored_verdict(stored: Stored) -> VerdictEvent:
    """Return the verdict that another process, or this one before a lost compare-and-set, has settled."""
    if stored.verdict is None:
        raise StoreError(f"another process settled the verdict of {stored.record.id!r}, and now the store has none")
    return VerdictEvent.read(stored.verdict)
