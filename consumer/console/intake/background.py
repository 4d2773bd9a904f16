"""Runs each kind of background work repeatedly in a thread of its own.

Failed work is retried after growing pauses, and ``/readyz`` shows the reason. A failure ends neither the thread nor the
console, because pages are useful without the work.
"""

import logging
import threading
from collections.abc import Callable
from typing import Final, NamedTuple, Self

from consumer.banks.bank import BankError
from consumer.console.intake.intake import ConsoleStopped
from consumer.model.errors import Abandoned, SinkError, SourceError, StoppedBeforeStart, StoreMismatch
from consumer.model.hooks import Hooks, Outage, RunPart
from consumer.reviews.database import DatabaseUnavailable
from storage.backoff import Backoff
from storage.errors import StoreError

log = logging.getLogger("dupwatch")

_PAUSES: Final = Backoff(0.2, 10.0)
_JOIN_S: Final = 15.0
_PARTS: Final[tuple[tuple[type[Exception], RunPart], ...]] = (
    (DatabaseUnavailable, "database"),
    (StoreError, "store"),
    (StoreMismatch, "store"),
    (SinkError, "sink"),
    (SourceError, "source"),
    (BankError, "banks"),
)
_EXPECTED_ERRORS: Final = tuple(kind for kind, _ in _PARTS)


class WorkSchedule(NamedTuple):
    """The pause between two turns of work in seconds, and the part that an outage names after an unexpected error."""

    pause_s: float
    part: RunPart


class BackgroundWork:
    """A context manager whose thread calls ``work`` repeatedly.

    The thread calls ``work`` after a pause, when woken, or at once if the last call returned True or raised
    ``Abandoned``. ``stopping`` is set when the context ends. Several threads may share this event, and long work should
    check it.
    """

    def __init__(
        self, name: str, work: Callable[[], bool], schedule: WorkSchedule, hooks: Hooks, stopping: threading.Event
    ) -> None:
        self._work = work
        self._pause_s = schedule.pause_s
        self._part = schedule.part
        self._hooks = hooks
        self._woken = threading.Event()
        self._outage_part: RunPart | None = None
        self.stopping = stopping
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        self._thread.join(_JOIN_S)
        if self._thread.is_alive():
            log.warning("The %s thread did not end within %.0f s", self._thread.name, _JOIN_S)

    def wake(self) -> None:
        """End the pause between two turns of work. A pause after a failure continues."""
        self._woken.set()

    def report_recovery(self) -> None:
        """Report the end of an outage before the current turn of work ends. Any thread may call this."""
        self._report_outage(None)

    def stop(self) -> None:
        """Stop after the current turn of work."""
        self.stopping.set()
        self._woken.set()

    def _run(self) -> None:
        pauses = _PAUSES.pauses()
        while True:
            self._woken.clear()
            if self.stopping.is_set():
                return
            try:
                more = self._work()
            except (ConsoleStopped, StoppedBeforeStart, Abandoned):
                continue
            except Exception as error:  # noqa: BLE001  # reported and retried
                self._report_outage(error)
                # ``wake`` does not shorten this pause, because its callers do not know about the outage.
                self.stopping.wait(next(pauses))
                continue
            self._report_outage(None)
            pauses = _PAUSES.pauses()
            if not more:
                self._woken.wait(self._pause_s)

    def _report_outage(self, error: Exception | None) -> None:
        name = self._thread.name
        parts = (part for kind, part in _PARTS if isinstance(error, kind))
        part = None if error is None else next(parts, self._part)
        if self._outage_part is not None and self._outage_part != part:
            self._hooks.report(Outage(self._outage_part, name, None))
        if part is not None:
            self._hooks.report(Outage(part, name, f"{error}" or repr(error)))
            if self._outage_part is None:
                log.warning(
                    "The %s thread waits: %s",
                    name,
                    error,
                    exc_info=None if isinstance(error, _EXPECTED_ERRORS) else error,
                )
        elif self._outage_part is not None:
            log.warning("The %s thread goes on.", name)
        self._outage_part = part
