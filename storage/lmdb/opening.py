"""The files of a store: which may be opened, and how new ones are created.

Files get their names only once they are complete: the data file contains its layout before it is named ``data.mdb``.
So an empty data file, or a missing one next to a used lock file, is damage and is never replaced.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import lmdb

from storage.errors import StoreDamaged, StoreRefused
from storage.files import lock_file, make_file, make_folders, sync_folder
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
"""How long a new writer waits for the open transactions of processes that read without a lock."""


def refuse_other_things(path: Path, *, readonly: bool) -> None:
    """Raise ``StoreRefused`` unless there is a store at ``path`` or, for writing, an empty directory or nothing.

    Raises ``StoreDamaged`` if there is a store without its data file.
    """
    if path.exists() and not path.is_dir():
        raise StoreRefused(f"{path} is a file, but a store is a directory. Name another path.")
    nearest = next((parent for parent in path.parents if parent.exists()), None)
    if nearest is not None and not nearest.is_dir():
        raise StoreRefused(f"There cannot be a store at {path}: {nearest} is a file. Name another path.")
    names = {entry.name for entry in path.iterdir()} if path.exists() else set()
    if DATA_FILE in names:
        return
    if LOCK_FILE in names and (path / LOCK_FILE).read_bytes().strip(b"\0"):
        raise StoreDamaged(
            f"The store {path} is damaged: {DATA_FILE} is missing, although its {LOCK_FILE} was used. Restore "
            f"{DATA_FILE}, or remove the directory to start with an empty store."
        )
    if readonly:
        raise StoreRefused(
            f"There is no store in the directory {path}. Name the directory of an existing store; dupwatch run "
            "creates one."
        )
    if names - _OWN_FILES:
        raise StoreRefused(f"The directory {path} holds other files and no store. Name an empty or a new directory.")


def prepare(path: Path, options: LmdbOptions, fill: Callable[[lmdb.Environment], None]) -> None:
    """Create the directory, the data file and the lock file if missing; ``fill`` creates the databases.

    Processes that start at the same time create one store: they lock the directory one after the other.
    """
    make_folders(path, options.file_mode)
    if not os.access(path, os.W_OK | os.X_OK):
        raise StoreRefused(f"This user may not write to the directory {path}.")
    if (path / DATA_FILE).exists() and (path / LOCK_FILE).exists():
        return
    with _locked_directory(path):
        if not (path / DATA_FILE).exists():
            _make_data_file(path, options, fill)
        if not (path / LOCK_FILE).exists():
            _make_lock_file(path, options)
        if options.durability == "power":
            sync_folder(path)


def open_files(path: Path, options: LmdbOptions, *, lock: bool) -> lmdb.Environment:
    """Open existing files; ``lock`` is False only for readers that may not write the lock file."""
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
    """Wait for transactions of readers without a lock that began before they could see this process.

    See ``unlocked``. The wait is bounded: a reader that takes longer must be suspended, so it is not reading.
    """
    descriptor = os.open(path / DATA_FILE, os.O_RDONLY)
    try:
        with suppress(TimeoutError):
            lock_file(descriptor, _UNLOCKED_READERS_S)
    finally:
        os.close(descriptor)


@contextmanager
def _locked_directory(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make_data_file(path: Path, options: LmdbOptions, fill: Callable[[lmdb.Environment], None]) -> None:
    """Create a complete file under another name, then rename it: a kill at any moment leaves no partial store."""
    unfinished = path / _NEW_DATA_FILE
    # Left behind by a killed process, since this one holds the lock of the directory.
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
    """Create a lock file with all its blocks.

    LMDB would map a sparse file too, and a full disk would then end the process with SIGBUS. The file gets its name
    only once it has its blocks, and is never removed: two processes with different lock files would both write.
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
        # If the file system does not support this, the file stays empty, which LMDB accepts too.
        if error.errno not in _UNSUPPORTED:
            raise
