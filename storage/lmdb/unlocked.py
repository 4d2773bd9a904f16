"""Reads a store without permission to write its lock file.

A reader of LMDB registers its transaction in the lock file, and writers do not reuse the pages that it may still read.
A reader that cannot write there (another user, a read-only file system) is invisible to writers: two commits later its
pages may be overwritten, and it would read garbage or crash. So it reads only while no other process has the store
open. It can check that: every process that opens the store with its lock file holds a POSIX lock on that file's first
byte (LMDB's ``mdb_env_excl_lock`` and ``mdb_env_share_locks``). This is checked before each transaction.

A writer could still open the store between this check and the end of the transaction. So the transaction holds a shared
``flock`` on the data file, which needs only permission to read. Every process of this program that opens the store for
writing takes that ``flock`` exclusively for a moment, once readers can see it (``opening.await_unlocked_readers``).

A process that has opened the lock file through LMDB must not open it here: closing it would release LMDB's lock.
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
    """Return whether this user may open the store's lock file as LMDB does, without opening it (see above)."""
    return os.access(path / LOCK_FILE, os.R_OK | os.W_OK, effective_ids=True)


class UnlockedReading:
    """A guard for transactions of a reader without a lock, each in a ``with`` block; they may overlap."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._data = os.open(path / DATA_FILE, os.O_RDONLY)
        self._counting = Lock()
        self._transactions = 0

    def __enter__(self) -> None:
        """Raise ``StoreUnavailable`` if another process has the store open, ``StoreRefused`` if that is unknown."""
        with self._counting:
            fcntl.flock(self._data, fcntl.LOCK_SH)
            self._transactions += 1
        try:
            self._check_unused()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        with self._counting:
            self._transactions -= 1
            if not self._transactions:
                fcntl.flock(self._data, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the data file."""
        os.close(self._data)

    def _check_unused(self) -> None:
        lock_file = self._path / LOCK_FILE
        try:
            descriptor = os.open(lock_file, os.O_RDONLY)
        except FileNotFoundError:
            # No process has the store open: each process creates the file when it opens the store.
            return
        except PermissionError as error:
            raise StoreRefused(
                f"This user cannot read the store {self._path}: without permission to read {lock_file} it cannot see "
                "whether another process writes to the store. Grant permission to read that file."
            ) from error
        try:
            query = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
            kind, *_ = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, query))
        finally:
            os.close(descriptor)
        if kind != fcntl.F_UNLCK:
            raise StoreUnavailable(
                f"The store {self._path} is in use by another process, and this user may not write {lock_file}, which "
                "protects readers from writers. Grant permission to write that file, or try again when the store is "
                "not in use."
            )
