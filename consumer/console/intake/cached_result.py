"""Keeps what takes long to compute: a thread computes it, and pages show what was found last.

Whoever asks waits for a moment, so that what takes no time is always new. What took long is used for some time.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

Found = TypeVar("Found")

log = logging.getLogger("dupwatch")

FRESH_S: Final = 1.0
"""How long at least what was found is used."""
REST: Final = 20.0
"""How many times as long as it took it is used: computing takes a twentieth of one processor at most."""
_CLOSE_S: Final = 15.0


class CachedResult(Generic[Found]):
    """What ``compute`` yielded last; it may yield several times, each time more. Used by several threads."""

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
        """Return what was found last, None where that is not yet so; wait for what is being computed, but not longer.

        Raises what ``compute`` raised where nothing was ever found.
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
        """Compute nothing more, and wait for what is being computed."""
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
        except Exception as raised:  # it is raised to whoever asks
            log.warning("The thread %s failed: %s", self._name, raised, exc_info=raised)
            error = raised
        finally:
            ended_s = time.monotonic()
            with self._changed:
                self._error, self._thread = error, None
                self._due_s = ended_s + max(FRESH_S, REST * (ended_s - began_s))
                self._changed.notify_all()
