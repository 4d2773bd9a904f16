"""Lines to a stream that may break at any time, and verdicts to such a stream."""

import io
import os
from collections.abc import Iterable, Sequence
from typing import BinaryIO

from typing_extensions import override

from consumer.model.errors import SinkError
from consumer.model.ports import Answer, ReleasingSink
from consumer.sinks.emit import Emit, released_events, selected_events


class StreamSink(ReleasingSink):
    """Writes verdicts to a stream, which is flushed with every batch; ``emit`` selects the verdicts."""

    def __init__(self, out: BinaryIO, *, emit: Emit = "all") -> None:
        self._out = out
        self._emit = emit

    @override
    def emit(self, answers: Sequence[Answer]) -> None:
        write_lines(self._out, "verdicts", selected_events(answers, self._emit))

    @override
    def release(self, answer: Answer) -> None:
        write_lines(self._out, "verdicts", released_events(answer, self._emit))

    @override
    def flush(self) -> None:
        """Do nothing: the stream is flushed with every call."""

    @override
    def size_bytes(self) -> None:
        """Return None: a stream cannot be cut back."""

    @override
    def close(self) -> None:
        """Do nothing: the stream belongs to the caller that opened it."""


def write_lines(stream: BinaryIO, what: str, lines: Iterable[bytes]) -> None:
    """Write lines and flush them; raises ``SinkError``, which calls them ``what``.

    A stream that broke is redirected to /dev/null, so that anything else printed to it does not fail as well.
    """
    try:
        stream.write(b"".join(line + b"\n" for line in lines))
        stream.flush()
    except BrokenPipeError as error:
        _silence(stream)
        raise SinkError(f"the {what} cannot be written: the pipe was closed at the other end") from error
    except OSError as error:
        _silence(stream)
        raise SinkError(f"the {what} cannot be written: {error.strerror}") from error


def _silence(stream: BinaryIO) -> None:
    try:
        descriptor = stream.fileno()
    except io.UnsupportedOperation:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
