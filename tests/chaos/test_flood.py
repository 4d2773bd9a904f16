"""A flood of copies of one article: the last costs no more than the first, and leaves no trace in the index."""

import gc
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

import pytest

from consumer.judge.detector import Detector
from storage.clock import now_ms
from storage.interface import Answer, Store
from storage.records import Record, Version
from tests.chaos.near_articles import SETTINGS, new_text, version_of
from tests.contract.conftest import Kind

SHORT, LONG = 10_000, 200_000
SIZES = [SHORT, pytest.param(LONG, marks=[pytest.mark.load, pytest.mark.timeout(480)])]
BATCH = 100
BATCHES_COMPARED = 10
SLOWER_MAX = 2.0
SLOWER_BESIDE_OTHERS_MAX = 4.0
"""Of the least that batches take; where the cost grows with the copies, the last take many times as long."""

_log = logging.getLogger(__name__)


class Cost(NamedTuple):
    """What a batch took: processor time of this process, and time on the clock, in which servers work as well."""

    processor_s: float
    wall_s: float


def flood(copies: int) -> Iterator[list[Version]]:
    """This many copies of one article, batch by batch."""
    text = new_text(random.Random("flood"))
    for start in range(0, copies, BATCH):
        yield [version_of(f"copy {number}", text, number) for number in range(start, start + BATCH)]


def judged(detector: Detector, batches: Iterable[Sequence[Version]]) -> tuple[list[Cost], Counter[str]]:
    """The cost of each batch, and how often each outcome came."""
    costs: list[Cost] = []
    outcomes: Counter[str] = Counter()
    gc.collect()
    gc.disable()
    try:
        for batch in batches:
            began = Cost(time.process_time(), time.perf_counter())
            events = detector.judge(batch)
            costs.append(Cost(time.process_time() - began.processor_s, time.perf_counter() - began.wall_s))
            outcomes.update(event.verdict.outcome for event in events)
    finally:
        gc.enable()
    return costs, outcomes


def medians(costs: Sequence[Cost]) -> Cost:
    """A pause of the machine in one of the batches says nothing of the flood."""
    return Cost(median(cost.processor_s for cost in costs), median(cost.wall_s for cost in costs))


def _words(costs: Sequence[Cost]) -> str:
    processor_s, wall_s = medians(costs)
    return f"{processor_s * 1e3:.2f} ms of processor time and {wall_s * 1e3:.2f} ms for {BATCH} (median)"


@pytest.mark.parametrize("copies", SIZES)
def test_the_last_thousand_copies_cost_what_the_first_did(kind: Kind, store: Store, copies: int) -> None:
    """They take about the same time; one is kept, and only it has postings."""
    if kind.remote and copies == SHORT:
        copies //= 4
    costs, outcomes = judged(Detector(store, SETTINGS, now_ms), flood(copies))
    first, last = medians(costs[:BATCHES_COMPARED]), medians(costs[-BATCHES_COMPARED:])
    for place in range(0, len(costs), len(costs) // 4):
        _log.info("batches from copy %6d on: %s", place * BATCH, _words(costs[place : place + BATCHES_COMPARED]))
    _log.info("the last thousand of %d copies: %s", copies, _words(costs[-BATCHES_COMPARED:]))
    if copies > SHORT:
        # Closely, and on the clock, where no other test runs at the same time.
        assert last.processor_s <= SLOWER_MAX * first.processor_s
        assert last.wall_s <= SLOWER_MAX * first.wall_s
    began_s, ended_s = (
        min(cost.processor_s for cost in some) for some in (costs[:BATCHES_COMPARED], costs[-BATCHES_COMPARED:])
    )
    assert ended_s <= SLOWER_BESIDE_OTHERS_MAX * began_s
    assert outcomes == {"unique": 1, "duplicate": copies - 1}
    assert store.stats().postings == len(new_text(random.Random("flood")).keys())


class _Counting:
    """Passes everything on to a store, and counts for how many records postings were written or deleted."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.posted = 0
        self.removed = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def together(self, work: Callable[[], Answer]) -> Answer:
        """Count only what the last attempt does: the others leave nothing."""
        before = (self.posted, self.removed)

        def attempt() -> Answer:
            self.posted, self.removed = before
            return work()

        return self._store.together(attempt)

    def add(self, records: Sequence[Record]) -> None:
        """Count them."""
        self.posted += len(records)
        self._store.add(records)

    def remove(self, records: Sequence[Record]) -> None:
        """Count them."""
        self.removed += len(records)
        self._store.remove(records)

    def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
        """Count those that are removed meanwhile."""
        self.removed += len(removing)
        return self._store.settle(verdicts, removing)


def test_copies_of_a_known_original_never_get_postings(store: Store) -> None:
    """Beyond the batch that the original came in, no posting is written, so none has to be deleted."""
    counting = _Counting(store)
    judged(Detector(counting, SETTINGS, now_ms), flood(10 * BATCH))  # type: ignore[arg-type]  # it has all a store has
    assert (counting.posted, counting.removed) == (BATCH, BATCH - 1)
