"""Opening: what is a store, what is not, and what each refusal says."""

from collections.abc import Callable
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lmdb
import pytest

from storage.errors import StoreRefused, StoreUnavailable
from storage.lmdb import LmdbOptions, LmdbStore
from storage.postings import postings_of
from storage.records import Release, StoredVersion
from tests.builders import make_record, make_tombstone, make_version
from tests.unit.storage.processes import SMALL, open_as_nobody


def make_lmdb(path: Path, databases: dict[bytes | None, dict[bytes, bytes]]) -> None:
    """Another program's LMDB, or one of ours with something changed."""
    with lmdb.open(str(path), max_dbs=8) as env:
        for name, items in databases.items():
            database = env.open_db(name)
            with env.begin(write=True) as transaction:
                for key, value in items.items():
                    transaction.put(key, value, db=database)


def make_directory(path: Path, name: str) -> None:
    """A directory with one file that is not a database."""
    path.mkdir()
    (path / name).write_bytes(b"text" * 5_000)


def other_layout(path: Path) -> None:
    """A store of a layout to come."""
    LmdbStore.open(path, SMALL).close()
    make_lmdb(path, {b"meta": {b"layout": b"999"}})


NOT_STORES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file": (lambda path: path.write_text("text"), "is a file, but a store is a directory"),
    "other things": (lambda path: make_directory(path, "letter.txt"), "holds other files and no store"),
    "no database": (lambda path: make_directory(path, "data.mdb"), "database that is not a dupwatch store"),
    "another program's": (
        lambda path: make_lmdb(path, {None: {b"key": b"value"}}),
        "that is not a dupwatch store",
    ),
    "another's with a meta": (
        lambda path: make_lmdb(path, {b"meta": {b"key": b"value"}}),
        "that is not a dupwatch store",
    ),
    "another's with a key meta": (
        lambda path: make_lmdb(path, {None: {b"meta": b""}}),
        "that is not a dupwatch store",
    ),
    "another layout": (other_layout, "has layout 999; this program supports only layouts 1, 2, 3 and 4"),
}


@pytest.mark.parametrize("name", NOT_STORES)
@pytest.mark.parametrize("readonly", [False, True])
def test_what_is_no_store_is_refused_and_left_alone(name: str, tmp_path: Path, *, readonly: bool) -> None:
    """One sentence that says what is wrong; no file is changed; and it can be refused again."""
    path = tmp_path / "store"
    make, sentence = NOT_STORES[name]
    make(path)
    before = [entry.read_bytes() for entry in path.glob("data.mdb")]
    for _ in range(2):
        with pytest.raises(StoreRefused, match=sentence if not readonly or name != "other things" else "no store"):
            LmdbStore.open(path, replace(SMALL, readonly=readonly))
    assert [entry.read_bytes() for entry in path.glob("data.mdb")] == before


def test_a_store_from_before_there_were_releases_reads_as_it_did(tmp_path: Path) -> None:
    """For reading only, when what it lacks is not made; opened for writing once, a release can be put into it."""
    version = make_version()
    store = LmdbStore.open(tmp_path, SMALL)
    store.create([version])
    store.settle([(version.record.reference, b"flagged")])
    store.close()
    with lmdb.open(str(tmp_path), max_dbs=10) as env, env.begin(write=True) as transaction:
        transaction.drop(env.open_db(b"releases", transaction), delete=True)
    flagged = StoredVersion(version.record, b"flagged", None)
    store = LmdbStore.open(tmp_path, replace(SMALL, readonly=True))
    assert (store.read([version.record.reference]), list(store.scan())) == ([flagged], [flagged])
    assert store.stats()[:2] == (1, 1)
    store.close()
    store = LmdbStore.open(tmp_path, SMALL)
    assert store.release([Release(version.record.reference, b"kept", b"\1" * 32)]) == [b"kept"]
    store.close()
    store = LmdbStore.open(tmp_path, replace(SMALL, readonly=True))
    assert store.read([version.record.reference]) == [StoredVersion(version.record, b"kept", None, b"\1" * 32)]
    store.close()


@pytest.mark.parametrize("present", [[], ["lock.mdb"], ["data.mdb.new", "lock.mdb.new"]])
def test_a_store_is_made_where_a_kill_left_only_unfinished_files(present: list[str], tmp_path: Path) -> None:
    """After a kill at any moment of the first opening the next process succeeds; parent directories are created."""
    path = tmp_path / "new" / "store"
    path.mkdir(parents=True)
    for name in present:
        (path / name).write_bytes(bytes(100))
    store = LmdbStore.open(path, SMALL)
    assert store.agree(b"settings") == b"settings"
    store.close()
    assert sorted(entry.name for entry in path.iterdir()) == ["data.mdb", "lock.mdb"]


def test_a_store_is_made_of_a_database_to_which_nothing_was_committed(tmp_path: Path) -> None:
    """As an earlier version left it when it was killed at the right moment; one that was emptied is refused."""
    make_lmdb(tmp_path, {})
    store = LmdbStore.open(tmp_path, SMALL)
    assert store.stats().versions == 0
    store.close()
    with lmdb.open(str(tmp_path), max_dbs=10) as env, env.begin(write=True) as transaction:
        for name in list(transaction.cursor().iternext(values=False)):
            transaction.drop(env.open_db(name, transaction), delete=True)
    with pytest.raises(StoreRefused, match="that is not a dupwatch store, or whose first pages are damaged"):
        LmdbStore.open(tmp_path, SMALL)


def test_a_directory_that_cannot_be_written_is_refused() -> None:
    """By a user without root's rights."""
    with TemporaryDirectory() as directory:
        path = Path(directory)
        path.chmod(0o555)
        with get_context("spawn").Pool(1) as pool:
            answers = pool.map(open_as_nobody, [path, path / "new"])
    assert answers[0] == f"StoreRefused: This user may not write to the directory {path}."
    assert answers[1].startswith(f"StoreRefused: This user may not open or write the store {path / 'new'}")


def test_one_process_cannot_open_a_store_twice(tmp_path: Path) -> None:
    """Also by another name; the store that is open is not harmed, and can be opened again once closed."""
    store = LmdbStore.open(tmp_path / "store", SMALL)
    (tmp_path / "link").symlink_to(tmp_path / "store")
    for name in ("store", "link"):
        with pytest.raises(StoreRefused, match=r"cannot be opened: .* already open in this process"):
            LmdbStore.open(tmp_path / name, SMALL)
    store.create([make_version()])
    store.close()
    store = LmdbStore.open(tmp_path / "store", SMALL)
    assert store.stats().versions == 1
    store.close()


@pytest.mark.parametrize("durability", ["power", "process"])
def test_everything_is_there_after_opening_again(durability: str, tmp_path: Path) -> None:
    """Records, verdicts, postings, bodies, tombstones and settings, with the default options and the fast ones."""
    options = LmdbOptions() if durability == "power" else SMALL
    version, tombstone = make_version(), make_tombstone(sequence=1)
    store = LmdbStore.open(str(tmp_path / "store"), options)
    store.create([version])
    store.add([version.record])
    store.settle([(version.record.reference, b"kept")])
    store.retract([tombstone])
    store.agree(b"settings")
    store.close()
    store = LmdbStore.open(str(tmp_path / "store"), options)
    assert list(store.scan()) == [StoredVersion(version.record, b"kept", tombstone.arrival), tombstone]
    assert store.bodies([version.record.reference]) == [version.body]
    assert [len(row.postings) for row in store.look_up(version.record.keys)] == [1] * 8
    assert store.agree(b"other") == b"settings"
    store.close()


def test_the_width_of_postings_is_kept_with_the_store(tmp_path: Path) -> None:
    """Later openings, for reading or writing, read rows of that width, and another width is refused."""
    wide, other = make_record(code_bytes=16), make_record("other")
    store = LmdbStore.open(tmp_path, SMALL)
    assert [len(row.postings) for row in store.look_up(wide.keys)] == [0] * 12
    store.add([wide])
    store.close()
    for readonly in (True, False):
        store = LmdbStore.open(tmp_path, replace(SMALL, readonly=readonly))
        rows = store.look_up(wide.keys)
        assert [(row.packed, row.layout.code_bytes) for row in rows] == [
            (postings, 16) for _, postings in postings_of(wide)
        ]
        store.close()
    store = LmdbStore.open(tmp_path, SMALL)
    with pytest.raises(StoreRefused, match=f"The store {tmp_path} holds fingerprints of 128 bits and cannot take one"):
        store.add([other])
    store.close()


def test_bodies_are_left_out_where_they_are_not_wanted(tmp_path: Path) -> None:
    """The version is stored all the same."""
    version = make_version()
    store = LmdbStore.open(tmp_path, replace(SMALL, keep_bodies=False))
    assert store.create([version]) == [StoredVersion(version.record, None, None)]
    assert store.bodies([version.record.reference]) == [None]
    store.close()


def test_a_store_opened_for_reading_reads_and_refuses_to_write(tmp_path: Path) -> None:
    """It sees the contents, changes nothing, and creates no store."""
    readonly = replace(SMALL, readonly=True)
    with pytest.raises(StoreRefused, match="There is no store in"):
        LmdbStore.open(tmp_path / "store", readonly)
    assert not (tmp_path / "store").exists()
    version = make_version()
    store = LmdbStore.open(tmp_path / "store", SMALL)
    store.create([version])
    store.add([version.record])
    store.close()
    store = LmdbStore.open(tmp_path / "store", readonly)
    assert list(store.scan()) == store.read([version.record.reference]) == [StoredVersion(version.record, None, None)]
    assert store.stats()[:5] == (1, 0, 0, 8, 8)
    for write in (
        lambda: store.create([version]),
        lambda: store.settle([]),
        lambda: store.sweep(1, 1),
        lambda: store.agree(b""),
    ):
        with pytest.raises(StoreRefused, match="was opened for reading only"):
            write()
    store.close()


@pytest.mark.parametrize("failures", [2, 1_000])
def test_opening_is_tried_again_where_another_process_makes_the_file_grow(
    failures: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LMDB fails if that happens between its first two reads; a process that never catches up gets an error."""
    open_really = lmdb.open
    tries = iter(range(failures))

    def open_unluckily(*arguments: Any, **options: Any) -> lmdb.Environment:  # noqa: ANN401  # whatever is passed
        if next(tries, None) is not None:
            raise lmdb.MapResizedError("mdb_txn_begin")
        return open_really(*arguments, **options)

    monkeypatch.setattr(lmdb, "open", open_unluckily)
    if failures > 100:
        with pytest.raises(StoreUnavailable, match="grew faster than this process could follow"):
            LmdbStore.open(tmp_path / "store", SMALL)
        return
    store = LmdbStore.open(tmp_path / "store", SMALL)
    assert store.stats().versions == 0
    store.close()
