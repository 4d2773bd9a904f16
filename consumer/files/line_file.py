"""A file of lines that grows at its end, plain or gzip, and can be cut back to its length after any write.

A file whose name ends with .gz gets one gzip member per write. Members are independent, so a file that is cut back to
the end of a write is valid, and a later run can append to it. By RFC 1952 a concatenation of members is a gzip file,
which every reader accepts.
"""

import fcntl
import os
import stat
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from consumer.decode.codecs import COMPRESSIONS, GZIP
from consumer.decode.decompression import WBITS
from consumer.model.errors import ConfigError, SinkError
from storage.files import WriteOptions, open_or_make, sync_folder

_EMPTY_MEMBER: Final = zlib.compress(b"", wbits=WBITS)
"""A gzip file without content; gzip considers an empty file damaged."""
_PACKED_SUFFIXES: Final = frozenset(compression.suffix for compression in COMPRESSIONS) | frozenset(
    {".br", ".lz", ".lzma", ".rar", ".sz", ".tar", ".tgz", ".z", ".zip", ".7z"}
)
_BLOCK_BYTES: Final = 64 * 1024


def check_suffix(path: Path, what: str, *, gzip: bool = True) -> None:
    """Raise ``ConfigError`` if the suffix of a name promises a format in which ``what`` is not written.

    ``gzip`` says whether ``what`` may be written as gzip.
    """
    suffix = path.suffix.lower()
    written = {GZIP.suffix} if gzip else set()
    if suffix in _PACKED_SUFFIXES - written:
        formats = "as plain text, or as gzip to a name that ends with .gz" if gzip else "as plain text only"
        raise ConfigError(
            f"{path}: dupwatch writes {what} {formats}; choose a name that does not end with {path.suffix}"
        )


def check_line_file(path: Path, keep_bytes: int | None, why_not_append: str) -> None:
    """Raise the ``SinkError`` that ``LineFile`` would raise for a file. Creates and changes nothing.

    It does not notice that a missing file cannot be created.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        _check_missing(path, keep_bytes)
        return
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        _lock(path, descriptor)
        _check_content(path, descriptor, keep_bytes, why_not_append)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        os.close(descriptor)


class WholeLines(NamedTuple):
    """A rule that keeps the whole lines of a file without a checkpoint. Errors call its content ``what``.

    The first line must start with ``start``, so that nothing is cut off from another kind of file.
    """

    start: bytes
    what: str

    def kept_bytes(self, path: Path) -> int:
        """Return the size of the file's whole lines. Raises ``OSError``, or ``SinkError`` for another kind of file."""
        with path.open("rb") as file:
            first_bytes = file.read(len(self.start))
            if not self.start.startswith(first_bytes):
                raise SinkError(f"{path} is not a file of {self.what}, so nothing is appended to it; name another file")
            end = file.seek(0, 2)
            while end:
                block = max(0, end - _BLOCK_BYTES)
                file.seek(block)
                newline = file.read(end - block).rfind(b"\n")
                if newline >= 0:
                    return block + newline + 1
                end = block
        return 0


class LineFile:
    """The file at ``path``, cut back to its first ``keep_bytes``, for one process at a time.

    If ``keep_bytes`` is None, the file must be empty; if it is not, ``why_not_append`` completes the error.
    ``WholeLines`` decides how much to keep of a file without a checkpoint. ``size_bytes`` is the length of the file
    after the last complete write. If the constructor raises ``SinkError``, it has removed any file that it created.
    """

    def __init__(
        self, path: Path, keep_bytes: int | WholeLines | None, writing: WriteOptions, why_not_append: str
    ) -> None:
        self._path = path
        self._descriptor = -1
        self._is_gzip = _is_gzip(path)
        self.size_bytes = 0
        self._is_new = not path.exists()
        if self._is_new and not isinstance(keep_bytes, WholeLines):
            _check_missing(path, keep_bytes)
        try:
            # Without O_NONBLOCK, opening a named pipe would wait for its reader. Pipes are refused below.
            self._descriptor = open_or_make(path, os.O_WRONLY | os.O_NONBLOCK, writing.mode)
            _lock(path, self._descriptor)
            # Read only under the lock, when no other process adds lines.
            kept = keep_bytes.kept_bytes(path) if isinstance(keep_bytes, WholeLines) else keep_bytes
            _check_content(path, self._descriptor, kept, why_not_append)
            self.size_bytes = kept or 0
            os.ftruncate(self._descriptor, self.size_bytes)
            os.lseek(self._descriptor, self.size_bytes, os.SEEK_SET)
            if writing.durable:
                sync_folder(path.parent)
        except OSError as error:
            self.discard()
            raise _unwritable(path, error) from error
        except SinkError:
            self.discard()
            raise

    def write(self, lines: Iterable[bytes]) -> None:
        """Append lines. ``size_bytes`` grows only if all of them were written. Raises ``SinkError``."""
        data = b"".join(line + b"\n" for line in lines)
        if data:
            self._append(zlib.compress(data, wbits=WBITS) if self._is_gzip else data)

    def sync(self) -> None:
        """Wait until the file is on the disk. Raises ``SinkError``."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise _unwritable(self._path, error) from error

    def close(self) -> None:
        """Close the file. An empty gzip file gets an empty member, so that gzip accepts it."""
        if self._descriptor < 0:
            return
        try:
            if self._is_gzip and not self.size_bytes:
                self._append(_EMPTY_MEMBER)
        finally:
            os.close(self._descriptor)
            self._descriptor = -1

    def discard(self) -> None:
        """Close the file, and remove it if this object created it and it is empty."""
        if self._descriptor < 0:
            return
        # Removed while it is locked, so that no other process writes to it.
        if self._is_new and not os.fstat(self._descriptor).st_size:
            # If the path is a link, this object created its target, not the link.
            Path(os.path.realpath(self._path)).unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = -1

    def _append(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError as error:
            raise _unwritable(self._path, error) from error
        self.size_bytes += len(data)


def _is_gzip(path: Path) -> bool:
    return path.suffix.lower() == GZIP.suffix


def _first_bytes(path: Path, bytes_max: int) -> bytes:
    with path.open("rb") as file:
        return file.read(bytes_max)


def _lock(path: Path, descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise SinkError(f"{path} is not a regular file, so a run into it could not be resumed; use - for a stream")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise SinkError(f"{path} is being written by another process") from error


def _check_missing(path: Path, keep_bytes: int | None) -> None:
    if keep_bytes:
        raise SinkError(
            f"{path} is gone, but its checkpoint says that it has {keep_bytes} bytes; "
            "restore it, or remove the checkpoint too to start again"
        )


def _check_content(path: Path, descriptor: int, keep_bytes: int | None, why_not_append: str) -> None:
    size_bytes = os.fstat(descriptor).st_size
    first_bytes = _first_bytes(path, len(_EMPTY_MEMBER) + 1) if size_bytes and _is_gzip(path) else b""
    if keep_bytes is None:
        if size_bytes and first_bytes != _EMPTY_MEMBER:
            raise SinkError(
                f"{path} is not empty, and {why_not_append}; name another file, or remove this one if it is not needed"
            )
        return
    if size_bytes < keep_bytes:
        raise SinkError(
            f"{path} has {size_bytes} bytes, but its checkpoint says {keep_bytes}; "
            "restore it, or remove it and its checkpoint to start again"
        )
    if keep_bytes and _is_gzip(path) and not first_bytes.startswith(GZIP.magic):
        raise SinkError(
            f"{path} is plain text, as an earlier version wrote it, and would be continued as gzip; "
            f"rename it and its checkpoint so that its name does not end with {GZIP.suffix}, and name the renamed file "
            "as the sink"
        )


def _unwritable(path: Path, error: OSError) -> SinkError:
    if isinstance(error, FileNotFoundError):
        advice = f"create the directory {path.parent}, or name another file"
        return SinkError(f"{path} cannot be written: {error.strerror}; {advice}")
    return SinkError(f"{path} cannot be written: {error.strerror}")
