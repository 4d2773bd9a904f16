"""A batch that is judged again from the start, or given up, in a store that writes it at once."""

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import lmdb
import pytest

from consumer.judge.attempt import AttemptFindings
from consumer.judge.detector import Detector
from consumer.judge.known_originals import FLOOD_COPIES_MIN
from consumer.judge.tally import Tally
from consumer.model.errors import Abandoned
from consumer.model.histogram import Histogram
from storage.errors import StoreUnavailable
from storage.interface import Store
from storage.lmdb import LmdbOptions, LmdbStore
from storage.lmdb.environment import Transaction
from storage.memory import MemoryStore
from storage.records import Record, Tombstone, Version
from storage.watched import WatchedStore
from tests.builders import RETRACTED, TIME_MS, make_tombstone
from tests.chaos.near_articles import SETTINGS, near_group, new_text, version_of

Batch = Sequence[Version | Tombstone]
OPTIONS = LmdbOptions(durability="process", clock=lambda: TIME_MS)
SMALL = LmdbOptions(durability="process", map_bytes=1 << 16, clock=lambda: TIME_MS)
FLOODED = new_text(random.Random("attempts flood"))
FLOOD = [version_of(f"flooded.{number}", FLOODED, number) for number in range(FLOOD_COPIES_MIN + 6)]
GROUP = near_group(random.Random("attempts"), "article", 4, 1_000)
ALONE = version_of("alone", new_text(random.Random("attempts alone")), 2_000)
BEFORE: list[Batch] = [FLOOD[:1], FLOOD[1 : FLOOD_COPIES_MIN - 1]]
"""Judged first: the original of a flood that is about to begin."""
BATCH: Batch = [
    # Copies of a known original, one of them the first of the flood.
    *FLOOD[FLOOD_COPIES_MIN - 1 : FLOOD_COPIES_MIN + 2],
    make_tombstone("gone", event=RETRACTED.encoded),
    # Of a group one is kept, the others become its duplicates, and their postings are removed.
    *GROUP,
    ALONE,
    # A replay.
    FLOOD[1],
]
STEPS = ("retract", "create", "add", "settle duplicates", "settle kept")
"""The calls that write, of a batch like this one."""


def detector_of(store: Store) -> Detector:
    """Return a judge whose clock stands still, so that equal verdicts have equal bytes."""
    return Detector(store, SETTINGS, lambda: TIME_MS)


def judged(store: Store, *batches: Batch) -> Detector:
    """Return the judge that has judged these batches."""
    detector = detector_of(store)
    for batch in batches:
        detector.judge(batch)
    return detector


def counts(tally: Tally) -> dict[str, object]:
    """Return everything that a tally has counted, but for times."""
    found: dict[str, object] = {}
    for each in fields(tally):
        value = getattr(tally, each.name)
        if isinstance(value, Histogram):
            found[each.name] = (value.cumulative(), pytest.approx(value.total))
        elif not each.name.endswith("_s"):
            found[each.name] = value
    return found


def memory(detector: Detector) -> list[object]:
    """Return what a judge remembers from batch to batch."""
    known: Any = detector.known
    return [dict(known._copies), list(known._originals.items()), dict(known._by_key)]


def contents(store: Store) -> list[object]:
    """Return what a store holds, with the rows of everything that was judged here."""
    versions = [arrived for batch in [*BEFORE, BATCH] for arrived in batch if isinstance(arrived, Version)]
    keys = sorted({key for version in versions for key in version.record.keys})
    return [sorted(map(repr, store.scan())), [row.packed for row in store.look_up(keys)]]


def commits(store: LmdbStore) -> int:
    """Return how often something was committed to the store."""
    number: int = store._environment._env.info()["last_txnid"]
    return number


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    """A store whose map need not grow."""
    store = LmdbStore.open(tmp_path / "store", OPTIONS)
    yield store
    store.close()


class FullMaps:
    """Makes the map full once, in the ``at``-th write of a batch, after that has written."""

    def __init__(self, store: LmdbStore, at: int) -> None:
        environment: Any = store._environment
        self._environment = environment
        self._write = environment.write
        environment.write = self
        self._left = at
        self.attempts = 0

    def __call__(self, work: Callable[[Transaction], object]) -> object:
        """Write; or run a batch, whose first call this is."""
        is_batch = not self._environment.in_batch

        def written(transaction: Transaction) -> object:
            self.attempts += is_batch
            answer = work(transaction)
            if not is_batch:
                self._left -= 1
                if self._left == -1:
                    raise lmdb.MapFullError("made full")
            return answer

        return self._write(written)


def test_a_batch_is_one_commit(store: LmdbStore) -> None:
    """Also one with copies of known originals, a retraction, duplicates and replays."""
    detector = judged(store, *BEFORE)
    before = commits(store)
    detector.judge(BATCH)
    assert commits(store) == before + 1
    detector.judge(BATCH)
    assert commits(store) == before + 1


def test_it_judges_as_in_memory_while_the_map_grows(tmp_path: Path) -> None:
    """The verdicts, what is stored, counted and remembered, with several attempts in most batches."""
    store = LmdbStore.open(tmp_path / "store", SMALL)
    other = MemoryStore(clock=lambda: TIME_MS)
    chance = random.Random("attempts growing")
    groups = [near_group(chance, f"group {number}", 3, 3_000 + 3 * number) for number in range(60)]
    batches: list[Batch] = [*BEFORE, BATCH, *([v for group in groups[n : n + 20] for v in group] for n in (0, 20, 40))]
    detector, in_memory = detector_of(store), detector_of(other)
    size = store._environment._map_bytes()
    for batch in batches:
        assert detector.judge(batch) == in_memory.judge(batch)
    assert store._environment._map_bytes() >= 4 * size
    assert contents(store) == contents(other)
    assert counts(detector.tally) == counts(in_memory.tally)
    assert memory(detector) == memory(in_memory)
    store.close()


@pytest.mark.parametrize("at", range(len(STEPS)), ids=STEPS)
def test_a_map_that_is_full_in_any_step_repeats_the_batch(store: LmdbStore, at: int) -> None:
    """From the start; nothing of the first attempt is stored, counted or remembered."""
    other = MemoryStore(clock=lambda: TIME_MS)
    in_memory = judged(other, *BEFORE)
    detector = judged(store, *BEFORE)
    full = FullMaps(store, at)
    before = commits(store)
    assert detector.judge(BATCH) == in_memory.judge(BATCH)
    assert full.attempts == 2
    assert commits(store) == before + 1
    assert contents(store) == contents(other)
    assert counts(detector.tally) == counts(in_memory.tally)
    assert (detector.tally.floods, detector.tally.flood_copies, detector.tally.known_copies) == (1, 2, 3)
    assert memory(detector) == memory(in_memory)


def test_those_are_all_the_steps(store: LmdbStore) -> None:
    """Else the map is not tried full in each."""
    detector = judged(store, *BEFORE)
    full = FullMaps(store, len(STEPS))
    detector.judge(BATCH)
    assert full.attempts == 1


def test_a_batch_that_is_interrupted_between_any_two_calls_leaves_nothing(tmp_path: Path) -> None:
    """The same judge, or one after a restart, judges it as if for the first time; nothing counts twice."""
    other = MemoryStore(clock=lambda: TIME_MS)
    expected = judged(other, *BEFORE).judge(BATCH)
    interrupted = 0
    for calls in range(100):
        store = LmdbStore.open(tmp_path / f"store {calls}", OPTIONS)
        left: list[None] = []

        def proceed(left: list[None] = left) -> None:
            if not left:
                raise Abandoned("asked to end")
            left.pop()

        detector = detector_of(WatchedStore.interruptible(store, proceed))
        left += [None] * 1_000
        for batch in BEFORE:
            detector.judge(batch)
        before = (commits(store), contents(store), counts(detector.tally), memory(detector))
        left[:] = [None] * calls
        try:
            events = detector.judge(BATCH)
        except Abandoned:
            interrupted += 1
            assert (commits(store), contents(store), counts(detector.tally), memory(detector)) == before
            left += [None] * 1_000
            events = (detector if calls % 2 else detector_of(store)).judge(BATCH)
            assert detector.tally.replays == calls % 2
        assert events == expected
        assert contents(store) == contents(other)
        store.close()
        if interrupted == calls:
            break
    assert interrupted == calls > len(STEPS)


def test_what_failed_is_counted_when_it_is_repeated() -> None:
    """Time is counted in any case, articles once."""

    class Away(MemoryStore):
        def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
            raise StoreUnavailable("away")

    detector = detector_of(Away())
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            detector.judge([ALONE])
    assert (detector.tally.versions, detector.tally.row_reads, detector.tally.candidates.count) == (0, 0, 0)
    assert min(detector.tally.look_up_s, detector.tally.settle_s) > 0


def test_threads_that_keep_what_they_counted_lose_nothing() -> None:
    """Several threads judge with one judge, and each batch counts once."""
    detector, threads, batches = detector_of(MemoryStore(clock=lambda: TIME_MS)), 4, 500
    learned = AttemptFindings()
    learned.tally.versions = learned.tally.kept = learned.tally.row_reads = 1
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda _: detector.keep(learned), range(threads * batches)))
    finally:
        sys.setswitchinterval(before_s)
    tally = detector.tally
    assert (tally.versions, tally.kept, tally.row_reads) == 3 * (threads * batches,)
