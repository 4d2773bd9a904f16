"""Creates, replaces and locks durable files and folders. By default, only their owner can read them.

Stores, sinks and their checkpoints hold people's texts. Modes are set after a file is created, so they do not depend on
the umask that the process inherited. ``open_or_make`` and ``replace_file`` keep the mode of an existing file.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from storage.backoff import Backoff

FILE_MODE: Final = 0o600
"""Only the owner may read and write."""
_READ_BITS: Final = 0o444
_LOCK_PAUSES: Final = Backoff(0.02, 0.02)
_READ_TO_SEARCH: Final = 2
"""How far to shift the bit for reading a file to get the bit for entering a folder."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options for writing files: ``durable`` waits for the disk, ``mode`` is the mode of new files."""

    durable: bool
    mode: int = FILE_MODE


def folder_mode(file_mode: int) -> int:
    """Return the mode of a folder for files of this mode: users who may read the files may enter it."""
    return file_mode | (file_mode & _READ_BITS) >> _READ_TO_SEARCH


def open_or_make(path: Path, flags: int, file_mode: int) -> int:
    """Open a file, create it with this mode if missing, and return its descriptor. Raises ``OSError``."""
    while True:
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            pass
        try:
            return make_file(path, flags, file_mode)
        except FileExistsError:
            # Another process was faster, or this is a link to a missing file, which is then created.
            if path.is_symlink():
                return _with_mode(os.open(path, flags | os.O_CREAT, FILE_MODE), file_mode)


def may_write(path: Path) -> bool:
    """Return whether this process may write to a file or create it; for a folder, whether it may create files there.

    Returns True if the parent folder does not exist either.
    """
    if not path.exists():
        return not path.parent.exists() or may_write(path.parent)
    return os.access(path, os.W_OK | (os.X_OK if path.is_dir() else 0), effective_ids=True)


def make_file(path: Path, flags: int, file_mode: int) -> int:
    """Create a file with this mode and return its descriptor. Raises ``FileExistsError`` if the name is taken."""
    # Never wider than intended, not even for the moment before the mode is set.
    return _with_mode(os.open(path, flags | os.O_CREAT | os.O_EXCL, FILE_MODE), file_mode)


@contextmanager
def opened_regular_file(path: Path) -> Iterator[tuple[int, os.stat_result]]:
    """Open a regular file for reading; yield its descriptor and status. Raises ``OSError`` if that is not possible."""
    # Without O_NONBLOCK, opening a named pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        yield descriptor, status
    finally:
        os.close(descriptor)


def mode_of(path: Path, file_mode: int) -> int:
    """Return the mode of a file that is about to be replaced, or ``file_mode`` if there is none."""
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        return file_mode


def replace_file(path: Path, temporary: Path, content: bytes, writing: WriteOptions) -> None:
    """Replace a file atomically and keep its mode; the new file is named ``temporary`` until it is complete.

    If ``writing`` is durable, the content reaches the disk before the name does. Then a power loss leaves either the
    old file or the new one.
    """
    replace_with_pieces(path, temporary, [content], replace(writing, mode=mode_of(path, writing.mode)))


def replace_with_pieces(
    path: Path, temporary: Path, pieces: Iterable[bytes | memoryview], writing: WriteOptions
) -> None:
    """Replace a file as ``replace_file`` does, with the pieces as its content and the mode of ``writing``."""
    # A killed process may have left this file, or another user may have made it a link.
    temporary.unlink(missing_ok=True)
    descriptor = make_file(temporary, os.O_WRONLY, writing.mode)
    with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor has no path
        file.writelines(pieces)
        file.flush()
        if writing.durable:
            os.fsync(file.fileno())
    temporary.replace(path)
    if writing.durable:
        sync_folder(path.parent)


def make_folders(folder: Path, file_mode: int) -> None:
    """Create a folder and its missing parents for files of this mode; all of them survive a power loss."""
    if folder.is_dir():
        return
    make_folders(folder.parent, file_mode)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not folder.is_dir():
            raise
        return
    folder.chmod(folder_mode(file_mode))
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk, which ``fsync`` of a file does not do."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock_file(descriptor: int, wait_s: float) -> None:
    """Take the exclusive ``flock`` of an open file or folder, which is released when the descriptor is closed.

    Raises ``TimeoutError``, which is an ``OSError``, if another process still has the lock after ``wait_s`` seconds.
    """
    lock = partial(fcntl.flock, descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        _LOCK_PAUSES.call(lock, lambda error: isinstance(error, BlockingIOError), wait_s)
    except BlockingIOError:
        raise TimeoutError(f"another process has kept it locked for {wait_s:g} s") from None


@contextmanager
def locked_folder(folder: Path, wait_s: float) -> Iterator[None]:
    """Hold the lock of a folder, as ``lock_file`` does, to guard files that are replaced and cannot be locked."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        lock_file(descriptor, wait_s)
        yield
    finally:
        os.close(descriptor)


def _with_mode(descriptor: int, file_mode: int) -> int:
    try:
        os.fchmod(descriptor, file_mode)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
