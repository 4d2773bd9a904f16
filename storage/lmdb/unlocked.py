"""Reading a store without permission to write its lock file.

A reader of LMDB enters its transaction in the lock file, and a writer spares the pages that it may still read. Whoever
cannot write there (another user, a read-only file system) is not seen, and two commits later its pages may be
overwritten under it: it would read nonsense, or crash. So it reads only while nobody else has the store open, which it
can see: every process that opens the store with its lock file holds a POSIX lock on that file's first byte (LMDB's
``mdb_env_excl_lock`` and ``mdb_env_share_locks``). That is looked at before each transaction.

Between the look and the end of the transaction a writer could still come. So the transaction holds a shared ``flock``
on the data file, which needs no permission but to read, and a process of this program that opens the store for writing
waits, once it can be seen, until it had that ``flock`` for itself for a moment (``opening.await_unlocked_readers``).

The lock file is opened by processes that have not opened it through LMDB only: closing it would release LMDB's lock.
"""

import fcntl
import os
import struct
from pathlib import Path
from threading import Lock
from typing import Final

from storage.errors import StoreRefused, StoreUnavailable
from storage.lmdb.data_file import DATA_FILE
from storage.lmdb.opening import LOCK_FILE

_FLOCK: Final = struct.Struct("@hhqqi4x")
"""``struct flock`` of 64-bit Linux: type, whence, start, length, process."""


def may_lock(path: Path) -> bool:
    """Whether this user may open the store's lock file as LMDB does. It is not opened here: see above."""
    return os.access(path / LOCK_FILE, os.R_OK | os.W_OK, effective_ids=True)


class UnlockedReading:
    """Every transaction of a reader without a lock goes through here, in a ``with`` block; one at a time or many."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._data = os.open(path / DATA_FILE, os.O_RDONLY)
        self._counting = Lock()
        self._inside = 0

    def __enter__(self) -> None:
        """Raises ``StoreUnavailable`` while another process has the store open, ``StoreRefused`` if nobody can tell."""
        with self._counting:
            fcntl.flock(self._data, fcntl.LOCK_SH)
            self._inside += 1
        try:
            self._refuse_others()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        with self._counting:
            self._inside -= 1
            if not self._inside:
                fcntl.flock(self._data, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the data file."""
        os.close(self._data)

    def _refuse_others(self) -> None:
        lock_file = self._path / LOCK_FILE
        try:
            descriptor = os.open(lock_file, os.O_RDONLY)
        except FileNotFoundError:
            # Whoever opens the store makes one.
            return
        except PermissionError as error:
            raise StoreRefused(
                f"The store {self._path} cannot be read by this user: without permission to read {lock_file} nobody "
                "can tell whether somebody writes to the store. Give this user the right to read it."
            ) from error
        try:
            asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
            kind, *_ = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
        finally:
            os.close(descriptor)
        if kind != fcntl.F_UNLCK:
            raise StoreUnavailable(
                f"The store {self._path} is in use by another process, and this user may not write {lock_file}, by "
                "which readers are protected from writers. Give this user the right to write that file, or come again "
                "when nobody uses the store."
            )
