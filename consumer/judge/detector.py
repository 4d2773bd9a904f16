"""The judge of a run: judges each batch in a separate attempt, and keeps its findings.

``consumer.judge.attempt`` has the protocol.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock

from typing_extensions import override

from consumer.judge.attempt import Attempt, AttemptFindings, BankMatcher
from consumer.judge.common_hashes import CommonHashes
from consumer.judge.judge import Judge, QueryResult
from consumer.judge.known_originals import FLOOD_COPIES_MIN, KNOWN_ORIGINALS_MAX, KnownCopies, KnownOriginals
from consumer.judge.near_misses import NearMisses
from consumer.judge.part_search import PartSearch
from consumer.judge.plan_choice import larger_plan
from consumer.judge.search import LOOK_UP_BYTES_MAX, LookUpSize, Search
from consumer.judge.seen_texts import TextMemory
from consumer.judge.settings import JudgeSettings
from consumer.judge.stretches import Stretches
from consumer.judge.tally import Cost, Tally
from consumer.judge.verdict_cells import VerdictCells
from consumer.judge.versions import ArrivalTime, tombstone
from consumer.model.verdict import VerdictEvent
from storage.interface import Store
from storage.records import Tombstone, Version


@dataclass(slots=True)
class Detector(Judge):
    """The judge of a run.

    A store may undo a batch or have it judged again from the start (``Store.together``). So each attempt has its own
    tally and findings, which the detector keeps once the batch is written. This also lets several threads judge at
    the same time if the store allows it.

    ``clock`` returns the time of decision in milliseconds. ``look_up_bytes_max`` limits the bytes of postings that one
    look-up holds in memory. Texts are remembered for ``seen_ms`` after they were last seen; 0 turns this off.
    ``common`` turns on the search for shared parts, ``near_misses`` the search for pairs just below the threshold.
    ``with_bank_matches`` adds matches of known texts; by default it adds none.
    """

    store: Store
    settings: JudgeSettings
    clock: Callable[[], int]
    known: KnownOriginals = field(default_factory=lambda: KnownOriginals(KNOWN_ORIGINALS_MAX))
    tally: Tally = field(default_factory=Tally)
    look_up_bytes_max: int = LOOK_UP_BYTES_MAX
    seen_ms: int = 0
    common: CommonHashes | None = None
    near_misses: NearMisses | None = None
    with_bank_matches: BankMatcher = list
    look_up_size: LookUpSize = field(init=False, repr=False, default_factory=LookUpSize)
    lock: Lock = field(init=False, repr=False, default_factory=Lock)

    def attempt(self) -> Attempt:
        """Return an attempt to judge one batch, with its own tally and findings."""
        store, settings, findings = self.store, self.settings, AttemptFindings()
        tally = findings.tally
        cells = VerdictCells(store, tally)
        search = Search(store, settings, tally, cells, self.look_up_bytes_max, self.look_up_size, self.near_misses)
        return Attempt(
            store,
            settings,
            self.clock,
            findings,
            cells,
            search,
            KnownCopies(self.known, search, cells, settings.verifications_max),
            TextMemory(store, self.seen_ms, settings.window_ms, tally),
            PartSearch(store, cells, settings.window_ms, self.common, tally),
            Stretches(store, settings.stretches_max, tally),
            self.with_bank_matches,
        )

    def keep(self, findings: AttemptFindings) -> None:
        """Add the tally and findings of an attempt. Everything that the attempt wrote must be stored by then."""
        with self.lock:
            self.tally.add(findings.tally)
            for duplicate in findings.repeats:
                copies = self.known.remember(duplicate.of.record)
                self.tally.floods += copies == FLOOD_COPIES_MIN
                self.tally.flood_copies += copies >= FLOOD_COPIES_MIN
        if self.common is not None:
            self.common.note(findings.kept)

    @override
    def judge(self, batch: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        times = Tally()

        def work() -> tuple[AttemptFindings, list[VerdictEvent]]:
            attempt = self.attempt()
            try:
                return attempt.findings, attempt.judge(batch)
            finally:
                # Count the time of failed attempts too.
                times.look_up_s += attempt.tally.look_up_s
                attempt.tally.look_up_s = 0.0

        try:
            with times.settling():
                findings, events = self.store.together(work)
        finally:
            with self.lock:
                self.tally.add(times)
        self.keep(findings)
        return events

    def query(self, versions: Sequence[Version]) -> list[QueryResult]:
        """Return the matches of each of these versions as if it arrived alone. Stores nothing.

        All are looked up together, so pass no more than a batch. Articles that are never flagged, by the rule of their
        source or by a bank, have no matches. Several threads may query at the same time. Raises the store's errors.
        """
        attempt = self.attempt()
        try:
            return _query_distinct(attempt, versions)
        finally:
            with self.lock:
                self.tally.add(attempt.tally)

    @override
    def retraction(self, article_id: str, arrived_at: ArrivalTime, origin: bytes) -> Tombstone:
        return tombstone(article_id, arrived_at, origin, self.clock())

    @override
    def sweep(self, before_ms: int, versions_max: int) -> int:
        return self.store.sweep(before_ms, versions_max)

    @override
    def forget_texts(self, newest_ms: int, texts_max: int) -> int:
        return self.store.forget_seen(newest_ms - self.seen_ms, texts_max) if self.seen_ms else 0

    @override
    def newest_ms(self, before_ms: int) -> int | None:
        return self.store.newest_ms(before_ms)

    @override
    def cost(self) -> Cost:
        return self.tally.cost()

    @property
    @override
    def plan_name(self) -> str:
        return self.settings.plan.name

    @property
    @override
    def larger_plan(self) -> str | None:
        return larger_plan(self.settings.plan, self.settings.max_distance)


def _query_distinct(attempt: Attempt, versions: Sequence[Version]) -> list[QueryResult]:
    """Query versions, those with the same reference one after another.

    An attempt distinguishes versions by reference. Versions of one id with the same text have the same, but they may
    come from sources with different rules.
    """
    rest = list(enumerate(versions))
    results: dict[int, QueryResult] = {}
    while rest:
        places = {version.record.reference: place for place, version in reversed(rest)}
        together = sorted(places.values())
        results |= zip(together, attempt.query([versions[place] for place in together]), strict=True)
        rest = [(place, version) for place, version in rest if place not in results]
    return [results[place] for place in range(len(versions))]
