"""Sinks that write verdicts to a file or a stream and dead letters to a stream, as lines of JSON, or discard both."""

import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from typing_extensions import override

from consumer.files.line_file import LineFile, WholeLines
from consumer.model.bank_match import is_denied
from consumer.model.dead_letter import encode
from consumer.model.errors import SinkError
from consumer.model.ports import DeadLetterSink, Emit, JudgedRecord, Rejection, ReleasingSink, UnbufferedOutput
from consumer.model.verdict import SCHEMA, Verdict
from storage.files import WriteOptions

NO_CHECKPOINT: Final = "there is no checkpoint next to it that records which run wrote it"
"""Why a run does not append to a file that is not empty."""
WHOLE_VERDICTS: Final = WholeLines(f'{{"schema":"{SCHEMA}"'.encode(), "verdicts")
"""Keeps all verdicts of a file that has no checkpoint."""


class FileSink(ReleasingSink):
    """A file of verdicts at ``path``. One process at a time appends to it.

    ``keep_bytes`` comes from the checkpoint of an earlier run: the bytes after it belong to a batch that was not
    committed, and are cut off because that batch is judged again. Without a checkpoint (None) the file must be empty;
    if it is not, ``why_not_append`` completes the error. With ``WHOLE_VERDICTS`` every verdict in the file is kept, and
    only an incomplete last one, left by a killed process, is cut off. ``flush`` waits for the disk if ``writing`` is
    durable. ``emit`` selects the verdicts, which are compressed if the name ends with .gz. If the constructor raises
    ``SinkError``, it has removed any file that it created.
    """

    def __init__(
        self,
        path: Path,
        keep_bytes: int | WholeLines | None,
        writing: WriteOptions,
        *,
        emit: Emit = "all",
        why_not_append: str = NO_CHECKPOINT,
    ) -> None:
        self._durable = writing.durable
        self._emit = emit
        self._file = LineFile(path, keep_bytes, writing, why_not_append)

    @override
    def emit(self, answers: Sequence[JudgedRecord]) -> None:
        self._file.write(selected_events(answers, self._emit))

    @override
    def release(self, answer: JudgedRecord) -> None:
        self._file.write(released_events(answer, self._emit))

    @override
    def flush(self) -> None:
        if self._durable:
            self._file.sync()

    @override
    def size_bytes(self) -> int:
        return self._file.size_bytes

    @override
    def close(self) -> None:
        self._file.close()

    def discard(self) -> None:
        """Close the file, and remove it if this sink created it and it is empty, since the run does not begin."""
        self._file.discard()


class StreamSink(UnbufferedOutput, ReleasingSink):
    """A stream of verdicts, which is flushed with every batch. ``emit`` selects the verdicts."""

    def __init__(self, out: BinaryIO, *, emit: Emit = "all") -> None:
        self._out = out
        self._emit = emit

    @override
    def emit(self, answers: Sequence[JudgedRecord]) -> None:
        write_bytes(self._out, "verdicts", _lines(selected_events(answers, self._emit)))

    @override
    def release(self, answer: JudgedRecord) -> None:
        write_bytes(self._out, "verdicts", _lines(released_events(answer, self._emit)))


class StreamDeadLetters(UnbufferedOutput, DeadLetterSink):
    """A stream of letters as JSON lines, which is flushed with every batch. Letters cannot be read back."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    @override
    def reject(self, rejections: Sequence[Rejection]) -> None:
        write_bytes(self._stream, "dead letters", _lines(encode(rejection.letter) for rejection in rejections))


class NullSink(UnbufferedOutput, ReleasingSink, DeadLetterSink):
    """Discards verdicts and dead letters, for runs whose result is in the store."""

    @override
    def emit(self, answers: Sequence[JudgedRecord]) -> None: ...

    @override
    def release(self, answer: JudgedRecord) -> None: ...

    @override
    def reject(self, rejections: Sequence[Rejection]) -> None: ...


def selected_events(answers: Sequence[JudgedRecord], emit: Emit) -> list[bytes]:
    """Return the events of the verdicts that ``emit`` selects."""
    if emit == "none":
        return []
    return [answer.event.encoded for answer in answers if emit == "all" or _is_reported(answer.event.verdict)]


def _is_reported(verdict: Verdict) -> bool:
    """Return whether ``duplicates`` selects a verdict: a flag, or an article that a bank denies."""
    return verdict.outcome == "duplicate" or is_denied(verdict)


def released_events(answer: JudgedRecord, emit: Emit) -> list[bytes]:
    """Return the event of a release, unless ``emit`` selects nothing."""
    return [] if emit == "none" else [answer.event.encoded]


def write_bytes(stream: BinaryIO, what: str, data: bytes) -> None:
    """Write data to a stream and flush it. Raises ``SinkError``, whose message calls the data ``what``.

    A broken stream is redirected to /dev/null, so that later output to it does not fail too.
    """
    try:
        stream.write(data)
        stream.flush()
    except BrokenPipeError as error:
        _silence(stream)
        raise SinkError(f"the {what} cannot be written: the pipe was closed at the other end") from error
    except OSError as error:
        _silence(stream)
        raise SinkError(f"the {what} cannot be written: {error.strerror}") from error


def _lines(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _silence(stream: BinaryIO) -> None:
    try:
        descriptor = stream.fileno()
    except io.UnsupportedOperation:
        return
    null_device = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_device, descriptor)
    os.close(null_device)
