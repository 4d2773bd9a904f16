"""Opening an LMDB environment, running transactions on it, and keeping both going while it grows.

LMDB maps its file into memory at a size that is set when it is opened. A transaction that needs more fails and is
run again after the map has been doubled; one that finds that another process has grown the file adopts the new size
first. Both replace the map, which no transaction of this process may be using: the gate sees to that.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from threading import Condition
from typing import Any, Final, Literal, Self, TypeVar

import lmdb

from storage.clock import Clock, now_ms
from storage.errors import StoreFull, StoreRefused, StoreUnavailable
from storage.lmdb.failures import DATA_FILE, code_of, store_error
from storage.lmdb.layout import ADDED, DATABASES, LAYOUT, LAYOUT_KEY, DatabaseName

_Answer = TypeVar("_Answer")
_Databases = dict[DatabaseName, Any]
Transaction = Any
"""``lmdb.Transaction``, whose type is generic in the stubs only."""

_LOCK_FILE: Final = "lock.mdb"
_UNFINISHED_LOCK_FILE: Final = "lock.mdb.new"
_OWN_FILES: Final = frozenset({DATA_FILE, _LOCK_FILE, _UNFINISHED_LOCK_FILE})
_DISPENSABLE: Final = frozenset({errno.EEXIST, errno.ENOENT, errno.EPERM, errno.EINVAL, errno.EOPNOTSUPP})
_NOT_OURS: Final = "{path} holds a database that this program did not make."
_TOO_FAST: Final = "The store {path} grew faster than this process could follow."
_READER_SLOT_BYTES: Final = 64
_LOCK_HEADER_BYTES: Final = 128
_ATTEMPTS_MAX: Final = 64
"""More than a map can be doubled from a page to 64 bits; whoever is still behind then is told to come again."""
_READER_CHECK_CALLS: Final = 1_000


@dataclass(frozen=True, slots=True)
class LmdbOptions:
    """How a store is opened.

    ``durability``: with ``"power"`` every commit is on the disk before the call returns. With ``"process"`` (LMDB's
    ``MDB_NOSYNC``) it is in the system's page cache: a killed process loses nothing, while a crash of the machine may
    lose the last calls, and may damage the file unless the file system keeps writes in order.
    ``map_bytes`` is the size of the map at first and ``map_bytes_max`` the most it doubles to; ``readers_max`` the
    number of read transactions at one time in all processes, set by the process that comes first.
    """

    durability: Literal["power", "process"] = "power"
    keep_bodies: bool = True
    row_postings_max: int = 100_000
    map_bytes: int = 1 << 30
    map_bytes_max: int = 1 << 38
    readers_max: int = 126
    readonly: bool = False
    clock: Clock = now_ms


class Environment:
    """An open LMDB environment of this program's layout."""

    def __init__(self, path: Path, options: LmdbOptions, env: lmdb.Environment) -> None:
        self.path = path
        self._options = options
        self._env = env
        self._gate = _Gate()
        self._calls = count(1)
        self.databases: _Databases = {}

    @classmethod
    def open(cls, path: Path, options: LmdbOptions) -> Self:
        """Open what lies at ``path``, or make a new store there where there is nothing.

        Raises ``StoreRefused`` where something else lies there, or it is open in this process already.
        """
        try:
            _refuse_other_things(path, readonly=options.readonly)
            for _ in range(_ATTEMPTS_MAX):
                # Another process may make the file grow between LMDB's looking at its size and its first transaction.
                with suppress(lmdb.MapResizedError):
                    return cls._open_once(path, options)
        except (lmdb.Error, OSError) as error:
            if type(error) is lmdb.Error and not code_of(error):
                # Not LMDB but its binding refuses: these files are open in this process already.
                raise StoreRefused(f"The store {path} cannot be opened: {str(error).rstrip('.')}.") from error
            raise store_error(error, path) from error
        raise StoreUnavailable(_TOO_FAST.format(path=path))

    @classmethod
    def _open_once(cls, path: Path, options: LmdbOptions) -> Self:
        environment = cls(path, options, _open_files(path, options))
        try:
            environment._take_databases()
        except BaseException:
            environment._env.close()
            raise
        return environment

    def read(self, work: Callable[[Transaction], _Answer]) -> _Answer:
        """Run ``work`` in a read transaction. It may be run more than once, and must not keep what it is given."""
        return self._run(work, write=False)

    def write(self, work: Callable[[Transaction], _Answer]) -> _Answer:
        """Run ``work`` in a write transaction, again from the start where the map has to grow; all of it or nothing."""
        if self._options.readonly:
            raise StoreRefused(f"The store {self.path} was opened for reading only.")
        return self._run(work, write=True)

    def size_bytes(self) -> int:
        """What the data file takes. It never shrinks: space given back is used again."""
        return (self.path / DATA_FILE).stat().st_size

    def close(self) -> None:
        """Wait for the transactions of other threads, write everything to the disk, and let go of the files."""
        with self._gate.alone():
            if not self._options.readonly and self._options.durability == "process":
                # A flush that fails takes nothing away from what this durability promises.
                with suppress(lmdb.Error):
                    self._env.sync(force=True)
            self._env.close()

    def _run(self, work: Callable[[Transaction], _Answer], *, write: bool) -> _Answer:
        try:
            if next(self._calls) % _READER_CHECK_CALLS == 0:
                self._forget_dead_readers()
            return self._retry(work, write=write)
        except (lmdb.Error, OSError) as error:
            raise store_error(error, self.path) from error

    def _retry(self, work: Callable[[Transaction], _Answer], *, write: bool) -> _Answer:
        for _ in range(_ATTEMPTS_MAX):
            map_bytes = self._map_bytes() if write else 0
            try:
                with self._gate, self._env.begin(write=write) as transaction:
                    return work(transaction)
            except lmdb.MapFullError:
                self._grow(map_bytes)
            except lmdb.MapResizedError:
                with self._gate.alone():
                    self._env.set_mapsize(0)
        raise StoreUnavailable(_TOO_FAST.format(path=self.path))

    def _map_bytes(self) -> int:
        with self._gate:
            return self._env.info()["map_size"]

    def _grow(self, full_bytes: int) -> None:
        limit = self._options.map_bytes_max
        if full_bytes >= limit:
            raise StoreFull(
                f"The store {self.path} has reached its limit of {limit} bytes: raise the limit, since a sweep needs "
                "some room too. What was acknowledged is safe."
            )
        with self._gate.alone():
            # Another thread may have been here first.
            if self._env.info()["map_size"] == full_bytes:
                self._env.set_mapsize(min(2 * full_bytes, limit))

    def _forget_dead_readers(self) -> None:
        """Free the slots of killed readers: what they were reading could never be overwritten otherwise."""
        with self._gate:
            self._env.reader_check()

    def _take_databases(self) -> None:
        self._forget_dead_readers()
        if self._options.readonly:
            self.databases = self._find_databases()
        else:
            self.databases = self._run(self._make_databases, write=True)

    def _make_databases(self, transaction: Transaction) -> _Databases:
        if transaction.stat()["entries"] == 0:
            databases = self._open_databases(transaction)
            transaction.put(LAYOUT_KEY, LAYOUT, db=databases["meta"])
            return databases
        self._refuse_other_layout(self._env.open_db(b"meta", transaction, create=False), transaction)
        return self._open_databases(transaction)

    def _find_databases(self) -> _Databases:
        # Opened outside of any transaction: a handle that a reading one opens does not outlive it.
        meta = self._env.open_db(b"meta", create=False)
        self._run(partial(self._refuse_other_layout, meta), write=False)
        return self._open_databases(None)

    def _refuse_other_layout(self, meta: Any, transaction: Transaction) -> None:  # noqa: ANN401  # LMDB hides its type
        layout = transaction.get(LAYOUT_KEY, db=meta)
        if layout is None:
            raise StoreRefused(_NOT_OURS.format(path=self.path))
        if layout != LAYOUT:
            raise StoreRefused(
                f"The store {self.path} has layout {layout.decode(errors='replace')}, and this program reads and "
                f"writes layout {LAYOUT.decode()} only."
            )

    def _open_databases(self, transaction: Transaction | None) -> _Databases:
        create = not self._options.readonly
        databases: _Databases = {}
        for name, flags in DATABASES.items():
            # Who only reads cannot make what an older store lacks, and finds nothing in it.
            with suppress(*((lmdb.NotFoundError,) if name in ADDED else ())):
                databases[name] = self._env.open_db(name.encode(), transaction, create=create, **flags)
        return databases


class _Gate:
    """Any number of transactions pass together, each in a ``with`` block; whoever replaces the map passes alone."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._inside = 0
        self._is_shut = False

    def __enter__(self) -> None:
        with self._changed:
            while self._is_shut:
                self._changed.wait()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._inside -= 1
            # Nobody else waits for those inside to leave.
            if self._is_shut:
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_shut)
            self._is_shut = True
            self._changed.wait_for(lambda: self._inside == 0)
        try:
            yield
        finally:
            with self._changed:
                self._is_shut = False
                self._changed.notify_all()


def _refuse_other_things(path: Path, *, readonly: bool) -> None:
    if path.exists() and not path.is_dir():
        raise StoreRefused(f"{path} is a file, and a store is a directory.")
    names = {entry.name for entry in path.iterdir()} if path.exists() else set()
    if DATA_FILE in names:
        return
    if readonly:
        raise StoreRefused(f"There is no store at {path}.")
    if names - _OWN_FILES:
        raise StoreRefused(f"The directory {path} holds other things and no store; name an empty one or a new one.")


def _open_files(path: Path, options: LmdbOptions) -> lmdb.Environment:
    if not options.readonly:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise StoreRefused(f"The directory {path} is not writable for this user.")
        _reserve_lock_file(path / _LOCK_FILE, options.readers_max)
    return lmdb.open(
        str(path),
        map_size=options.map_bytes,
        readonly=options.readonly,
        sync=options.durability == "power",
        max_readers=options.readers_max,
        max_dbs=len(DATABASES),
        create=False,
    )


def _reserve_lock_file(lock_file: Path, readers_max: int) -> None:
    """Give a new lock file its blocks. LMDB maps it with a hole in it: on a full disk SIGBUS would end the process.

    It appears under its name only when it has them, and never goes away again: two processes with different lock files
    would both write.
    """
    if lock_file.exists():
        return
    unfinished = lock_file.with_name(_UNFINISHED_LOCK_FILE)
    descriptor = os.open(unfinished, os.O_CREAT | os.O_WRONLY, mode=0o644)
    try:
        os.posix_fallocate(descriptor, 0, _LOCK_HEADER_BYTES + readers_max * _READER_SLOT_BYTES)
        lock_file.hardlink_to(unfinished)
    except OSError as error:
        # Another process was faster, or the file system cannot do it: LMDB takes what is there, or makes its own.
        if error.errno not in _DISPENSABLE:
            raise
    finally:
        os.close(descriptor)
        unfinished.unlink(missing_ok=True)
