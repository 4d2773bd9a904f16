"""The files of a store: what may be opened as one, and how a new one is made.

A store appears under its names only when it is whole: its data file has its layout in it before it is called
``data.mdb``. So a data file that is empty, or one that is gone from beside a lock file that was in use, is damage, and
nothing is made in its place.
"""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import lmdb

from storage.errors import StoreDamaged, StoreRefused
from storage.files import make_file, make_folders, sync_folder
from storage.lmdb.data_file import DATA_FILE
from storage.lmdb.layout import DATABASES
from storage.lmdb.options import LmdbOptions

LOCK_FILE: Final = "lock.mdb"
_NEW_DATA_FILE: Final = "data.mdb.new"
_NEW_LOCK_FILE: Final = "lock.mdb.new"
_OWN_FILES: Final = frozenset({DATA_FILE, LOCK_FILE, _NEW_DATA_FILE, _NEW_LOCK_FILE})
_UNSUPPORTED: Final = frozenset({errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM, errno.ENOSYS})
_READER_SLOT_BYTES: Final = 64
_LOCK_HEADER_BYTES: Final = 128
_UNLOCKED_READERS_S: Final = 10.0
"""How long a writer that has just come waits for the last transaction of those who read without a lock."""
_PAUSE_S: Final = 0.01


def refuse_other_things(path: Path, *, readonly: bool) -> None:
    """Raise ``StoreRefused`` where there is anything but a store, an empty directory or nothing."""
    if path.exists() and not path.is_dir():
        raise StoreRefused(f"{path} is a file, and a store is a directory: name another path.")
    above = next((one for one in path.parents if one.exists()), None)
    if above is not None and not above.is_dir():
        raise StoreRefused(f"No store can be at {path}: {above} is a file. Name another path.")
    names = {entry.name for entry in path.iterdir()} if path.exists() else set()
    if DATA_FILE in names:
        return
    if LOCK_FILE in names and (path / LOCK_FILE).read_bytes().strip(b"\0"):
        raise StoreDamaged(
            f"The store {path} is damaged: {DATA_FILE} is gone, and the {LOCK_FILE} of those who used it is there. Put "
            f"{DATA_FILE} back; or remove the directory to begin with an empty store."
        )
    if readonly:
        raise StoreRefused(f"There is no store at {path}.")
    if names - _OWN_FILES:
        raise StoreRefused(f"The directory {path} holds other things and no store; name an empty one or a new one.")


def prepare(path: Path, options: LmdbOptions, fill: Callable[[lmdb.Environment], None]) -> None:
    """Make the directory, the data file and the lock file as far as they are not there; ``fill`` makes the databases.

    Processes that come together make one store: one at a time has the directory to itself.
    """
    make_folders(path, options.file_mode)
    if not os.access(path, os.W_OK | os.X_OK):
        raise StoreRefused(f"The directory {path} is not writable for this user.")
    if (path / DATA_FILE).exists() and (path / LOCK_FILE).exists():
        return
    with _alone_in(path):
        if not (path / DATA_FILE).exists():
            _make_data_file(path, options, fill)
        if not (path / LOCK_FILE).exists():
            _make_lock_file(path, options)
        if options.durability == "power":
            sync_folder(path)


def open_files(path: Path, options: LmdbOptions, *, lock: bool) -> lmdb.Environment:
    """Open the files that are there; ``lock`` is False only for those who read and may not write the lock file."""
    return lmdb.open(
        str(path),
        map_size=options.map_bytes,
        readonly=options.readonly,
        sync=options.durability == "power",
        max_readers=options.readers_max,
        max_dbs=len(DATABASES),
        create=False,
        mode=options.file_mode,
        lock=lock,
    )


def await_unlocked_readers(path: Path) -> None:
    """Wait until nobody is in a transaction that began before it could be seen that this process writes.

    See ``unlocked``. Not for ever: whoever holds things up that long is stopped, and does not read either.
    """
    descriptor = os.open(path / DATA_FILE, os.O_RDONLY)
    try:
        until_s = time.monotonic() + _UNLOCKED_READERS_S
        while time.monotonic() < until_s:
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(_PAUSE_S)
    finally:
        os.close(descriptor)


@contextmanager
def _alone_in(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make_data_file(path: Path, options: LmdbOptions, fill: Callable[[lmdb.Environment], None]) -> None:
    """Make it under another name, whole, then give it its own: no kill leaves half a store."""
    unfinished = path / _NEW_DATA_FILE
    # Left behind by a process that was killed, or it would not be there while this one is alone.
    unfinished.unlink(missing_ok=True)
    try:
        os.close(make_file(unfinished, os.O_WRONLY, options.file_mode))
        with lmdb.open(
            str(unfinished),
            subdir=False,
            lock=False,
            map_size=options.map_bytes,
            sync=options.durability == "power",
            max_dbs=len(DATABASES),
        ) as env:
            fill(env)
        unfinished.rename(path / DATA_FILE)
    finally:
        unfinished.unlink(missing_ok=True)


def _make_lock_file(path: Path, options: LmdbOptions) -> None:
    """Give a new lock file its blocks. LMDB maps it with a hole in it: on a full disk SIGBUS would end the process.

    It appears under its name only when it has them, and never goes away again: two processes with different lock files
    would both write.
    """
    unfinished = path / _NEW_LOCK_FILE
    unfinished.unlink(missing_ok=True)
    descriptor = make_file(unfinished, os.O_WRONLY, options.file_mode)
    try:
        _reserve(descriptor, _LOCK_HEADER_BYTES + options.readers_max * _READER_SLOT_BYTES)
        unfinished.rename(path / LOCK_FILE)
    finally:
        os.close(descriptor)
        unfinished.unlink(missing_ok=True)


def _reserve(descriptor: int, size: int) -> None:
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        # A file system that cannot do it: LMDB takes an empty file too.
        if error.errno not in _UNSUPPORTED:
            raise
