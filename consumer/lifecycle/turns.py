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
    """A worker process has finished a piece of its work."""


class Turns:
    """Reports the progress of the thread that calls it."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    def turn(self) -> None:
        """Report progress; called between any two pieces of work, and while waiting for something out of reach."""
        self._hooks.report(ThreadTurned(_thread()))

    def rest(self) -> None:
        """Report that this thread waits for records."""
        self._hooks.report(ThreadRested(_thread()))

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Report that this thread works inside, and rests afterwards."""
        self.turn()
        try:
            yield
        finally:
            self.rest()


def _thread() -> str:
    this = threading.current_thread()
    return MAIN if this is threading.main_thread() else this.name
