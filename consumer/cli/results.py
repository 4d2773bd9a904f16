r"""Results go to standard output. A closed or full standard output is an error like any other.

All output without ``rich`` goes through this module. Articles, answers of brokers and file names may contain control
characters, and characters that change the direction of text. On a terminal such characters become ``\uXXXX``. A pipe
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
    """Flush standard output when the block ends. Raises ``SinkError`` if the block or the flush cannot write."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        raise _write_error(error, sys.stdout) from error
    except KeyboardInterrupt:
        # If nobody reads the buffered output, the process would hang on exit.
        _discard(sys.stdout)
        raise


@contextmanager
def guard_streams() -> Iterator[None]:
    """Guard all text that is printed inside this context, by rich, by Typer's help or by a prompt.

    A failed write to standard output raises ``SinkError``, as in ``results``. A failed write to standard error loses
    the message, as with log lines, and the command continues. Characters that a stream cannot encode become escapes.
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
            _discard(err)


class _StreamWrapper:
    """A stream; subclasses replace some of its methods."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401  # of text or of bytes
        self._stream = stream

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # an attribute of the stream
        return getattr(self._stream, name)


class _GuardedOutput(_StreamWrapper):
    """Standard output as text. An ``OSError`` becomes a ``SinkError``, which neither rich nor Typer catches."""

    def write(self, text: str) -> int:
        """Write text. Raises ``SinkError``."""
        try:
            return int(self._stream.write(_escape_unencodable(text, self._stream)))
        except OSError as error:
            raise _write_error(error, self._stream) from error

    def flush(self) -> None:
        """Flush. Raises ``SinkError``."""
        try:
            self._stream.flush()
        except OSError as error:
            raise _write_error(error, self._stream) from error


class _LossyErrors(_StreamWrapper):
    """Standard error as text; failed writes are ignored."""

    def write(self, text: str) -> int:
        """Write text; ignore failures."""
        with suppress(OSError):
            self._stream.write(_escape_unencodable(text, self._stream))
        return len(text)

    def flush(self) -> None:
        """Flush; ignore failures."""
        with suppress(OSError):
            self._stream.flush()


def _escape_unencodable(text: str, stream: TextIO) -> str:
    """Return the text with escapes for characters that the stream cannot encode."""
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _write_error(error: OSError, stream: TextIO) -> SinkError:
    _discard(stream)
    return SinkError(f"cannot write to standard output: {error.strerror}")


def _discard(stream: TextIO) -> None:
    """Discard buffered output: flushing it on exit would fail again and change the exit code."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def standard_output() -> BinaryIO:
    """Return the stream for results, in bytes. Write whole lines to it."""
    return _byte_stream(sys.stdout)


def standard_error() -> BinaryIO:
    """Return the stream for messages, and for dead letters if verdicts go to standard output. Write whole lines."""
    return _byte_stream(sys.stderr)


def answer(*, json: bool, lines: Iterable[object], text: Iterable[RenderableType]) -> None:
    """Write the result of a command: with ``json`` a JSON line for each of ``lines``, or else ``text`` for people.

    The unused one of the two is not iterated. Raises ``SinkError``.
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
    """Write a value to standard output as one line of JSON."""
    write(msgspec.json.encode(value) + b"\n")


def write(data: bytes) -> None:
    """Write whole lines to standard output."""
    standard_output().write(data)


class _Terminal(_StreamWrapper):
    """A terminal that escapes control characters. It must be given whole lines."""

    def write(self, data: bytes) -> int:
        """Write whole lines, escaped."""
        self._stream.write(for_terminal(data))
        return len(data)


def _byte_stream(stream: TextIO) -> BinaryIO:
    return cast("BinaryIO", _Terminal(stream.buffer)) if stream.isatty() else stream.buffer
