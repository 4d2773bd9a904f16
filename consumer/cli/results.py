r"""Results go to standard output; where nobody takes them any more, that is an error like any other.

Everything that a command writes without ``rich`` goes through this module. Articles, broker answers and file names may
have characters that steer a terminal or turn the direction of what follows. Where a person looks they are written as
``\uXXXX``; a pipe or a file gets the bytes as they are.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, TextIO, cast

import msgspec

from consumer.errors import SinkError
from consumer.pages.visible import for_terminal


@contextmanager
def results() -> Iterator[None]:
    """Write to standard output while inside. Raises ``SinkError`` where that cannot be written."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        # What is still buffered would fail once more when the program ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        raise SinkError(f"the results cannot be written: {error.strerror}") from error


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
