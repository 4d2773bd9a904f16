"""Progress reports of the threads and processes that work on records, so that one that hangs is noticed."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from consumer.model.hooks import Hooks

MAIN: Final = "main"
"""The name of the main thread in health pages and metrics."""


class ThreadTurned(NamedTuple):
    """A thread begins to work on records, or has made progress since its last report."""

    thread: str


class ThreadRested(NamedTuple):
    """A thread waits for records, or for another thread to take its prepared batches."""

    thread: str


class WorkerTurned(NamedTuple):
    """A worker process, or a thread that works for the judging thread, has made progress."""


_WORKED: Final = WorkerTurned()


class _Reports(threading.local):
    """The reports of each thread, created once, because a thread reports a turn for every record."""

    def __init__(self) -> None:
        thread = threading.current_thread()
        name = MAIN if thread is threading.main_thread() else thread.name
        self.turned = ThreadTurned(name)
        self.rested = ThreadRested(name)
        self.for_main = False


class Turns:
    """Reports of progress; each is about the calling thread."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._reports = _Reports()

    def turn(self) -> None:
        """Report progress; called between any two pieces of work, and while waiting for a store or brokers."""
        self._hooks.report(self._reports.turned)
        if self._reports.for_main:
            self._hooks.report(_WORKED)

    def rest(self) -> None:
        """Report that this thread waits for records."""
        self._hooks.report(self._reports.rested)

    @contextmanager
    def at_work(self, *, for_main: bool = False) -> Iterator[None]:
        """Report work during the block, and rest after it; ``for_main``: the main thread waits for this one."""
        self._reports.for_main = for_main
        self.turn()
        try:
            yield
        finally:
            self._reports.for_main = False
            self.rest()
