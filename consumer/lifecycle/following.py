"""Looks at files again and again in a thread of its own, so that nobody else waits for a file system that hangs."""

import logging
import threading
from collections.abc import Callable
from typing import Final, Self

log = logging.getLogger("dupwatch")

PAUSE_S: Final = 1.0
"""The pause between two looks: what changes in a file counts this much later."""
_END_S: Final = 1.0
"""How long the end waits for the last look. One that hangs is left behind; its thread does not keep the process."""


class Following:
    """Calls ``look`` with pauses while the context is open; for one of its own errors ``look`` raises nothing."""

    def __init__(self, name: str, look: Callable[[], None], pause_s: float = PAUSE_S) -> None:
        self._look = look
        self._pause_s = pause_s
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._left.set()
        self._thread.join(_END_S)

    def _run(self) -> None:
        while not self._left.wait(self._pause_s):
            try:
                self._look()
            except Exception:
                # The next look may find another file.
                log.exception("A look at files failed (%s)", self._thread.name)
