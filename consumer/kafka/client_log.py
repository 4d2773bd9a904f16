"""librdkafka's log messages, in our log."""

import logging
import re
import time
from collections.abc import Callable
from typing import Final

_FAILED: Final = re.compile(r"FAIL \[[^\]]*#(?P<kind>[a-z]+)-[0-9]+\] \[thrd:(?P<thread>[^\]]*)\]")
_QUIET_S: Final = 60.0


class ConnectionLogFilter(logging.Filter):
    """Lets a connection failure be logged once a minute, with how often it occurred meanwhile.

    Each of the client's threads tries again about ten times a second and logs every failure: a day without brokers
    would be millions of lines. ``clock`` gives seconds that never decrease.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._logged_s: dict[tuple[str, str], float] = {}
        self._suppressed: dict[tuple[str, str], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether this record is logged."""
        found = _FAILED.match(record.getMessage())
        if found is None:
            return True
        what, now_s = (found["kind"], found["thread"]), self._clock()
        if now_s - self._logged_s.get(what, -_QUIET_S) < _QUIET_S:
            self._suppressed[what] = self._suppressed.get(what, 0) + 1
            return False
        self._logged_s[what] = now_s
        suppressed = self._suppressed.pop(what, 0)
        if suppressed:
            record.msg, record.args = f"{record.getMessage()} ({suppressed} more times since this was logged)", ()
        return True


client_log: Final = logging.getLogger("dupwatch.kafka")
client_log.addFilter(ConnectionLogFilter())
silent_log: Final = logging.getLogger("dupwatch.silent")
"""For clients that only ask: their answers say what they would log."""
silent_log.addHandler(logging.NullHandler())
silent_log.propagate = False
