"""The audit log: a line for each requested change of state, in a file to which several processes may append."""

import errno
import fcntl
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from consumer.model.errors import SinkError
from consumer.text.timestamps import rfc3339
from consumer.text.visible import cut, for_terminal
from storage.files import WriteOptions, lock_file, open_or_make, sync_folder

SCHEMA: Final = "dupwatch.audit/1"
ID_CHARS_MAX: Final = 512
"""The maximum length of ``id``."""
TEXT_CHARS_MAX: Final = 128
"""The maximum length of every other field. Longer texts are cut and end with an ellipsis."""
LINE_BYTES_MAX: Final = 16 * 1024
"""An upper bound for the length of a line. A character takes at most twelve bytes."""
LOCK_S: Final = 5.0
"""How long to wait while another process appends. Normally that takes less than a millisecond."""
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC


class ChangeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Who changed what, when and from where. Fields that do not apply, as on the command line, are None."""

    at_ms: int
    """The time of the change, in milliseconds since 1970."""
    token: str | None = None
    """The name of the token, never its secret."""
    owner: str
    """The owner of the token, the user who ran the command, or "this machine" for a request without a token."""
    address: str | None = None
    """The address that the request came from."""
    action: str
    """The requested action, for example tokens.add or articles.release."""
    id: str
    """The target of the action: an article's id, or the name of a token, a bank or an item."""
    result: str
    """The result of the action."""
    request_id: str | None = None
    """The id of the request, as in its answer and in the log."""


def line_of(change: ChangeRecord) -> bytes:
    r"""Return the line of a change, with its line end; at most ``LINE_BYTES_MAX`` bytes.

    Control and format characters are written as ``\uXXXX``, so that values contain no line ends or escape sequences.
    Characters that are not valid Unicode are written with Python's escapes.
    """
    fields = {name: _bounded(name, value) for name, value in msgspec.structs.asdict(change).items() if name != "at_ms"}
    line = {"schema": SCHEMA, "at": rfc3339(change.at_ms)} | fields
    return for_terminal(msgspec.json.encode(line)) + b"\n"


def _bounded(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    bounded = cut(value, ID_CHARS_MAX if name == "id" else TEXT_CHARS_MAX)
    return bounded.encode(errors="backslashreplace").decode()


class ChangesRecorded(NamedTuple):
    """Lines were written to the audit log, and to the disk if the log is durable."""

    lines: int


class ChangesUnrecorded(NamedTuple):
    """Lines could not be written to the audit log."""

    lines: int
    error: str


class AuditLog:
    """A log file, created if missing, to which any number of threads may append changes.

    Each append first checks that the file still has its name, so a file that logrotate has renamed gets no further
    lines. ``report`` gets ``ChangesRecorded`` and ``ChangesUnrecorded``, from the thread that appends. Raises
    ``SinkError`` if the file cannot be opened.
    """

    def __init__(self, path: Path, writing: WriteOptions, report: Callable[[object], None]) -> None:
        self._path = path
        self._writing = writing
        self._report = report
        self._lock = threading.Lock()
        try:
            self._descriptor = self._open()
        except OSError as error:
            raise self._unwritable(error) from error

    def append(self, changes: Sequence[ChangeRecord]) -> None:
        """Append a line for each change. Raises ``SinkError`` if the file cannot be opened, locked, written or flushed.

        When it returns, the lines are in the file; if the log is durable, they survive a power loss. Append after a
        change and before acknowledging it, because clients without an answer repeat their requests. A change may then
        have two lines, but every acknowledged change has at least one.
        """
        data = b"".join(map(line_of, changes))
        try:
            with self._lock:
                with self._locked_file() as descriptor:
                    _append(descriptor, data)
                # Outside the file lock, so that other processes can append while this one waits for the disk.
                if self._writing.durable:
                    os.fsync(self._descriptor)
        except OSError as error:
            self._report(ChangesUnrecorded(len(changes), error.strerror or str(error)))
            raise self._unwritable(error) from error
        self._report(ChangesRecorded(len(changes)))

    def close(self) -> None:
        """Close the file. Closing again does nothing."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    @contextmanager
    def _locked_file(self) -> Iterator[int]:
        """Lock the file that is at the path now, and yield its descriptor. Opens it if the former file was moved."""
        while True:
            if self._descriptor < 0:
                self._descriptor = self._open()
            lock_file(self._descriptor, LOCK_S)
            if self._is_at_path():
                break
            self._drop()
        try:
            yield self._descriptor
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _is_at_path(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except FileNotFoundError:
            return False

    def _open(self) -> int:
        descriptor = open_or_make(self._path, _FLAGS, self._writing.mode)
        try:
            _check_kind(descriptor)
            if self._writing.durable:
                sync_folder(self._path.resolve().parent)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def _unwritable(self, error: OSError) -> SinkError:
        return SinkError(f"the audit log {self._path} cannot be written: {error.strerror or error}")


def _check_kind(descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")


def _append(descriptor: int, data: bytes) -> None:
    """Append lines, normally with one write. If that fails, for example on a full disk, remove what was written."""
    size_bytes = os.fstat(descriptor).st_size
    if size_bytes and os.pread(descriptor, 1, size_bytes - 1) != b"\n":
        # Another process was killed while it wrote a line. Begin a new line.
        data = b"\n" + data
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        # Append-only files (chattr +a) cannot be truncated. The next append to one begins with a line end.
        with suppress(OSError):
            os.ftruncate(descriptor, size_bytes)
        raise
