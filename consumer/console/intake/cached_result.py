"""Caches a result that is slow to compute. A thread computes it, and pages show the latest result.

Callers wait briefly for a new result, and get the previous one if that takes longer.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

Found = TypeVar("Found")

log = logging.getLogger("dupwatch")

FRESH_S: Final = 1.0
"""The shortest time for which a result is reused."""
REUSE_FACTOR: Final = 20.0
"""A result is reused for this many times its computing time, so computing uses at most a twentieth of a core."""
_CLOSE_S: Final = 15.0


class CachedResult(Generic[Found]):
    """The latest value that ``compute`` yielded. Several threads may use it.

    One computation may yield several values, each more complete than the one before.
    """

    def __init__(self, name: str, compute: Callable[[], Iterator[Found]]) -> None:
        self._name = name
        self._compute = compute
        self._changed = threading.Condition()
        self._found: Found | None = None
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None
        self._is_new = False
        self._is_closed = False
        self._due_s = 0.0

    def latest(self, wait_s: float) -> Found | None:
        """Return the latest result after waiting up to ``wait_s`` for a new one; None if there is none yet.

        If there has never been a result and the last computation has failed, its error is raised.
        """
        with self._changed:
            if self._thread is None and not self._is_closed and time.monotonic() >= self._due_s:
                self._is_new, self._error = False, None
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.wait_for(lambda: self._is_new or self._thread is None, wait_s)
            if self._found is None and self._error is not None:
                raise self._error
            return self._found

    def close(self) -> None:
        """Stop computing at the next value, and wait up to ``_CLOSE_S`` seconds for the thread."""
        with self._changed:
            self._is_closed = True
            thread = self._thread
        if thread is not None:
            thread.join(_CLOSE_S)

    def _run(self) -> None:
        began_s = time.monotonic()
        error: Exception | None = None
        try:
            for found in self._compute():
                with self._changed:
                    self._found, self._is_new = found, True
                    self._changed.notify_all()
                    if self._is_closed:
                        return
        except Exception as raised:  # raised to callers of latest()
            log.warning("The thread %s failed: %s", self._name, raised, exc_info=raised)
            error = raised
        finally:
            ended_s = time.monotonic()
            with self._changed:
                self._error, self._thread = error, None
                self._due_s = ended_s + max(FRESH_S, REUSE_FACTOR * (ended_s - began_s))
                self._changed.notify_all()
