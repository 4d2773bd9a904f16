"""When and where the records of a feed came.

A file is read again after a crash, and must give every record the arrival it had: its records all came when the run
began, in the order of the lines. A stream is read once, and its records come when they are read.
"""

from dataclasses import dataclass, field
from typing import Protocol

from storage.clock import Clock


class Feed(Protocol):
    """The arrivals of one source."""

    def time_ms(self) -> int:
        """The record time of the batch at hand; it never falls."""
        ...

    def place(self, line: int) -> bytes:
        """What names a line of this feed and of no other, the same in every run that reads it."""
        ...


@dataclass(frozen=True, slots=True)
class FileFeed:
    """``began_ms`` is when the run began, as its checkpoint has it; ``identity`` tells this file from another."""

    began_ms: int
    identity: bytes

    def time_ms(self) -> int:
        """When the run began."""
        return self.began_ms

    def place(self, line: int) -> bytes:
        """The file and the line."""
        return b"%s:%d" % (self.identity, line)


@dataclass(slots=True)
class StreamFeed:
    """A feed that cannot be read again: lines are new in every run."""

    clock: Clock
    _began_ms: int = field(init=False)
    _latest_ms: int = field(init=False)

    def __post_init__(self) -> None:
        """Note when the run began."""
        self._began_ms = self._latest_ms = self.clock()

    def time_ms(self) -> int:
        """The time of day, or the latest one where the clock was set back."""
        self._latest_ms = max(self._latest_ms, self.clock())
        return self._latest_ms

    def place(self, line: int) -> bytes:
        """The run and the line."""
        return b"stream:%d:%d" % (self._began_ms, line)
