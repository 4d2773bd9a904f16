"""Probes the store continuously, so that an outage is noticed before an article arrives."""

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
"""The pause between two probes, in seconds."""
ANSWER_S_MAX: Final = 4.0
"""How many seconds an answer may take. With the pause, an outage is reported within ten seconds."""


class StoreProbe:
    """A context manager that probes the store from a thread of its own.

    ``open_store`` opens the store. A remote store needs a connection of its own, with a deadline of ``ANSWER_S_MAX``.
    The probe reports each answer and each failure.
    """

    def __init__(
        self,
        open_store: Callable[[], AbstractContextManager[Store]],
        hooks: Hooks,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._open_store = open_store
        self._hooks = hooks
        self._pause_s = pause_s
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="store-probe", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closed.set()
        self._thread.join(ANSWER_S_MAX)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._probe()
            except StoreError as error:
                self._report(str(error))
            except Exception as error:
                log.exception("The store probe failed")
                self._report(f"the probe failed: {error!r}")
            self._closed.wait(self._pause_s)

    def _report(self, reason: str | None) -> None:
        self._hooks.report(Outage("store", "probe", reason))

    def _probe(self) -> None:
        """Probe the store until it fails to answer, or the context ends."""
        with self._open_store() as store:
            while not self._closed.is_set():
                store.settings()
                self._report(None)
                self._closed.wait(self._pause_s)
