"""A batch in an LMDB store: one transaction, all of it or nothing, again from the start where the map is full."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from storage.errors import StoreDamaged, StoreFull, StoreRefused
from storage.interface import Store
from storage.lmdb import LmdbOptions, LmdbStore
from storage.records import StoredVersion, Version
from storage.watched import Ending, StoreCalled, StoreConnected, StoreRepeated, TimedOperation, WatchedStore
from tests.builders import make_version
from tests.unit.storage.processes import SMALL, batch_of, run_together

ROOMY = LmdbOptions(durability="process", clock=lambda: 0)
VERSIONS = batch_of(0, 0, 3)
REFERENCES = [version.record.reference for version in VERSIONS]
VERDICTS = [(reference, b"verdict") for reference in REFERENCES]


class Reports:
    """What a store reported: calls only."""

    def __init__(self) -> None:
        self.calls: list[tuple[TimedOperation, Ending]] = []
        self.seconds: list[float] = []

    def __call__(self, what: StoreCalled | StoreConnected | StoreRepeated) -> None:
        """Note it."""
        assert isinstance(what, StoreCalled)
        self.calls.append((what.operation, what.ending))
        self.seconds.append(what.seconds)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    """A store whose map need not grow."""
    store = LmdbStore.open(tmp_path / "store", ROOMY)
    yield store
    store.close()


def commits(store: LmdbStore) -> int:
    """How often something was committed to the store."""
    number: int = store._environment._env.info()["last_txnid"]
    return number


def map_bytes(store: LmdbStore) -> int:
    """How large the store's map is."""
    return store._environment._map_bytes()


def write_all(store: Store, versions: list[Version]) -> None:
    """What a batch writes."""
    store.create(versions)
    store.add([version.record for version in versions])
    store.settle([(version.record.reference, b"verdict") for version in versions])
    store.remove([versions[0].record])


def hold_the_lock(path: Path, held_s: float) -> None:
    """Write a batch that takes this long."""
    store = LmdbStore.open(path, ROOMY)

    def work() -> None:
        store.create(batch_of(1, 0))
        time.sleep(held_s)

    store.together(work)
    store.close()


def test_all_calls_are_one_commit(store: LmdbStore) -> None:
    """So there is one flush; by themselves they are four."""
    before = commits(store)
    store.together(lambda: write_all(store, VERSIONS))
    assert commits(store) == before + 1
    write_all(store, batch_of(0, 1))
    assert commits(store) == before + 5


def test_others_see_nothing_before_the_end(store: LmdbStore) -> None:
    """Another thread reads the store as it was, without waiting; and a thread that writes waits."""
    with ThreadPoolExecutor(2) as threads:

        def work() -> list[object]:
            write_all(store, VERSIONS)
            waiting.append(threads.submit(store.create, batch_of(0, 1)))
            seen = threads.submit(lambda: [store.read(REFERENCES), store.look_up(VERSIONS[1].record.keys)[0].packed])
            return [*seen.result(60), waiting[0].done()]

        waiting: list[Future[list[StoredVersion]]] = []
        assert store.together(work) == [[None, None, None], b"", False]
        assert len(waiting[0].result(60)) == 20
        assert all(threads.submit(store.read, REFERENCES).result(60))


@pytest.mark.parametrize("error", [ValueError("a defect"), StoreDamaged("damaged"), KeyboardInterrupt(), SystemExit(3)])
def test_an_error_leaves_nothing(store: LmdbStore, error: BaseException) -> None:
    """Whatever ends the work, nothing of it is written, and it can be repeated."""

    def work() -> None:
        write_all(store, VERSIONS)
        raise error

    before = commits(store)
    with pytest.raises(type(error)) as raised:
        store.together(work)
    assert raised.value is error
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert commits(store) == before
    assert store.stats()[:5] == (0, 0, 0, 0, 0)
    store.together(lambda: write_all(store, VERSIONS))
    assert store.stats()[:2] == (3, 3)


def fail_in_a_call(store: LmdbStore) -> None:
    """Ask for something that the store refuses, in the middle of a call that has written already."""
    wide = make_version("wide", b"wide", code_bytes=16)
    store.add([VERSIONS[0].record])
    store.add([wide.record])


def fail_in_a_batch(store: LmdbStore) -> None:
    """Fail within a batch that is part of another."""

    def work() -> None:
        store.create(VERSIONS)
        raise StoreRefused("after all")

    store.together(work)


@pytest.mark.parametrize("fail", [fail_in_a_call, fail_in_a_batch])
def test_a_call_that_failed_ends_the_batch_although_the_work_goes_on(
    store: LmdbStore, fail: Callable[[LmdbStore], None]
) -> None:
    """What that call may have written already must not stay."""

    def work() -> str:
        store.create(VERSIONS)
        with pytest.raises(StoreRefused):
            fail(store)
        return "done"

    with pytest.raises(StoreRefused, match=r"cannot take one of 128 bits|after all"):
        store.together(work)
    assert store.stats()[:4] == (0, 0, 0, 0)
    assert store.together(lambda: "done") == "done"


def test_a_full_map_starts_the_work_again(tmp_path: Path) -> None:
    """From a store without anything of the attempt before, as often as the map has to grow."""
    reports = Reports()
    inner = LmdbStore.open(tmp_path / "store", SMALL, reports)
    store = WatchedStore(inner, reports)
    found: list[list[object]] = []

    def work() -> int:
        found.append([*store.read(REFERENCES), *store.look_up(VERSIONS[1].record.keys)[0].postings])
        for number in range(40):
            write_all(store, batch_of(0, number))
        return len(found)

    before, size = commits(inner), map_bytes(inner)
    attempts = store.together(work)
    assert attempts >= 3
    assert map_bytes(inner) == size << attempts - 1
    assert found == [[None] * 3] * attempts
    assert commits(inner) == before + 1
    assert inner.stats()[:2] == (800, 800)
    # A call that was cut short is not one that failed: it was made again.
    assert {ending for _, ending in reports.calls} == {"ok"}
    assert [operation for operation, _ in reports.calls].count("commit") == 1
    inner.close()


def test_the_work_cannot_prevent_that_it_starts_again(tmp_path: Path) -> None:
    """LMDB refuses every further call of a transaction in which the map was full."""
    store = LmdbStore.open(tmp_path / "store", SMALL)
    attempts = []

    def work() -> None:
        attempts.append(True)
        with suppress(BaseException):
            store.create(batch_of(0, 0, 400))

    store.together(work)
    assert len(attempts) > 1
    assert store.stats().versions == 400
    store.close()


def test_a_map_at_its_limit_is_full_and_nothing_is_written(tmp_path: Path) -> None:
    """The error is reported once, as one of the commit: each call was only asked to start again."""
    reports = Reports()
    store = LmdbStore.open(tmp_path / "store", replace(SMALL, map_bytes_max=1 << 20), reports)

    def work() -> None:
        for number in range(200):
            write_all(store, batch_of(0, number))

    with pytest.raises(StoreFull, match=r"has reached its limit of 1048576 bytes\. Raise the limit"):
        store.together(work)
    assert reports.calls == [("commit", "full")]
    assert store.stats()[:5] == (0, 0, 0, 0, 0)
    store.together(lambda: write_all(store, VERSIONS))
    assert reports.calls[1:] == [("commit", "ok")]
    store.close()


def test_another_thread_makes_the_map_grow_meanwhile(tmp_path: Path) -> None:
    """It waits for the batch, whose calls do not wait for it."""
    store = LmdbStore.open(tmp_path / "store", SMALL)
    gate = store._environment._gate
    begun = Event()

    def grow() -> None:
        with gate.alone():
            pass

    with ThreadPoolExecutor(1) as threads:

        def work() -> bool:
            if not begun.is_set():
                begun.set()
                growing.append(threads.submit(grow))
                while not gate._is_shut:
                    time.sleep(0.001)
            store.create(VERSIONS)
            store.read(REFERENCES)
            return growing[0].done()

        growing: list[Future[None]] = []
        assert not store.together(work)
        growing[0].result(60)
    store.close()


def test_a_batch_within_that_of_another_store_starts_only_itself_again(tmp_path: Path) -> None:
    """A map that is full in the outer store is that store's to grow."""
    outer = LmdbStore.open(tmp_path / "outer", SMALL)
    inner = LmdbStore.open(tmp_path / "inner", SMALL)
    attempts: list[str] = []

    def within() -> None:
        attempts.append("inner")
        inner.create(VERSIONS)
        outer.create(batch_of(0, 0, 400))

    def work() -> None:
        attempts.append("outer")
        inner.together(within)

    size = map_bytes(inner)
    outer.together(work)
    assert attempts.count("inner") == attempts.count("outer") > 1
    assert map_bytes(inner) == size
    assert (inner.stats().versions, outer.stats().versions) == (3, 400)
    outer.close()
    inner.close()


def test_a_width_of_postings_that_was_not_written_is_not_remembered(store: LmdbStore) -> None:
    """The next batch may write the first postings, with fingerprints of another width."""
    narrow, wide = make_version("narrow", b"narrow"), make_version("wide", b"wide", code_bytes=16)

    def work() -> None:
        store.add([narrow.record])
        store.look_up(narrow.record.keys)
        raise StoreRefused("after all")

    with pytest.raises(StoreRefused, match="after all"):
        store.together(work)
    store.add([wide.record])
    assert [row.postings["reference"].tolist() for row in store.look_up(wide.record.keys[:1])] == [
        [wide.record.reference]
    ]
    with pytest.raises(StoreRefused):
        store.add([narrow.record])


def test_for_reading_only_there_are_no_batches(store: LmdbStore, tmp_path: Path) -> None:
    """As there are no writes."""
    store.create(VERSIONS)
    store.close()
    looking = LmdbStore.open(tmp_path / "store", replace(ROOMY, readonly=True))
    with pytest.raises(StoreRefused, match="opened for reading only"):
        looking.together(lambda: looking.read(REFERENCES))
    assert all(looking.read(REFERENCES))
    looking.close()


def test_waiting_for_another_process_is_time_of_the_commit(tmp_path: Path) -> None:
    """And the time within the work is not: its calls are reported by themselves."""
    reports = Reports()
    store = LmdbStore.open(tmp_path / "store", ROOMY, reports)
    held_s = 0.5
    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(run_together, hold_the_lock, tmp_path / "store", [held_s])
        deadline_s = time.monotonic() + 60
        while time.monotonic() < deadline_s and max(reports.seconds, default=0) < held_s / 2:
            store.together(lambda: time.sleep(0.1))
        other.result(60)
    assert held_s / 2 < max(reports.seconds) < held_s + 30
    assert sorted(reports.seconds)[len(reports.seconds) // 4] < 0.1
    with pytest.raises(ValueError, match="a defect"):
        store.together(lambda: int("a defect"))
    assert set(reports.calls) == {("commit", "ok")}
    store.close()
