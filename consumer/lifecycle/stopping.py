"""Stopping when asked: what was begun is finished, and nothing new is begun."""

import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, TypeVar

Item = TypeVar("Item")

SIGNALLED: Final = 128
"""A run that was stopped by a signal ends with this and the signal's number, as shells have it."""


class _Woken(BaseException):
    """Raised by the signal handler to leave a wait; never seen outside."""


class Stopping:
    """Turns SIGINT and SIGTERM into an end between two items.

    ``interrupts`` leaves a wait for the next item by an exception within it. Where that could leave a lock behind it is
    False, and the wait has to ask ``asked``.
    """

    def __init__(self, *, interrupts: bool = True) -> None:
        self._interrupts = interrupts
        self.asked_by: int | None = None
        self.asked_at_s: float | None = None
        self._waiting = False

    def asked(self) -> bool:
        """Whether somebody has asked to stop."""
        return self.asked_by is not None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take the two signals while inside; only in a main thread."""
        before = {number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def between(self, items: Iterable[Item]) -> Iterator[Item]:
        """Pass the items on until somebody asks to stop. A wait for the next one is left at once."""
        iterator = iter(items)
        while self.asked_by is None:
            try:
                self._waiting = True
                item = next(iterator)
            except (StopIteration, _Woken):
                return
            finally:
                self._waiting = False
            yield item

    def _ask(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.asked_by = number
        if self.asked_at_s is None:
            self.asked_at_s = time.monotonic()
        if self._waiting and self._interrupts:
            # Once: a second signal must not find the handler of the first one still at work.
            self._waiting = False
            raise _Woken
