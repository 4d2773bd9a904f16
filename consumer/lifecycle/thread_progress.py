"""Progress reports of the threads and processes that work on records, so that a hang is noticed."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from consumer.model.hooks import Hooks

MAIN: Final = "main"
"""The name of the main thread in health pages and metrics."""


class ThreadProgressed(NamedTuple):
    """A thread begins to work on records, or has made progress since its last report."""

    thread: str


class ThreadIdle(NamedTuple):
    """A thread waits for records, or for another thread to take its prepared batches."""

    thread: str


class WorkerProgressed(NamedTuple):
    """A worker process, or a thread that works for the judging thread, has made progress."""


_WORKER_PROGRESSED: Final = WorkerProgressed()


class _Reports(threading.local):
    """The reports of each thread, created once, because a thread reports progress for every record."""

    def __init__(self) -> None:
        thread = threading.current_thread()
        name = MAIN if thread is threading.main_thread() else thread.name
        self.progressed = ThreadProgressed(name)
        self.idle = ThreadIdle(name)
        self.for_judging = False


class ThreadProgress:
    """Reports of progress; each is about the calling thread."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._reports = _Reports()

    def report(self) -> None:
        """Report progress; called between any two pieces of work, and while waiting for a store or brokers."""
        self._hooks.report(self._reports.progressed)
        if self._reports.for_judging:
            self._hooks.report(_WORKER_PROGRESSED)

    def report_idle(self) -> None:
        """Report that this thread is idle (``ThreadIdle``)."""
        self._hooks.report(self._reports.idle)

    @contextmanager
    def at_work(self, *, for_judging: bool = False) -> Iterator[None]:
        """Report progress when the block begins, and that the thread is idle when it ends.

        ``for_judging``: the judging thread waits for this one, so its progress also counts as ``WorkerProgressed``.
        """
        self._reports.for_judging = for_judging
        self.report()
        try:
            yield
        finally:
            self._reports.for_judging = False
            self.report_idle()
