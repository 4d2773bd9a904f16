"""The audit log: a line for each change of state that somebody asked for, in a file to which many may append."""

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
from storage.files import FileWriting, lock_file, open_made, sync_folder

SCHEMA: Final = "dupwatch.audit/1"
ID_CHARS_MAX: Final = 512
"""No id of an article is longer."""
TEXT_CHARS_MAX: Final = 128
"""Longest text of every other field. What is longer is cut, and ends with an ellipsis."""
LINE_BYTES_MAX: Final = 16 * 1024
"""No line is longer, whatever is in its fields: a character takes twelve bytes at most."""
LOCK_S: Final = 5.0
"""How long to wait for another process that appends; it needs less than a millisecond."""
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC


class ChangeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Who changed what, when and from where. None where there is no such thing, on the command line for example."""

    at_ms: int
    """When the change was made, in milliseconds since 1970."""
    token: str | None = None
    """The name of the token, never its secret."""
    owner: str
    """Whose token it is, or who ran the command."""
    address: str | None = None
    """Where the request came from."""
    action: str
    """What was asked for: tokens.add, articles.release."""
    id: str
    """What it was asked for: an article's id, or a token's name."""
    result: str
    """What came of it."""
    request_id: str | None = None
    """The id of the request, which its answer and the log have too."""


def line_of(change: ChangeRecord) -> bytes:
    r"""Return the line of a change, with its line end; at most ``LINE_BYTES_MAX`` bytes.

    Control and format characters are written as ``\uXXXX``, so that no reader sees a line end or an escape sequence in
    it. What is not UTF-8 is written with Python's escapes.
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
    """So many lines are in the audit log, and on the disk if it is durable."""

    lines: int


class ChangesUnrecorded(NamedTuple):
    """So many lines could not be written."""

    lines: int
    why: str


class AuditLog:
    """Appends changes to a file, which is created if there is none; for any number of threads.

    Before each append it looks whether the file still has its name. So a file that was renamed, as logrotate does, gets
    no further line. ``report`` gets the occurrences of this module, from the thread that appends. Raises ``SinkError``
    if the file cannot be opened.
    """

    def __init__(self, path: Path, writing: FileWriting, report: Callable[[object], None]) -> None:
        self._path = path
        self._writing = writing
        self._report = report
        self._lock = threading.Lock()
        try:
            self._descriptor = self._opened()
        except OSError as error:
            raise self._unwritable(error) from error

    def append(self, changes: Sequence[ChangeRecord]) -> None:
        """Append a line for each change: all of them, or none. Raises ``SinkError``.

        When it returns, the lines are in the file; if it is durable, they outlast a power loss. So append after a
        change and before it is acknowledged: who gets no answer repeats the request. Then a change may have two lines,
        and no acknowledged one has none.
        """
        data = b"".join(map(line_of, changes))
        try:
            with self._lock:
                with self._current() as descriptor:
                    _append(descriptor, data)
                # The lock of the file is given back before: others append while this waits for the disk.
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
    def _current(self) -> Iterator[int]:
        """Lock the file that has the name now, for this process alone, and yield its descriptor."""
        while True:
            if self._descriptor < 0:
                self._descriptor = self._opened()
            lock_file(self._descriptor, LOCK_S)
            if self._has_the_name():
                break
            self._drop()
        try:
            yield self._descriptor
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _has_the_name(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except FileNotFoundError:
            return False

    def _opened(self) -> int:
        descriptor = open_made(self._path, _FLAGS, self._writing.mode)
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
    """Append lines with one write; where the disk is full, cut off what got in."""
    size_bytes = os.fstat(descriptor).st_size
    if size_bytes and os.pread(descriptor, 1, size_bytes - 1) != b"\n":
        # A process was killed within its line, and must not cost us ours.
        data = b"\n" + data
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        # Refused where the file may only grow (chattr +a); the next line begins after a line end then.
        with suppress(OSError):
            os.ftruncate(descriptor, size_bytes)
        raise
