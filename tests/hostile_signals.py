"""Signals as a careless parent leaves them: ignored and blocked."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

INHERITED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)


@contextmanager
def hostile_signals() -> Iterator[None]:
    """Ignore and block them in this thread, which must be the main one; child processes started inside inherit both.

    A shell without job control ignores SIGINT for ``command &``, nohup ignores SIGHUP, and a supervisor that forks with
    signals blocked, or discards SIGCHLD, hands that on as well.
    """
    before = {number: signal.signal(number, signal.SIG_IGN) for number in INHERITED}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, INHERITED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
