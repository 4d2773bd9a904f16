"""Opens an LMDB environment and runs transactions on it while its file grows.

LMDB maps its file into memory at a size that is set when it is opened. A transaction that needs more fails, and is
repeated after the map has been doubled. If another process has grown the file, the new size is adopted first. Either
way the map is replaced, and no transaction of this process may be open then, which the gate ensures.

In a batch, all calls of its thread work within one write transaction, and are repeated together.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from itertools import count
from pathlib import Path
from threading import Condition
from typing import Any, Final, Self, TypeVar

import lmdb

from storage.errors import StoreDamaged, StoreFull, StoreRefused, StoreUnavailable, other_layout, read_only
from storage.lmdb.batch import Batch, WorkFailed
from storage.lmdb.data_file import DAMAGED, DATA_FILE, check_data_file
from storage.lmdb.failures import code_of, store_error
from storage.lmdb.layout import (
    ADDED,
    BY_ARRIVAL,
    DATABASES,
    KNOWN_LAYOUTS,
    LAYOUT_KEY,
    DatabaseName,
    UnreadableError,
)
from storage.lmdb.opening import await_unlocked_readers, open_files, prepare, refuse_other_things
from storage.lmdb.options import LmdbOptions
from storage.lmdb.page_check import check_pages
from storage.lmdb.unlocked import UnlockedReading, may_lock

_Answer = TypeVar("_Answer")
_Databases = dict[DatabaseName, Any]
Transaction = Any
"""``lmdb.Transaction``, which is generic in the stubs only."""
Cursor = Any
"""``lmdb.Cursor``, as above."""

_NOT_OURS: Final = "{path} holds a database that is not a dupwatch store. Name another store."
_FIRST_TRANSACTION: Final = 1
"""The number of the first transaction on a new file."""
_TOO_FAST: Final = "The store {path} grew faster than this process could follow; try again."
_ATTEMPTS_MAX: Final = 64
"""The maximum number of attempts. Doubling a map from one page to 2**64 bytes takes fewer."""
_READER_CHECK_TRANSACTIONS: Final = 100


class Environment:
    """An open LMDB environment with this program's layout."""

    def __init__(self, path: Path, options: LmdbOptions, env: lmdb.Environment) -> None:
        self.path = path
        self._options = options
        self._env = env
        self._unlocked: UnlockedReading | None = None
        self._guard: AbstractContextManager[None] = nullcontext()
        self._gate = _Gate()
        self._transactions = count(1)
        self._batch = Batch()
        self.databases: _Databases = {}

    @classmethod
    def open(cls, path: Path, options: LmdbOptions) -> Self:
        """Open the store at ``path``, or create one if nothing is there.

        Raises ``StoreRefused`` if something else is there, or this process already has the store open, and
        ``StoreDamaged`` if bytes are missing. A reader that may not write the lock file opens the store without it.
        """
        try:
            refuse_other_things(path, readonly=options.readonly)
            for _ in range(_ATTEMPTS_MAX):
                # Another process may grow the file between LMDB's check of its size and the first transaction.
                with suppress(lmdb.MapResizedError):
                    return cls._open_once(path, options)
        except (lmdb.Error, OSError) as error:
            if type(error) is lmdb.Error and not code_of(error):
                # The error is from the binding, not from LMDB: this process has these files open already.
                raise StoreRefused(f"The store {path} cannot be opened: {str(error).rstrip('.')}.") from error
            raise store_error(error, path) from error
        raise StoreUnavailable(_TOO_FAST.format(path=path))

    @classmethod
    def _open_once(cls, path: Path, options: LmdbOptions) -> Self:
        if not options.readonly:
            prepare(path, options, lambda env: cls(path, options, env).fill())
        check_data_file(path)
        lock = not options.readonly or may_lock(path)
        environment = cls(path, options, open_files(path, options, lock=lock))
        with environment._closed_on_failure():
            if not lock:
                environment._guard = environment._unlocked = UnlockedReading(path)
            environment._take_databases()
        return environment

    def fill(self) -> None:
        """Create the databases if there are none."""
        self._run(self._make_databases, write=True)

    def _take_databases(self) -> None:
        if self._options.readonly:
            with self._guard, self.reading():
                self._forget_dead_readers()
                self.databases = self._find_databases()
        else:
            await_unlocked_readers(self.path)
            self._forget_dead_readers()
            self.databases = self._run(self._make_databases, write=True)

    @contextmanager
    def _closed_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._close_files()
            raise

    def read(self, work: Callable[[Transaction], _Answer]) -> _Answer:
        """Run ``work`` in a read transaction, again if the file grows. ``work`` must not keep the transaction."""
        return self._run(work, write=False)

    def write(self, work: Callable[[Transaction], _Answer]) -> _Answer:
        """Run ``work`` in a write transaction, all or nothing; start over if the map has to grow."""
        if self._options.readonly:
            raise read_only(self.path)
        return self._run(work, write=True)

    def together(self, work: Callable[[], _Answer]) -> _Answer:
        """Run ``work``, whose calls share one write transaction; start over if the map has to grow.

        Writes nothing if ``work`` raises, and raises the same error.
        """
        if self.in_batch:
            with self._batch.call():
                return work()
        try:
            return self.write(lambda transaction: self._batch.run(transaction, work))
        except WorkFailed as failed:
            error = failed.error
        # Outside of the handler, so that the error keeps its own context.
        raise error

    @property
    def in_batch(self) -> bool:
        """Whether this thread is in a batch."""
        return self._batch.transaction is not None

    def check_pages(self) -> None:
        """Check all pages of the data file that are in use. Raises ``StoreDamaged``."""
        for _ in range(_ATTEMPTS_MAX):
            # While the transaction is open, its pages are not reused.
            if self.read(lambda transaction: check_pages(self.path, transaction.id())):
                return
        raise StoreUnavailable(f"The store {self.path} changes faster than it can be checked; try again.")

    def size_bytes(self) -> int:
        """Return the size of the data file. It never shrinks: freed space is reused."""
        return (self.path / DATA_FILE).stat().st_size

    def close(self) -> None:
        """Wait for the transactions of other threads, write everything to the disk, and close the files."""
        with self._gate.alone():
            if not self._options.readonly and self._options.durability == "process":
                # This durability does not promise a flush, so a failed one breaks no promise.
                with suppress(lmdb.Error):
                    self._env.sync(force=True)
            self._close_files()

    def _close_files(self) -> None:
        self._env.close()
        if self._unlocked is not None:
            self._unlocked.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn ``UnreadableError`` from decoding bytes of the store into ``StoreDamaged``."""
        try:
            yield
        except UnreadableError as error:
            raise StoreDamaged(DAMAGED.format(path=self.path, why=error)) from error

    def _run(self, work: Callable[[Transaction], _Answer], *, write: bool) -> _Answer:
        if self.in_batch:
            with self._batch.call():
                return self._run_in_batch(work)
        try:
            if next(self._transactions) % _READER_CHECK_TRANSACTIONS == 0:
                self._forget_dead_readers()
            with self.reading():
                return self._retry(work, write=write)
        except (lmdb.Error, OSError) as error:
            raise store_error(error, self.path) from error

    def _run_in_batch(self, work: Callable[[Transaction], _Answer]) -> _Answer:
        # The batch holds the gate already, and would wait for itself.
        try:
            with self.reading():
                return work(self._batch.transaction)
        except lmdb.MapFullError:
            raise
        except (lmdb.Error, OSError) as error:
            raise store_error(error, self.path) from error

    def _retry(self, work: Callable[[Transaction], _Answer], *, write: bool) -> _Answer:
        for _ in range(_ATTEMPTS_MAX):
            map_bytes = self._map_bytes() if write else 0
            try:
                with self._gate, self._guard, self._env.begin(write=write) as transaction:
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
                f"The store {self.path} has reached its limit of {limit} bytes. Raise the limit: even a sweep needs "
                "some space. Acknowledged writes are safe."
            )
        with self._gate.alone():
            # Unless another thread has grown it.
            if self._env.info()["map_size"] == full_bytes:
                self._env.set_mapsize(min(2 * full_bytes, limit))

    def _forget_dead_readers(self) -> None:
        """Free the slots of killed readers; otherwise the pages that they read could never be reused."""
        with self._gate:
            self._env.reader_check()

    def _make_databases(self, transaction: Transaction) -> _Databases:
        if transaction.id() == _FIRST_TRANSACTION:
            databases: _Databases = {
                name: self._env.open_db(name.encode(), transaction, **flags) for name, flags in DATABASES.items()
            }
            transaction.put(LAYOUT_KEY, BY_ARRIVAL, db=databases["meta"])
            return databases
        meta = self._env.open_db(b"meta", transaction, create=False)
        layout = self._known_layout(meta, transaction)
        if layout != BY_ARRIVAL:
            transaction.put(LAYOUT_KEY, BY_ARRIVAL, db=meta)
        return self._open_databases(transaction)

    def _find_databases(self) -> _Databases:
        # Opened outside any transaction: a handle opened in a read transaction does not outlive it.
        meta = self._env.open_db(b"meta", create=False)
        self._run(partial(self._known_layout, meta), write=False)
        return self._open_databases(None)

    def _known_layout(self, meta: Any, transaction: Transaction) -> bytes:  # noqa: ANN401  # LMDB hides its type
        """Return the store's layout. Raises ``StoreRefused`` for one that this program does not know."""
        layout: bytes | None = transaction.get(LAYOUT_KEY, db=meta)
        if layout is None:
            raise StoreRefused(_NOT_OURS.format(path=self.path))
        if layout not in KNOWN_LAYOUTS:
            raise other_layout(self.path, layout, KNOWN_LAYOUTS)
        return layout

    def _open_databases(self, transaction: Transaction | None) -> _Databases:
        databases: _Databases = {}
        for name, flags in DATABASES.items():
            create = name in ADDED and not self._options.readonly
            try:
                databases[name] = self._env.open_db(name.encode(), transaction, create=create, **flags)
            except lmdb.NotFoundError as error:
                # An older store lacks it, and a reader cannot create it.
                if name not in ADDED:
                    raise UnreadableError(f"its database {name} is missing") from error
        return databases


class _Gate:
    """Admits any number of transactions at a time, each in a ``with`` block, or one replacement of the map."""

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
            # Only a replacement waits for transactions to end.
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
