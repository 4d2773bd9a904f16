"""Files and folders as this program makes them: for their owner alone unless a setting says otherwise, and durable.

Stores, sinks and what lies beside them hold people's texts. The modes are set after the file was made, so they do not
depend on the umask that the process inherited. What exists already keeps its mode.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600
"""The owner reads and writes; nobody else does either."""
_READ_BITS: Final = 0o444
_READ_TO_SEARCH: Final = 2
"""How far a bit for reading is from the one that lets the same people into a folder."""


@dataclass(frozen=True, slots=True)
class FileWriting:
    """How files are written: ``durable`` waits for the disk, ``mode`` is that of a file that is made."""

    durable: bool
    mode: int = FILE_MODE


def folder_mode(file_mode: int) -> int:
    """The mode of a folder whose files have this one: whoever may read them may enter."""
    return file_mode | (file_mode & _READ_BITS) >> _READ_TO_SEARCH


def open_made(path: Path, flags: int, file_mode: int) -> int:
    """Open a file, and make it with this mode if there is none; the descriptor. Raises ``OSError``."""
    while True:
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            pass
        try:
            return make_file(path, flags, file_mode)
        except FileExistsError:
            # Somebody was faster, or it is a link to a file that is not there, which is what the link asks for.
            if path.is_symlink():
                return _with_mode(os.open(path, flags | os.O_CREAT, FILE_MODE), file_mode)


def make_file(path: Path, flags: int, file_mode: int) -> int:
    """Make a file with this mode and open it; the descriptor. Raises ``FileExistsError`` if there is anything."""
    # Never wider than it is meant to be, not even for the moment before its mode is set.
    return _with_mode(os.open(path, flags | os.O_CREAT | os.O_EXCL, FILE_MODE), file_mode)


def mode_of(path: Path, file_mode: int) -> int:
    """The mode of a file that is about to be replaced, or ``file_mode`` if there is none."""
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        return file_mode


def replace_file(path: Path, passing: Path, content: bytes, writing: FileWriting) -> None:
    """Put a file in the place of another at once, with its mode; ``passing`` is the name it has until it is whole.

    The content is on the disk before the name is: a loss of power leaves the old file or the new one.
    """
    # What a killed process left there, or a link that somebody else made.
    passing.unlink(missing_ok=True)
    descriptor = make_file(passing, os.O_WRONLY, mode_of(path, writing.mode))
    with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor has no path
        file.write(content)
        file.flush()
        if writing.durable:
            os.fsync(file.fileno())
    passing.replace(path)
    if writing.durable:
        sync_folder(path.parent)


def make_folders(folder: Path, file_mode: int) -> None:
    """Make a folder and its missing parents for files of this mode; all of them outlive a loss of power."""
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
    """Make the names in a folder durable: a file's own ``fsync`` does not."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _with_mode(descriptor: int, file_mode: int) -> int:
    try:
        os.fchmod(descriptor, file_mode)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
