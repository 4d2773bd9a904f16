"""Asks the store all the time whether it answers, so that an outage shows before an article arrives."""

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, Self

from consumer.model.hooks import Hooks, Outage
from storage.errors import StoreError
from storage.interface import Store

log = logging.getLogger("dupwatch")

PAUSE_S: Final = 3.0
"""The pause between two questions."""
ANSWER_S: Final = 4.0
"""How long an answer may take: together with the pause, an outage is reported within ten seconds."""


class StoreProbe:
    """Asks from its own thread, through its own connection, while the context is open.

    ``opened`` opens the store again each time, with a deadline of ``ANSWER_S``. Reports each answer, and each failure.
    """

    def __init__(
        self,
        opened: Callable[[], AbstractContextManager[Store]],
        hooks: Hooks,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._opened = opened
        self._hooks = hooks
        self._pause_s = pause_s
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._run, name="store-probe", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._left.set()
        self._thread.join(ANSWER_S)

    def _run(self) -> None:
        while not self._left.is_set():
            try:
                self._ask()
            except StoreError as error:
                self._tell(str(error))
            except Exception as error:
                log.exception("The store probe failed")
                self._tell(f"the probe failed: {error!r}")
            self._left.wait(self._pause_s)

    def _tell(self, why: str | None) -> None:
        self._hooks.report(Outage("store", "probe", why))

    def _ask(self) -> None:
        """Ask the store until it fails to answer."""
        with self._opened() as store:
            while not self._left.is_set():
                store.settings()
                self._tell(None)
                self._left.wait(self._pause_s)
