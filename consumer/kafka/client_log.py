"""What librdkafka says of itself, in our log."""

import logging
import re
import time
from collections.abc import Callable
from typing import Final

_FAILED: Final = re.compile(r"FAIL \[[^\]]*#(?P<kind>[a-z]+)-[0-9]+\] \[thrd:(?P<thread>[^\]]*)\]")
_QUIET_S: Final = 60.0


class Seldom(logging.Filter):
    """Lets a connection that fails be told once a minute, with how often it failed meanwhile.

    The client tries again some ten times a second, each of its threads, and says so every time: a day without brokers
    would be millions of lines. ``clock`` gives seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._told_s: dict[tuple[str, str], float] = {}
        self._untold: dict[tuple[str, str], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether this is to be told."""
        found = _FAILED.match(record.getMessage())
        if found is None:
            return True
        what, now_s = (found["kind"], found["thread"]), self._clock()
        if now_s - self._told_s.get(what, -_QUIET_S) < _QUIET_S:
            self._untold[what] = self._untold.get(what, 0) + 1
            return False
        self._told_s[what] = now_s
        untold = self._untold.pop(what, 0)
        if untold:
            record.msg, record.args = f"{record.getMessage()} ({untold} times more since this was told)", ()
        return True


client_log: Final = logging.getLogger("dupwatch.kafka")
client_log.addFilter(Seldom())
silent_log: Final = logging.getLogger("dupwatch.silent")
"""For clients that are made to be asked: what they would log is told by what they answer."""
silent_log.addHandler(logging.NullHandler())
silent_log.propagate = False
