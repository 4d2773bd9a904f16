"""Several processes and threads on one LMDB store: which one settles, a map that grows, readers that die."""

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Event

import pytest

from storage.errors import StoreFull
from storage.lmdb import LmdbStore
from storage.lmdb.environment import Transaction
from storage.lmdb.layout import BY_ARRIVAL, LAYOUT_KEY
from tests.builders import make_version
from tests.unit.storage.processes import (
    SMALL,
    batch_of,
    create_with,
    run_together,
    settle_with,
    shared_references,
    start_reader,
    write_batches,
)


def kill_a_reader(path: Path) -> int:
    """Start a process that reads, and kill it with -9 inside its transaction; its id."""
    process = start_reader(path)
    process.kill()
    process.join()
    assert process.pid is not None
    return process.pid


def write_without_end(store: LmdbStore, written: list[bytes]) -> None:
    """Create versions, and note each call that came back."""
    for number in count():
        store.create(batch_of(0, number))
        written += [version.record.reference for version in batch_of(0, number)]


def churn(store: LmdbStore, rounds: int) -> None:
    """Write and sweep, so that the file needs no more pages from round to round."""
    for number in range(rounds):
        store.create(batch_of(0, number, 10))
        assert store.sweep(1 << 60, 100) == 10


def test_of_two_processes_that_settle_the_same_versions_exactly_one_wins_each(tmp_path: Path) -> None:
    """Both get the stored verdict of every version."""
    store = LmdbStore.open(tmp_path, SMALL)
    store.create([make_version(f"shared {number}") for number in range(300)])
    verdicts = [b"one", b"two"]
    won = run_together(settle_with, tmp_path, verdicts)
    for first, second, stored in zip(*won, store.read(shared_references()), strict=True):
        assert stored is not None
        assert (first, second) == (stored.verdict == b"one", stored.verdict == b"two")
        assert first != second
    store.close()


def test_two_processes_that_create_the_same_versions_are_told_the_same(tmp_path: Path) -> None:
    """One arrival stands for each version, and both learn which."""
    store = LmdbStore.open(tmp_path, SMALL)
    first, second = run_together(create_with, tmp_path, [1, 2])
    assert first == second == [stored and stored.record for stored in store.read(shared_references())]
    assert store.stats()[:3] == (300, 0, 0)
    store.close()


def test_processes_that_make_a_store_at_once_share_it(tmp_path: Path) -> None:
    """The first process creates it, and all share that store and its lock file."""
    path = tmp_path / "store"
    first, *others = run_together(create_with, path, [1, 2, 3])
    assert others == [first, first]
    assert sorted(entry.name for entry in path.iterdir()) == ["data.mdb", "lock.mdb"]


def test_processes_share_a_map_that_each_of_them_grows(tmp_path: Path) -> None:
    """Three writers start at 64 kB, and none loses a version; a fourth that only looks on keeps up."""
    onlooker = LmdbStore.open(tmp_path, SMALL)
    scan = onlooker.scan()
    onlooker.create(batch_of(9, 0))
    next(scan)
    grown = run_together(write_batches, tmp_path, [0, 1, 2])
    assert min(grown) >= 1
    assert max(grown) >= 3
    references = [version.record.reference for writer in range(3) for n in range(50) for version in batch_of(writer, n)]
    assert all(onlooker.read(references))
    assert sum(1 for _ in scan) >= 19
    assert onlooker.stats().versions == len(references) + 20
    onlooker.close()


def test_threads_read_while_others_make_the_map_grow(tmp_path: Path) -> None:
    """No transaction uses the map when it is replaced."""
    store = LmdbStore.open(tmp_path, SMALL)

    def write(writer: int) -> None:
        for number in range(30):
            versions = batch_of(writer, number)
            store.create(versions)
            store.add([version.record for version in versions])

    def read(reader: int) -> None:
        for number in range(60):
            records = [version.record for version in batch_of(reader % 2, number % 30)]
            for stored, record in zip(store.read([record.reference for record in records]), records, strict=True):
                assert stored is None or stored.record == record
            store.look_up(records[0].keys)

    with ThreadPoolExecutor(6) as threads:
        for done in [*threads.map(write, range(2)), *threads.map(read, range(4))]:
            assert done is None
    assert store.stats().versions == 2 * 30 * 20
    store.close()


def test_the_map_is_not_replaced_under_a_transaction(tmp_path: Path) -> None:
    """A writer that needs a larger map waits for a reader of its own process, which reads on undisturbed."""
    store = LmdbStore.open(tmp_path, SMALL)
    environment = store._environment
    inside, go_on = Event(), Event()

    def linger(transaction: Transaction) -> object:
        inside.set()
        go_on.wait(60)
        return transaction.get(LAYOUT_KEY, db=environment.databases["meta"])

    with ThreadPoolExecutor(2) as threads:
        reader = threads.submit(environment.read, linger)
        assert inside.wait(60)
        writer = threads.submit(store.create, batch_of(0, 0, 500))
        assert not wait([writer], timeout=0.3).done
        go_on.set()
        assert reader.result(60) == BY_ARRIVAL
        assert len(writer.result(60)) == 500
    store.close()


def test_a_map_at_its_limit_is_full_and_a_higher_limit_cures_it(tmp_path: Path) -> None:
    """The sentence says what to do; what was acknowledged can be read before and after."""
    store = LmdbStore.open(tmp_path, replace(SMALL, map_bytes_max=1 << 20))
    written: list[bytes] = []
    with pytest.raises(StoreFull, match=r"has reached its limit of 1048576 bytes\. Raise the limit"):
        write_without_end(store, written)
    assert len(written) > 100
    assert all(store.read(written))
    store.close()
    store = LmdbStore.open(tmp_path, SMALL)
    assert all(store.read(written))
    assert store.sweep(1 << 60, 1 << 30) == len(written)
    store.close()


def test_a_killed_reader_does_not_make_the_file_grow_for_ever(tmp_path: Path) -> None:
    """A store that stays open finds it out by itself: the pages that the dead one saw are used again."""
    store = LmdbStore.open(tmp_path, SMALL)
    churn(store, 50)
    kill_a_reader(tmp_path)
    churn(store, 600)
    grown_bytes = store._environment.size_bytes()
    churn(store, 600)
    assert store._environment.size_bytes() == grown_bytes
    store.close()


def test_opening_a_store_forgets_killed_readers(tmp_path: Path) -> None:
    """Before the first call, although another process has kept the store open all the time."""
    keeper = start_reader(tmp_path)
    try:
        dead = kill_a_reader(tmp_path)
        store = LmdbStore.open(tmp_path, SMALL)
        readers = store._environment._env.readers()
        store.close()
    finally:
        keeper.kill()
        keeper.join()
    assert str(keeper.pid) in readers
    assert str(dead) not in readers
