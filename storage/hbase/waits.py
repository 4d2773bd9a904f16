"""Whether a thread has been waiting for an answer of HBase for some time, and since what went wrong."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

_T = TypeVar("_T")

NOTICE_S: Final = 2.0
"""How long a wait may be until it is announced."""
_LOOK_S: Final = 0.25

Tell = Callable[[str | None], None]
"""Is given what is waited for and why, and None when there is an answer again."""


class Waits:
    """Watches the questions to one HBase and announces the first that waits for long.

    A question that is asked again after an error has been waiting since it was asked first. ``tell`` hears of an outage
    once: again only when there was an answer in between. Without ``tell`` nothing is watched. ``clock`` gives seconds
    that never go back.
    """

    def __init__(self, place: object, tell: Tell | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._place = place
        self._tell = tell
        self._clock = clock
        self._lock = threading.Lock()
        self._since_s: dict[int, float] = {}
        self._why: str | None = None
        self._is_told = False
        self._closed = threading.Event()

    def watch(self) -> None:
        """Look from a thread of its own from now on, until this is closed."""
        if self._tell is not None:
            threading.Thread(target=self._watch, name="hbase-waits", daemon=True).start()

    def look(self) -> None:
        """Announce what has been waited for too long, unless it is announced."""
        # A copy in one step: other threads come and go meanwhile.
        since_s = min(list(self._since_s.values()), default=None)
        if self._tell is None or since_s is None or self._clock() - since_s < NOTICE_S:
            return
        with self._lock:
            was_told, self._is_told = self._is_told, True
        if not was_told:
            self._tell(f"the store {self._place}: {self._why or 'no answer yet'}")

    @contextmanager
    def question(self) -> Iterator[None]:
        """Something is asked inside, as often as it takes."""
        if self._tell is None:
            yield
            return
        self._began()
        try:
            yield
            self._answered()
        finally:
            self._since_s.pop(threading.get_ident(), None)

    def failed(self, why: Exception) -> None:
        """The question is about to be asked again."""
        self._why = str(why)

    def pieces(self, found: Iterable[_T]) -> Iterator[_T]:
        """Pass on an answer that comes in pieces: what is done between them is no wait."""
        for piece in found:
            if self._tell is not None:
                self._answered()
            yield piece
            if self._tell is not None:
                self._began()

    def close(self) -> None:
        """End the thread."""
        self._closed.set()

    def _began(self) -> None:
        self._since_s.setdefault(threading.get_ident(), self._clock())

    def _answered(self) -> None:
        self._since_s.pop(threading.get_ident(), None)
        self._why = None
        with self._lock:
            was_told, self._is_told = self._is_told, False
        if was_told and self._tell is not None:
            self._tell(None)

    def _watch(self) -> None:
        while not self._closed.wait(_LOOK_S):
            self.look()
