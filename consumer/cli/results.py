r"""Results go to standard output. A closed or full standard output is an error like any other.

Everything that a command writes without ``rich`` goes through this module. Articles, answers of brokers and file names
may contain control characters or change the direction of text. On a terminal these are written as ``\uXXXX``; a pipe
or a file gets the bytes unchanged.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, TextIO, cast

import msgspec
from rich.console import RenderableType

from consumer.cli.render import console
from consumer.model.errors import SinkError
from consumer.text.visible import for_terminal


@contextmanager
def results() -> Iterator[None]:
    """Write results to standard output inside this context. Raises ``SinkError`` if that fails."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        raise _unwritable(error, sys.stdout) from error
    except KeyboardInterrupt:
        # The reader may never take what is still buffered, and the process would hang on exit.
        _send_nowhere(sys.stdout)
        raise


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Guard all text that is printed inside this context: by rich, by Typer's help, by a prompt.

    A write to standard output that fails raises ``SinkError``, as in ``results``. If standard error cannot be written,
    messages are lost, as log lines are, and the command continues. Characters that the encoding of a stream lacks are
    written as escapes.
    """
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = cast("TextIO", _GuardedOutput(out)), cast("TextIO", _LossyErrors(err))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err
        try:
            err.flush()
        except OSError:
            _send_nowhere(err)


class _StreamWrapper:
    """A stream of which a subclass replaces some methods."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401  # of text or of bytes
        self._stream = stream

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # whatever the stream has
        return getattr(self._stream, name)


class _GuardedOutput(_StreamWrapper):
    """Standard output as text. An ``OSError`` becomes a ``SinkError``, which neither rich nor Typer catches."""

    def write(self, text: str) -> int:
        """Write text. Raises ``SinkError``."""
        try:
            return int(self._stream.write(_encodable(text, self._stream)))
        except OSError as error:
            raise _unwritable(error, self._stream) from error

    def flush(self) -> None:
        """Flush. Raises ``SinkError``."""
        try:
            self._stream.flush()
        except OSError as error:
            raise _unwritable(error, self._stream) from error


class _LossyErrors(_StreamWrapper):
    """Standard error as text. What cannot be written is lost."""

    def write(self, text: str) -> int:
        """Write text, or lose it."""
        with suppress(OSError):
            self._stream.write(_encodable(text, self._stream))
        return len(text)

    def flush(self) -> None:
        """Flush, or lose what is buffered."""
        with suppress(OSError):
            self._stream.flush()


def _encodable(text: str, stream: TextIO) -> str:
    """Return the text with escapes for the characters that the encoding of the stream lacks."""
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _unwritable(error: OSError, stream: TextIO) -> SinkError:
    _send_nowhere(stream)
    return SinkError(f"cannot write to standard output: {error.strerror}")


def _send_nowhere(stream: TextIO) -> None:
    """Discard what is still buffered: flushing it on exit would fail again and change the exit code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def standard_output() -> BinaryIO:
    """Return the stream for results, in bytes. Write whole lines to it."""
    return _guarded(sys.stdout)


def standard_error() -> BinaryIO:
    """Return the stream for the dead letters of a run into standard output, in bytes. Write whole lines to it."""
    return _guarded(sys.stderr)


def answer(*, json: bool, lines: Iterable[object], text: Iterable[RenderableType]) -> None:
    """Write the result of a command: a line of JSON for each value, or the text for people. Only that one is iterated.

    Raises ``SinkError``.
    """
    with results():
        if json:
            for line in lines:
                write_json(line)
        else:
            shown = console()
            for part in text:
                shown.print(part)


def write_json(value: object) -> None:
    """Write one line of JSON."""
    write(msgspec.json.encode(value) + b"\n")


def write(data: bytes) -> None:
    """Write whole lines."""
    standard_output().write(data)


class _Terminal(_StreamWrapper):
    """A terminal that gets whole lines with control characters escaped."""

    def write(self, data: bytes) -> int:
        """Write whole lines, escaped."""
        self._stream.write(for_terminal(data))
        return len(data)


def _guarded(stream: TextIO) -> BinaryIO:
    return cast("BinaryIO", _Terminal(stream.buffer)) if stream.isatty() else stream.buffer
