"""A file of lines that grows at its end, plain or gzip, and can be cut back to where it was after any write.

A file whose name ends with .gz gets one gzip member for each write. Members are independent of one another, so a file
that is cut back to the end of a write is whole, and a later run appends to it. A concatenation of members is a gzip
file by RFC 1952, and every reader takes it for one.
"""

import fcntl
import os
import stat
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from consumer.decode.codecs import CODECS, GZIP
from consumer.model.errors import ConfigError, SinkError
from storage.files import FileWriting, open_made, sync_folder

_WBITS_GZIP: Final = 31
_EMPTY_MEMBER: Final = zlib.compress(b"", wbits=_WBITS_GZIP)
"""What a gzip file without content is; a file of no bytes is a damaged one to gzip."""
_PACKED_SUFFIXES: Final = frozenset(
    {".br", ".bz2", ".lz", ".lz4", ".lzma", ".rar", ".sz", ".tar", ".tgz", ".xz", ".z", ".zip", ".zst", ".7z"}
)


def check_suffix(path: Path, what: str, *, gzip: bool = True) -> None:
    """Raise ``ConfigError`` where a name promises a format in which ``what`` is not written."""
    suffix = path.suffix.lower()
    written = {GZIP.suffix} if gzip else set()
    if suffix in (_PACKED_SUFFIXES | {codec.suffix for codec in CODECS}) - written:
        formats = "as plain text, or as gzip to a name that ends with .gz" if gzip else "as plain text only"
        raise ConfigError(f"{path}: dupwatch writes {what} {formats}; give the file another name than *{path.suffix}")


def check_line_file(path: Path, keep_bytes: int | None, unexplained: str) -> None:
    """Raise the ``SinkError`` that ``LineFile`` would raise for what is there. Makes and changes nothing."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        _check_missing(path, keep_bytes)
        return
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        _lock(path, descriptor)
        _check_content(path, descriptor, keep_bytes, unexplained)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        os.close(descriptor)


class LineFile:
    """The file at ``path``, cut back to its first ``keep_bytes``, for one process at a time.

    With None for ``keep_bytes`` there must be nothing in it; ``unexplained`` says why. ``size_bytes`` is the length of
    the file after the last whole write. Raises ``SinkError``, and then leaves no file behind that it made.
    """

    def __init__(self, path: Path, keep_bytes: int | None, writing: FileWriting, unexplained: str) -> None:
        self._path = path
        self._descriptor = -1
        self._is_gzip = _is_gzip(path)
        self._is_new = not path.exists()
        if self._is_new:
            _check_missing(path, keep_bytes)
        self.size_bytes = keep_bytes or 0
        try:
            # Opening a named pipe would wait for its reader, and it is refused anyhow.
            self._descriptor = open_made(path, os.O_WRONLY | os.O_NONBLOCK, writing.mode)
            _lock(path, self._descriptor)
            _check_content(path, self._descriptor, keep_bytes, unexplained)
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
        """Append lines, all of them or, as far as ``size_bytes`` tells, none."""
        data = b"".join(line + b"\n" for line in lines)
        if data:
            self._append(zlib.compress(data, wbits=_WBITS_GZIP) if self._is_gzip else data)

    def sync(self) -> None:
        """Wait for the disk."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise _unwritable(self._path, error) from error

    def close(self) -> None:
        """Let go of the file. An empty gzip file becomes one that gzip reads."""
        if self._descriptor < 0:
            return
        try:
            if self._is_gzip and not self.size_bytes:
                self._append(_EMPTY_MEMBER)
        finally:
            os.close(self._descriptor)
            self._descriptor = -1

    def discard(self) -> None:
        """Let go of the file, and remove it if it was made here and is empty."""
        if self._descriptor < 0:
            return
        # Removed while it is locked: nobody else writes to it.
        if self._is_new and not os.fstat(self._descriptor).st_size:
            # By way of a link it is the file that was made, not the link.
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
        raise SinkError(f"{path} is no regular file, so a run into it could not be resumed; use - for a stream")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise SinkError(f"{path} is being written by another process") from error


def _check_missing(path: Path, keep_bytes: int | None) -> None:
    if keep_bytes:
        raise SinkError(
            f"{path} is gone, but its checkpoint says that it has {keep_bytes} bytes; "
            "restore it, or remove the checkpoint too to begin anew"
        )


def _check_content(path: Path, descriptor: int, keep_bytes: int | None, unexplained: str) -> None:
    size_bytes = os.fstat(descriptor).st_size
    begins = _first_bytes(path, len(_EMPTY_MEMBER) + 1) if size_bytes and _is_gzip(path) else b""
    if keep_bytes is None:
        if size_bytes and begins != _EMPTY_MEMBER:
            raise SinkError(
                f"{path} is not empty, and {unexplained}; name another file, or remove this one if nobody needs it"
            )
        return
    if size_bytes < keep_bytes:
        raise SinkError(
            f"{path} has {size_bytes} bytes, but its checkpoint says {keep_bytes}; "
            "restore it, or remove it with its checkpoint to begin anew"
        )
    if keep_bytes and _is_gzip(path) and not begins.startswith(GZIP.magic):
        raise SinkError(
            f"{path} is plain text, as an earlier version wrote it, and would be gzip from here on; "
            f"rename it and its checkpoint so that its name does not end with {GZIP.suffix}, and name that as the sink"
        )


def _unwritable(path: Path, error: OSError) -> SinkError:
    return SinkError(f"{path} cannot be written: {error.strerror}")
