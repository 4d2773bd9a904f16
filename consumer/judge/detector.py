"""The judge's protocol: ``judge()`` decides whether each version of a batch repeats one that arrived earlier.

The order of the steps makes it safe among any number of processes, crashes and replays:

    records        store each version and its arrival; what is stored never changes
    known copies   settle copies of an original that this process remembers, without postings
    postings       write the postings of the rest before any look-up: of two near versions at least one sees the other
    look up, read  find what is near, and what has been decided about it
    decide         in memory, in order of arrival
    settle         write the verdicts by compare-and-set: duplicates, then claims, the kept ones last; where one fails,
                   read again what is stored, and decide the rest again
    remove         delete the postings of duplicates: only kept versions are matched against

``docs/protocol.md`` says why the steps are in this order; the protocol tests run this code through every
interleaving of small cases.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from typing_extensions import override

from consumer.fingerprint import TextKind
from consumer.judge import events
from consumer.judge.comparison import not_released
from consumer.judge.decision import Decisions, Duplicate, Neighbour, State, decide, state_of
from consumer.judge.judge import Judge
from consumer.judge.known_copies import KnownCopies
from consumer.judge.known_originals import KNOWN_ORIGINALS_MAX, KnownOriginals
from consumer.judge.search import Neighbourhood, Search
from consumer.judge.settings import JudgeSettings
from consumer.judge.tally import Cost, Tally
from consumer.judge.verdict_cells import VerdictCells, verdict_of
from consumer.judge.versions import ArrivedAt, tombstone
from consumer.model.verdict import VerdictEvent
from storage.errors import StoreError
from storage.interface import Store
from storage.records import Record, Stored, Tombstone, Version

SETTLE_ROUNDS_MAX: Final = 1_000
"""How often a batch is decided again after a lost compare-and-set before it fails."""


class QueryResult(NamedTuple):
    """The kept versions that an article would be flagged for, best first, and whether the search was cut short."""

    matches: list[Neighbour]
    truncated: bool


@dataclass(slots=True)
class Detector(Judge):
    """The judge of a run.

    A store may undo a batch, or have it judged again from the start (``Store.together``). So each attempt counts and
    learns apart, and that is kept once the batch is written: ``repeats`` are the duplicates that it has found.

    ``clock`` gives the time of decision in milliseconds. ``search`` and ``cells`` are the parts that read and write the
    store; a fill uses them too (``consumer.migration.adopting``).
    """

    store: Store
    settings: JudgeSettings
    clock: Callable[[], int]
    known: KnownOriginals = field(default_factory=lambda: KnownOriginals(KNOWN_ORIGINALS_MAX))
    tally: Tally = field(default_factory=Tally)
    cells: VerdictCells = field(init=False, repr=False)
    search: Search = field(init=False, repr=False)
    copies: KnownCopies = field(init=False, repr=False)
    repeats: list[Duplicate] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        """Build the parts that share the store and the tally."""
        self.cells = VerdictCells(self.store, self.tally)
        self.search = Search(self.store, self.settings, self.tally, self.cells)
        self.copies = KnownCopies(self.known, self.search, self.cells, self.tally, self.settings.verifications_max)

    @override
    def judge(self, batch: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        def work() -> tuple[Detector, list[VerdictEvent]]:
            attempt = self.attempt()
            try:
                return attempt, attempt.judge_once(batch)
            except BaseException:
                self.tally.look_up_s += attempt.tally.look_up_s
                raise

        with self.tally.settling():
            attempt, events = self.store.together(work)
            self.keep(attempt)
        return events

    def attempt(self) -> "Detector":
        """Return a judge for one attempt to judge a batch: what it counts and learns is kept apart."""
        attempt = copy(self)
        attempt.tally, attempt.repeats = Tally(), []
        attempt.cells = replace(self.cells, tally=attempt.tally)
        attempt.search = replace(self.search, tally=attempt.tally, cells=attempt.cells)
        attempt.copies = replace(self.copies, tally=attempt.tally, cells=attempt.cells, search=attempt.search)
        return attempt

    def keep(self, attempt: "Detector") -> None:
        """Keep what an attempt has counted and learned. Called once all that it wrote is stored."""
        self.tally.add(attempt.tally)
        self.copies.remember(attempt.repeats)

    def judge_once(self, batch: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        """Judge a batch, within ``together`` of the store."""
        tombstones = self.store.retract([arrived for arrived in batch if isinstance(arrived, Tombstone)])
        stored = self.store.create([arrived for arrived in batch if isinstance(arrived, Version)])
        answers = {tombstone.reference: VerdictEvent.read(tombstone.event) for tombstone in tombstones}
        answers |= self._judge_versions(stored)
        self.tally.retractions += len(tombstones)
        return [answers[arrived.reference] for arrived in batch]

    def query(self, version: Version) -> QueryResult:
        """Return what this version would be flagged for. Stores nothing.

        An article of a source that is never flagged has no matches. Raises the store's errors.
        """
        record = version.record
        found = self.search.look_up([record], {record.reference: Stored(record, None, None)})
        states = {reference: state_of(stored) for reference, stored in found.stored.items()}
        near = [other for other in found.neighbours[record.reference] if states[other.record.reference] is State.KEPT]
        never = frozenset({record.reference} if self._never_flagged(record) else ())
        decisions = decide([record], {record.reference: near}, states, never)
        matches = [match for duplicate in decisions.duplicates for match in duplicate.matches]
        return QueryResult(matches, bool(found.truncated))

    @override
    def retraction(self, article_id: str, arrived_at: ArrivedAt, origin: bytes) -> Tombstone:
        return tombstone(article_id, arrived_at, origin, self.clock())

    @override
    def sweep(self, before_ms: int, versions_max: int) -> int:
        return self.store.sweep(before_ms, versions_max)

    @override
    def cost(self) -> Cost:
        return self.tally.cost()

    @property
    @override
    def plan_name(self) -> str:
        return self.settings.plan.name

    def _judge_versions(self, stored: Sequence[Stored]) -> dict[bytes, VerdictEvent]:
        pending = [version for version in stored if version.verdict is None]
        replayed = {version.record.reference: verdict_of(version) for version in stored if version.verdict is not None}
        self.tally.versions += len(stored)
        self.tally.replays += len(replayed)
        self.tally.without_keywords += sum(version.record.kind == TextKind.EMPTY for version in stored)
        copies = self._settle_known_copies(pending)
        rest = [version.record for version in pending if version.record.reference not in copies]
        verdicts = replayed | copies
        if rest:
            verdicts |= self._decide_and_settle(rest, self._post_and_look_up(rest))
        duplicates = [
            version.record for version in stored if verdicts[version.record.reference].verdict.outcome != "unique"
        ]
        self.tally.duplicates += len(duplicates)
        self.tally.kept += len(stored) - len(duplicates)
        # A known copy got no postings, and deleting what is not there is not free in every store.
        self.store.remove([record for record in duplicates if record.reference not in copies])
        return verdicts

    def _settle_known_copies(self, pending: Sequence[Stored]) -> dict[bytes, VerdictEvent]:
        """Settle copies of originals that this process remembers; return their verdicts as stored."""
        with self.tally.looking_up():
            copies = self.copies.find([version for version in pending if not self._never_flagged(version.record)])
        return self._settle_copies(copies)

    def _settle_copies(self, copies: Sequence[Duplicate]) -> dict[bytes, VerdictEvent]:
        settled = self.cells.settle([(copy.record, self._duplicate_event(copy, frozenset())) for copy in copies])
        self.repeats += copies
        self.tally.known_copies += len(settled.written)
        return settled.written | self.cells.verdicts(settled.lost)

    def _post_and_look_up(self, records: Sequence[Record]) -> Neighbourhood:
        """Write the postings of the records, and find what is near."""
        self.store.add(records)
        with self.tally.looking_up():
            return self.search.look_up(records, {})

    def _decide_and_settle(self, records: Sequence[Record], near: Neighbourhood) -> dict[bytes, VerdictEvent]:
        """Decide and write until nothing fails; return the verdicts of the records as stored."""
        others = {other.record.reference for neighbours in near.neighbours.values() for other in neighbours}
        stored = {reference: near.stored[reference] for reference in others | near.neighbours.keys()}
        never = frozenset(reference for reference, version in stored.items() if self._never_flagged(version.record))
        for _ in range(SETTLE_ROUNDS_MAX):
            states = {reference: state_of(version) for reference, version in stored.items()}
            decisions = decide(records, _not_released(near.neighbours, stored), states, never)
            written = self._settle_in_order(decisions, near.truncated)
            if written is not None:
                self.repeats += decisions.duplicates
                return {
                    record.reference: written.get(record.reference) or verdict_of(stored[record.reference])
                    for record in records
                }
            stored |= self.cells.read(sorted(stored))
        raise StoreError(f"a batch of {len(records)} lost a compare-and-set {SETTLE_ROUNDS_MAX} times in a row")

    def _settle_in_order(self, decisions: Decisions, truncated: frozenset[bytes]) -> dict[bytes, VerdictEvent] | None:
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
            settled = self.cells.settle(stage)
            if settled.lost:
                return None
            written |= settled.written
        return written

    def _duplicate_event(self, duplicate: Duplicate, truncated: frozenset[bytes]) -> VerdictEvent:
        return events.duplicate_event(
            duplicate, truncated=duplicate.record.reference in truncated, decided_ms=self.clock()
        )

    def _never_flagged(self, record: Record) -> bool:
        return self.settings.rule(record.source).flag == "never"


def _not_released(
    neighbours: Mapping[bytes, list[Neighbour]], stored: Mapping[bytes, Stored]
) -> Mapping[bytes, list[Neighbour]]:
    """Drop pairs that a person has released since the look-up: a version that was pending then may be released now."""
    return {
        reference: [other for other in others if not_released(stored[reference], stored[other.record.reference])]
        for reference, others in neighbours.items()
    }
