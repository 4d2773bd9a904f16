"""Deadlines, and announcing when a thread has been waiting long for an answer of HBase, and why."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self, TypeVar

from storage.clock import NOTICE_S

_T = TypeVar("_T")

_LOOK_S: Final = 0.25

Tell = Callable[[str | None], None]
"""Called with what is waited for and why, and with None when there is an answer again."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point of this process's monotonic clock, in seconds."""

    at_s: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """Return the deadline that many seconds from now."""
        return cls(time.monotonic() + seconds)

    def at_most(self, seconds: float) -> "Deadline":
        """Return the earlier one of this deadline and the one that many seconds from now."""
        return min(self, Deadline.after(seconds), key=lambda deadline: deadline.at_s)

    @property
    def left_s(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(self.at_s - time.monotonic(), 0.0)


class Waits:
    """Watches the requests to one HBase and announces the first one that waits for long.

    A request that is repeated after an error counts from its first attempt. ``tell`` is called once for each outage:
    again only after there was an answer. Without ``tell`` nothing is watched. ``clock`` returns monotonic seconds.
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
        """Start a thread that looks until this is closed."""
        if self._tell is not None:
            threading.Thread(target=self._watch, name="hbase-waits", daemon=True).start()

    def look(self) -> None:
        """Announce a wait that has become too long, unless that was done."""
        # Copied in one step, since other threads change it.
        since_s = min(list(self._since_s.values()), default=None)
        if self._tell is None or since_s is None or self._clock() - since_s < NOTICE_S:
            return
        with self._lock:
            was_announced, self._is_announced = self._is_announced, True
        if not was_announced:
            self._tell(f"the store {self._place}: {self._why or 'no answer yet'}")

    @contextmanager
    def request(self) -> Iterator[None]:
        """Watch a request that is sent within, with all its repetitions."""
        if self._tell is None:
            yield
            return
        self._begin()
        try:
            yield
            self._end()
        finally:
            self._since_s.pop(threading.get_ident(), None)

    def failed(self, why: Exception) -> None:
        """Note why the request is about to be repeated."""
        self._why = str(why)

    def pieces(self, found: Iterable[_T]) -> Iterator[_T]:
        """Pass on an answer that comes in pieces, without counting the time between them as waiting."""
        for piece in found:
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
        while not self._closed.wait(_LOOK_S):
            self.look()
