"""Verdicts to a file of JSON lines, dead letters to another beside it; or both to streams."""

import fcntl
import io
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, Final, Literal

from consumer import dead_letter
from consumer.errors import SinkError
from consumer.ports import Answer, Marks, Rejection
from storage.files import FileWriting, open_made, sync_folder

DEAD_LETTERS_SUFFIX: Final = ".dead-letters.jsonl"

Emit = Literal["duplicates", "all", "none"]
"""Which verdicts are written; dead letters always are."""


def dead_letters_path(path: Path) -> Path:
    """Where the dead letters of the sink at ``path`` go."""
    return path.with_name(path.name + DEAD_LETTERS_SUFFIX)


class FileSink:
    """Appends to the files of the sink at ``path``, which one process at a time may do.

    ``start`` is what an earlier run's checkpoint has: what lies beyond it belongs to a batch that was not committed and
    is cut off, since that batch is judged again. Without one (None) there must be nothing yet. ``flush`` waits for the
    disk where ``writing`` says so. ``emit`` says which verdicts are written. Raises ``SinkError``.
    """

    def __init__(self, path: Path, start: Marks | None, writing: FileWriting, *, emit: Emit = "all") -> None:
        self._writing = writing
        self._wanted = emit
        self._letters: _LineFile | None = None
        self._letters_path = dead_letters_path(path)
        verdicts_bytes, letters_bytes = (
            (None, None) if start is None else (start.verdicts_bytes, start.dead_letters_bytes)
        )
        self._verdicts = _LineFile(path, verdicts_bytes, writing)
        if letters_bytes or self._letters_path.exists():
            try:
                self._letters = _LineFile(self._letters_path, letters_bytes, writing)
            except SinkError:
                self._verdicts.close()
                raise

    def emit(self, answers: Sequence[Answer]) -> None:
        """As the port says."""
        self._verdicts.write(_events(answers, self._wanted))

    def reject(self, rejections: Sequence[Rejection]) -> None:
        """As the port says. The file is made when the first letter comes."""
        if rejections:
            if self._letters is None:
                self._letters = _LineFile(self._letters_path, None, self._writing)
            self._letters.write(dead_letter.encode(one.letter) for one in rejections)

    def flush(self) -> None:
        """As the port says."""
        if self._writing.durable:
            for file in self._files():
                file.sync()

    def marks(self) -> Marks:
        """As the port says."""
        return Marks(self._verdicts.size_bytes, 0 if self._letters is None else self._letters.size_bytes)

    def close(self) -> None:
        """As the port says."""
        for file in self._files():
            file.close()

    def _files(self) -> list["_LineFile"]:
        return [self._verdicts] if self._letters is None else [self._verdicts, self._letters]


class StreamSink:
    """Verdicts to one stream, dead letters to another, each flushed with its batch. Raises ``SinkError``.

    ``emit`` says which verdicts are written. A stream that broke is pointed at nothing: what else is printed to
    it would fail once more.
    """

    def __init__(self, out: BinaryIO, err: BinaryIO, *, emit: Emit = "all") -> None:
        self._out = out
        self._err = err
        self._wanted = emit

    def emit(self, answers: Sequence[Answer]) -> None:
        """As the port says."""
        self._write(self._out, "verdicts", _events(answers, self._wanted))

    def reject(self, rejections: Sequence[Rejection]) -> None:
        """As the port says."""
        self._write(self._err, "dead letters", [dead_letter.encode(one.letter) for one in rejections])

    def flush(self) -> None:
        """As the port says; the streams are flushed with every call."""

    def marks(self) -> None:
        """Nothing: a stream cannot be cut back."""

    def close(self) -> None:
        """Nothing: the streams belong to whoever opened them."""

    def _write(self, stream: BinaryIO, what: str, lines: Sequence[bytes]) -> None:
        try:
            stream.write(b"".join(line + b"\n" for line in lines))
            stream.flush()
        except BrokenPipeError as error:
            _silence(stream)
            raise SinkError(f"nobody reads the {what} any more: the pipe was closed at the other end") from error
        except OSError as error:
            _silence(stream)
            raise SinkError(f"the {what} cannot be written: {error.strerror}") from error


def _events(answers: Sequence[Answer], wanted: Emit) -> list[bytes]:
    if wanted == "none":
        return []
    return [one.event for one in answers if wanted == "all" or one.verdict.outcome == "duplicate"]


def _silence(stream: BinaryIO) -> None:
    try:
        descriptor = stream.fileno()
    except io.UnsupportedOperation:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


class _LineFile:
    """A file of lines that is written at its end; ``size_bytes`` counts the lines that are whole."""

    def __init__(self, path: Path, keep_bytes: int | None, writing: FileWriting) -> None:
        self._path = path
        self._descriptor = -1
        try:
            # Opening a named pipe would wait for its reader, and it is refused anyhow.
            self._descriptor = open_made(path, os.O_WRONLY | os.O_NONBLOCK, writing.mode)
            self._lock()
            self.size_bytes = self._cut(keep_bytes)
            if writing.durable:
                sync_folder(path.parent)
        except OSError as error:
            self.close()
            raise self._error(error) from error
        except SinkError:
            self.close()
            raise

    def write(self, lines: Iterable[bytes]) -> None:
        data = b"".join(line + b"\n" for line in lines)
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError as error:
            raise self._error(error) from error
        self.size_bytes += len(data)

    def sync(self) -> None:
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise self._error(error) from error

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _lock(self) -> None:
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            raise SinkError(
                f"{self._path} is no regular file, so a run into it could not be resumed; use - for a stream"
            )
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SinkError(f"{self._path} is being written by another process") from error

    def _cut(self, keep_bytes: int | None) -> int:
        size_bytes = os.fstat(self._descriptor).st_size
        if keep_bytes is None:
            if size_bytes:
                raise SinkError(
                    f"{self._path} is not empty, and no checkpoint beside it says how it came about (only runs with an "
                    "lmdb: or hbase:// store keep one); remove it, or name another sink"
                )
            return 0
        if size_bytes < keep_bytes:
            raise SinkError(
                f"{self._path} has {size_bytes} bytes, but its checkpoint says {keep_bytes}; "
                "restore it, or remove it with its checkpoint to begin anew"
            )
        os.ftruncate(self._descriptor, keep_bytes)
        return os.lseek(self._descriptor, keep_bytes, os.SEEK_SET)

    def _error(self, error: OSError) -> SinkError:
        return SinkError(f"{self._path} cannot be written: {error.strerror}")
