r"""Results go to standard output; where nobody takes them any more, that is an error like any other.

Everything that a command writes without ``rich`` goes through this module. Articles, broker answers and file names may
have characters that steer a terminal or turn the direction of what follows. Where a person looks they are written as
``\uXXXX``; a pipe or a file gets the bytes as they are.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, TextIO, cast

import msgspec

from consumer.model.errors import SinkError
from consumer.text.visible import for_terminal


@contextmanager
def results() -> Iterator[None]:
    """Write to standard output while inside. Raises ``SinkError`` where that cannot be written."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        raise _unwritable(error, sys.stdout) from error
    except KeyboardInterrupt:
        # Whoever has to take what is still buffered may never do so, and the program would not end.
        _send_nowhere(sys.stdout)
        raise


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Guard what is printed as text while inside, whoever prints it: rich, Typer's help, a prompt.

    Standard output that cannot be written is a ``SinkError``, as it is for ``results``. Messages for people on standard
    error are lost where it cannot be written, as those of a log are, and the command goes on. Characters that the
    encoding of a stream does not have are written as escapes.
    """
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = cast("TextIO", _Printed(out)), cast("TextIO", _Told(err))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err
        try:
            err.flush()
        except OSError:
            _send_nowhere(err)


class _Printed:
    """Standard output as text: an ``OSError`` becomes a ``SinkError``, which neither rich nor Typer catches."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # whatever the stream has
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """As the stream's own."""
        try:
            return self._stream.write(_written(text, self._stream))
        except OSError as error:
            raise _unwritable(error, self._stream) from error

    def flush(self) -> None:
        """As the stream's own."""
        try:
            self._stream.flush()
        except OSError as error:
            raise _unwritable(error, self._stream) from error


class _Told:
    """Standard error as text: what cannot be written is lost."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # whatever the stream has
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """As the stream's own, or nothing."""
        with suppress(OSError):
            self._stream.write(_written(text, self._stream))
        return len(text)

    def flush(self) -> None:
        """As the stream's own, or nothing."""
        with suppress(OSError):
            self._stream.flush()


def _written(text: str, stream: TextIO) -> str:
    """The text with escapes for what the stream's encoding does not have."""
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _unwritable(error: OSError, stream: TextIO) -> SinkError:
    _send_nowhere(stream)
    return SinkError(f"the results cannot be written to standard output: {error.strerror}")


def _send_nowhere(stream: TextIO) -> None:
    """What is still buffered would fail once more when the program ends, and be its exit code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def standard_output() -> BinaryIO:
    """Where results go, in bytes; to be written to in whole lines."""
    return _guarded(sys.stdout)


def standard_error() -> BinaryIO:
    """Where dead letters of a run into a stream go; to be written to in whole lines."""
    return _guarded(sys.stderr)


def write_json(value: object) -> None:
    """One line of JSON."""
    write(msgspec.json.encode(value) + b"\n")


def write(data: bytes) -> None:
    """Whole lines."""
    standard_output().write(data)


class _Terminal:
    """A terminal that nothing steers: whole lines are written to it, escaped."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: bytes) -> int:
        """Write whole lines."""
        self._stream.write(for_terminal(data))
        return len(data)

    def flush(self) -> None:
        """Have it shown."""
        self._stream.flush()

    def fileno(self) -> int:
        """The terminal's own."""
        return self._stream.fileno()


def _guarded(stream: TextIO) -> BinaryIO:
    # Nobody uses more of a stream than these three.
    return cast("BinaryIO", _Terminal(stream.buffer)) if stream.isatty() else stream.buffer
