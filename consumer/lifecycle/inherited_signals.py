"""Signals that a careless parent ignored or blocked before it started this process."""

import signal
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Final

_Handler = Callable[[int, FrameType | None], None] | signal.Handlers
_HANDLERS: Final[Mapping[signal.Signals, _Handler]] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGCHLD: signal.SIG_DFL,
}


def accept_signals() -> None:
    """Make SIGINT and SIGTERM end this process again, and SIGCHLD report its children; only in a main thread.

    Ignored and blocked signals survive ``exec``: a shell without job control ignores SIGINT for ``command &``, and some
    supervisors fork with signals blocked. Python leaves an ignored signal ignored, so Ctrl-C and ``kill`` would have no
    effect. SIGHUP stays as inherited, for nohup.
    """
    for number, handler in _HANDLERS.items():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLERS)
