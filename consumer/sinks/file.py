"""Verdicts to a file of JSON lines, dead letters to another beside it; or both to streams."""

import io
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final, Literal

from consumer.model import dead_letter
from consumer.model.errors import SinkError
from consumer.model.ports import Answer, Marks, Rejection
from consumer.sinks.line_file import LineFile, check_line_file
from storage.files import FileWriting

DEAD_LETTERS_SUFFIX: Final = ".dead-letters.jsonl"

Emit = Literal["duplicates", "all", "none"]
"""Which verdicts are written; dead letters always are."""


def dead_letters_path(path: Path) -> Path:
    """Where the dead letters of the sink at ``path`` go."""
    return path.with_name(path.name + DEAD_LETTERS_SUFFIX)


UNEXPLAINED: Final = "there is no checkpoint beside it that says what wrote it"
"""Why a run does not append to a file that has something in it."""


def check_file_sink(path: Path, start: Marks | None, unexplained: str = UNEXPLAINED) -> None:
    """Raise the ``SinkError`` that ``FileSink`` would raise for what the files hold. Makes and changes nothing."""
    verdicts_bytes, letters_bytes = _kept(start)
    check_line_file(path, verdicts_bytes, unexplained)
    check_line_file(dead_letters_path(path), letters_bytes, unexplained)


class FileSink:
    """Appends to the files of the sink at ``path``, which one process at a time may do.

    ``start`` is what an earlier run's checkpoint has: what lies beyond it belongs to a batch that was not committed and
    is cut off, since that batch is judged again. Without one (None) there must be nothing yet; ``unexplained`` says why
    the run cannot append to what is there. ``flush`` waits for the disk where ``writing`` says so. ``emit`` says which
    verdicts are written. Verdicts are compressed where the name ends with .gz. Raises ``SinkError``, and then leaves no
    file behind that it made.
    """

    def __init__(
        self,
        path: Path,
        start: Marks | None,
        writing: FileWriting,
        *,
        emit: Emit = "all",
        unexplained: str = UNEXPLAINED,
    ) -> None:
        self._writing = writing
        self._wanted = emit
        self._unexplained = unexplained
        self._letters: LineFile | None = None
        self._letters_path = dead_letters_path(path)
        verdicts_bytes, letters_bytes = _kept(start)
        with ExitStack() as undone:
            self._verdicts = LineFile(path, verdicts_bytes, writing, unexplained)
            undone.callback(self._verdicts.discard)
            if letters_bytes or self._letters_path.exists():
                self._letters = LineFile(self._letters_path, letters_bytes, writing, unexplained)
            undone.pop_all()

    def emit(self, answers: Sequence[Answer]) -> None:
        """As the port says."""
        self._verdicts.write(_events(answers, self._wanted))

    def reject(self, rejections: Sequence[Rejection]) -> None:
        """As the port says. The file is made when the first letter comes."""
        if rejections:
            if self._letters is None:
                self._letters = LineFile(self._letters_path, None, self._writing, self._unexplained)
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

    def discard(self) -> None:
        """Close it, and remove the files that it made: nothing was written, and the run does not begin."""
        for file in self._files():
            file.discard()

    def _files(self) -> list[LineFile]:
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


def _kept(start: Marks | None) -> tuple[int | None, int | None]:
    return (None, None) if start is None else (start.verdicts_bytes, start.dead_letters_bytes)


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
