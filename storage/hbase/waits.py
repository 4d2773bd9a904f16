"""Deadlines, and messages about threads that wait long for an answer of HBase."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self, TypeVar

from storage.clock import NOTICE_S

_T = TypeVar("_T")

_CHECK_EVERY_S: Final = 0.25

Tell = Callable[[str | None], None]
"""Called with a text that says what a thread waits for and why, and with None once there is an answer."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point of this process's monotonic clock, in seconds."""

    at_s: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """Return the deadline this many seconds from now."""
        return cls(time.monotonic() + seconds)

    def at_most(self, seconds: float) -> "Deadline":
        """Return this deadline, or the one this many seconds from now if that is earlier."""
        return min(self, Deadline.after(seconds), key=lambda deadline: deadline.at_s)

    @property
    def left_s(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(self.at_s - time.monotonic(), 0.0)


class Waits:
    """A watch over the requests to one HBase, which announces the first long wait of an outage.

    A repeated request counts from its first attempt. ``tell`` is called at the first long wait of an outage, and with
    None at its end, which is the next answer. Without ``tell`` nothing is watched. ``clock`` returns monotonic seconds.
    """

    def __init__(self, place: object, tell: Tell | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._place = place
        self._tell = tell
        self._clock = clock
        self._lock = threading.Lock()
        self._since_s: dict[int, float] = {}
        self._why: str | None = None
        self._is_announced = False
        self._closed = threading.Event()

    def watch(self) -> None:
        """Start a thread that watches until ``close``."""
        if self._tell is not None:
            threading.Thread(target=self._watch, name="hbase-waits", daemon=True).start()

    def look(self) -> None:
        """Announce a wait that has lasted for ``NOTICE_S``, once in an outage."""
        # Other threads change the dictionary, so it is copied in one step.
        since_s = min(list(self._since_s.values()), default=None)
        if self._tell is None or since_s is None or self._clock() - since_s < NOTICE_S:
            return
        with self._lock:
            was_announced, self._is_announced = self._is_announced, True
        if not was_announced:
            self._tell(f"the store {self._place}: {self._why or 'no answer yet'}")

    @contextmanager
    def request(self) -> Iterator[None]:
        """Watch a request that is sent in the ``with`` block, including its repetitions."""
        if self._tell is None:
            yield
            return
        self._begin()
        try:
            yield
            self._end()
        finally:
            self._since_s.pop(threading.get_ident(), None)

    def note_failure(self, cause: Exception) -> None:
        """Save the reason for repeating the request, to be announced."""
        self._why = str(cause)

    def pieces(self, answer: Iterable[_T]) -> Iterator[_T]:
        """Yield the pieces of an answer. The time that the caller spends on a piece does not count as waiting."""
        for piece in answer:
            if self._tell is not None:
                self._end()
            yield piece
            if self._tell is not None:
                self._begin()

    def close(self) -> None:
        """End the thread."""
        self._closed.set()

    def _begin(self) -> None:
        self._since_s.setdefault(threading.get_ident(), self._clock())

    def _end(self) -> None:
        self._since_s.pop(threading.get_ident(), None)
        self._why = None
        with self._lock:
            was_announced, self._is_announced = self._is_announced, False
        if was_announced and self._tell is not None:
            self._tell(None)

    def _watch(self) -> None:
        while not self._closed.wait(_CHECK_EVERY_S):
            self.look()
