"""Stops a run on a signal, after the current item."""

import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final, TypeVar

Item = TypeVar("Item")

SIGNAL_EXIT_BASE: Final = 128
"""A run that a signal stopped exits with this number plus the signal's, as shells report it."""
_Handler = Callable[[int, FrameType | None], None] | signal.Handlers
_HANDLERS: Final[Mapping[signal.Signals, _Handler]] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGCHLD: signal.SIG_DFL,
}


class _WakeUp(BaseException):
    """An exception that the signal handler raises to end a wait for an item. ``until_requested`` catches it."""


class StopSignal:
    """The request to stop a run between two items, made by SIGINT or SIGTERM.

    With ``interrupts``, an exception ends a wait for the next item. If that could leave a lock held, pass False, and
    call ``requested`` repeatedly during the wait. ``requested_by`` is the number of the latest signal, and
    ``requested_at_s`` the monotonic time of the first one; both are None until then.
    """

    def __init__(self, *, interrupts: bool = True) -> None:
        self._interrupts = interrupts
        self.requested_by: int | None = None
        self.requested_at_s: float | None = None
        self._waiting = False

    def requested(self) -> bool:
        """Return whether a signal has asked the run to stop."""
        return self.requested_by is not None

    @contextmanager
    def handle_signals(self) -> Iterator[None]:
        """Handle both signals inside the block. Works only in the main thread."""
        before = {number: signal.signal(number, self._request) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def until_requested(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items until a signal asks the run to stop. With ``interrupts``, the signal also ends a wait."""
        iterator = iter(items)
        while self.requested_by is None:
            try:
                self._waiting = True
                item = next(iterator)
            except (StopIteration, _WakeUp):
                return
            finally:
                self._waiting = False
            yield item

    def _request(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.requested_by = number
        if self.requested_at_s is None:
            self.requested_at_s = time.monotonic()
        if self._waiting and self._interrupts:
            # Raised only once: a second signal may arrive while the first exception is still being handled.
            self._waiting = False
            raise _WakeUp


def accept_signals() -> None:
    """Restore the effect of SIGINT, SIGTERM and SIGCHLD if they are ignored or blocked.

    Works only in the main thread.

    Ignored and blocked signals survive ``exec``: a shell without job control ignores SIGINT for ``command &``, and some
    supervisors fork with signals blocked. Python leaves an ignored signal ignored, so Ctrl-C and ``kill`` would have no
    effect. If SIGCHLD is ignored, a parent cannot read the exit codes of its children. SIGHUP is left as inherited, for
    nohup.
    """
    for number, handler in _HANDLERS.items():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLERS)
