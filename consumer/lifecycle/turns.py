"""Threads and processes that work on records report that they make progress, so that one that hangs is noticed."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from consumer.model.hooks import Hooks

MAIN: Final = "main"
"""The name of the main thread in health pages and metrics."""


class ThreadTurned(NamedTuple):
    """A thread begins to work on records, or has made progress since it last said so."""

    thread: str


class ThreadRested(NamedTuple):
    """A thread waits for records, or for another thread to take what it has prepared."""

    thread: str


class WorkerTurned(NamedTuple):
    """A worker process has finished a piece of its work, or a thread that works for the one that judges progresses."""


_WORKED: Final = WorkerTurned()


class _Reports(threading.local):
    """What each thread reports, made once: a thread turns for every record."""

    def __init__(self) -> None:
        this = threading.current_thread()
        name = MAIN if this is threading.main_thread() else this.name
        self.turned = ThreadTurned(name)
        self.rested = ThreadRested(name)
        self.for_main = False


class Turns:
    """Reports the progress of the thread that calls it."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._reports = _Reports()

    def turn(self) -> None:
        """Report progress; called between any two pieces of work, and while waiting for something out of reach."""
        self._hooks.report(self._reports.turned)
        if self._reports.for_main:
            self._hooks.report(_WORKED)

    def rest(self) -> None:
        """Report that this thread waits for records."""
        self._hooks.report(self._reports.rested)

    @contextmanager
    def at_work(self, *, for_main: bool = False) -> Iterator[None]:
        """Report that this thread works inside, and rests afterwards; ``for_main``: the judging one waits for it."""
        self._reports.for_main = for_main
        self.turn()
        try:
            yield
        finally:
            self._reports.for_main = False
            self.rest()
