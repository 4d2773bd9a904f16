"""Reading a store without permission to write its lock file: safely, or not at all."""

import fcntl
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest

from storage import backoff
from storage.errors import StoreError, StoreUnavailable
from storage.lmdb import LmdbStore
from storage.lmdb.unlocked import UnlockedReading
from tests.builders import make_version
from tests.prefork import forkserver
from tests.unit.storage.processes import SMALL, on_small_disk, without_rights

READONLY = replace(SMALL, readonly=True)


@pytest.fixture
def path() -> Iterator[Path]:
    """A store with one version that everybody can read and nobody can write."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        path = folder / "store"
        store = LmdbStore.open(path, SMALL)
        store.create([make_version()])
        store.close()
        restrict(path, folder=0o555, data=0o444, lock=0o444)
        yield path
        path.chmod(0o755)


def restrict(path: Path, *, folder: int, data: int, lock: int) -> None:
    """Set the modes of a store and its files."""
    (path / "data.mdb").chmod(data)
    if (path / "lock.mdb").exists():
        (path / "lock.mdb").chmod(lock)
    path.chmod(folder)


def look(path: Path) -> str:
    """What a user without root's rights finds in a store."""
    without_rights()
    before = sorted(os.listdir(path))  # noqa: PTH208  # names
    try:
        store = LmdbStore.open(path, READONLY)
    except StoreError as error:
        return f"{type(error).__name__}: {error}"
    found = [stored.record.id for stored in store.scan() if hasattr(stored, "record")]
    stats = store.stats()
    store.close()
    assert sorted(os.listdir(path)) == before  # noqa: PTH208  # as above
    return f"{found} {stats.versions}"


def in_another(work: Callable[[Path], str], path: Path) -> str:
    """Do it in a process of its own."""
    with forkserver().Pool(1) as pool:
        return pool.apply(work, (path,))


@pytest.mark.parametrize("lock", ["there", "gone"])
def test_a_store_is_read_where_nothing_may_be_written(path: Path, lock: str) -> None:
    """With the lock file that others left, and without one; nothing is made."""
    if lock == "gone":
        path.chmod(0o755)
        (path / "lock.mdb").unlink()
        path.chmod(0o555)
    assert in_another(look, path) == "['a'] 1"


def test_a_store_in_use_is_not_read_without_the_lock_file(path: Path) -> None:
    """Its writer would not spare the pages that are being read: the sentence says which right is missing."""
    path.chmod(0o755)
    store = LmdbStore.open(path, SMALL)
    try:
        found = in_another(look, path)
    finally:
        store.close()
    assert found.startswith(f"StoreUnavailable: The store {path} is in use by another process, and this user may not")
    assert in_another(look, path) == "['a'] 1"


def test_with_the_right_to_write_the_lock_file_a_store_in_use_is_read(path: Path) -> None:
    """As LMDB means it: the writer sees this reader."""
    restrict(path, folder=0o755, data=0o444, lock=0o666)
    store = LmdbStore.open(path, SMALL)
    try:
        path.chmod(0o555)
        assert in_another(look, path) == "['a'] 1"
    finally:
        store.close()


@pytest.mark.parametrize("lock", [0o600, 0o602])
def test_without_the_right_to_read_the_lock_file_nobody_can_tell(path: Path, lock: int) -> None:
    """So it is refused, whether or not another process writes, and whether or not this user may write that file."""
    restrict(path, folder=0o555, data=0o444, lock=lock)
    if os.geteuid() == 0:
        assert "without permission to read" in in_another(look, path)


def test_without_the_right_to_read_the_data_file_it_is_refused(path: Path) -> None:
    """As a file that is not theirs, in one sentence."""
    restrict(path, folder=0o555, data=0o000, lock=0o444)
    found = in_another(look, path)
    assert found.startswith(f"StoreRefused: This user may not open or write the store {path}: ")


def look_while_a_writer_comes(path: Path) -> str:
    """Read once, have a process of this program open the store for writing, and read again."""
    without_rights()
    store = LmdbStore.open(path, READONLY)
    found = store.stats().versions
    (path.parent / "asked").touch()
    with (path.parent / "opened").open():
        # A named pipe: it can be opened once the writer has opened the store.
        pass
    try:
        store.stats()
    except StoreUnavailable as error:
        return f"{found} {error}"
    return "read on"


def test_a_reader_without_the_lock_file_ends_when_a_writer_comes(path: Path) -> None:
    """Before its next transaction."""
    path.parent.chmod(0o777)
    os.mkfifo(path.parent / "opened")
    (path.parent / "opened").chmod(0o666)
    path.chmod(0o755)
    with forkserver().Pool(1) as pool:
        result = pool.apply_async(look_while_a_writer_comes, (path,))
        while not (path.parent / "asked").exists():
            assert not result.ready(), result.get()
            result.wait(0.01)
        store = LmdbStore.open(path, SMALL)
        try:
            with (path.parent / "opened").open("w"):
                pass
            answer = result.get(180)
        finally:
            store.close()
    assert answer.startswith(f"1 The store {path} is in use by another process")


def test_a_writer_waits_for_a_transaction_that_began_before_it_could_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then it commits nothing; for one that is over it does not wait."""
    LmdbStore.open(tmp_path, SMALL).close()
    reading = UnlockedReading(tmp_path)
    reading.__enter__()
    waited = []

    def leave(seconds: float) -> None:
        waited.append(seconds)
        reading.__exit__()

    monkeypatch.setattr(time, "sleep", leave)
    for _ in range(2):
        LmdbStore.open(tmp_path, SMALL).close()
        assert len(waited) == 1
    reading.close()


def test_a_writer_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was stopped in a transaction holds up a consumer for ten seconds, and no longer."""
    LmdbStore.open(tmp_path, SMALL).close()
    clock_s = [0.0]

    def sleep(seconds: float) -> None:
        clock_s[0] += seconds

    monkeypatch.setattr(backoff, "time", SimpleNamespace(monotonic=lambda: clock_s[0], sleep=sleep))
    reading = UnlockedReading(tmp_path)
    with reading:
        store = LmdbStore.open(tmp_path, SMALL)
        assert clock_s[0] == pytest.approx(10.0, abs=0.1)
        store.create([make_version()])
        assert store.stats().versions == 1
        store.close()
    reading.close()


def test_transactions_of_several_threads_end_one_by_one(tmp_path: Path) -> None:
    """The data file is let go of with the last of them."""
    LmdbStore.open(tmp_path, SMALL).close()
    reading = UnlockedReading(tmp_path)
    other = os.open(tmp_path / "data.mdb", os.O_RDONLY)
    with reading:
        with reading:
            pass
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)
    reading.close()


@pytest.fixture
def _mounts() -> None:
    """Skip where a user may not mount a disk of his own."""
    tried = subprocess.run(["unshare", "-Urm", "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no user namespaces here: {tried.stderr.strip()}")


@pytest.mark.usefixtures("_mounts")
def test_a_store_on_a_read_only_medium_is_read(tmp_path: Path) -> None:
    """LMDB alone would skip the lock without checking for writers that reach the same files by another path."""
    run = on_small_disk(tmp_path, "2m", f"look_at_read_only_medium(pathlib.Path({str(tmp_path)!r}))")
    assert run.returncode == 0, run.stderr
    assert "[1, " in run.stdout
    assert "is in use by another process" in run.stdout
