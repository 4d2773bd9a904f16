"""librdkafka's log messages in dupwatch's log."""

import logging
import re
import time
from collections.abc import Callable
from typing import Final

_CONNECTION_FAILURE: Final = re.compile(r"FAIL \[[^\]]*#(?P<kind>[a-z]+)-[0-9]+\] \[thrd:(?P<thread>[^\]]*)\]")
_QUIET_S: Final = 60.0


class ConnectionLogFilter(logging.Filter):
    """A filter that logs each connection failure at most once a minute, with the number of repetitions.

    Each of the client's threads retries about ten times a second and logs every failure, so a day without brokers would
    fill the log with millions of lines. ``clock`` returns seconds that never decrease.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._logged_s: dict[tuple[str, str], float] = {}
        self._suppressed: dict[tuple[str, str], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether this record is logged. Adds the number of repetitions to its message."""
        failure = _CONNECTION_FAILURE.match(record.getMessage())
        if failure is None:
            return True
        key, now_s = (failure["kind"], failure["thread"]), self._clock()
        if now_s - self._logged_s.get(key, -_QUIET_S) < _QUIET_S:
            self._suppressed[key] = self._suppressed.get(key, 0) + 1
            return False
        self._logged_s[key] = now_s
        suppressed = self._suppressed.pop(key, 0)
        if suppressed:
            record.msg, record.args = f"{record.getMessage()} ({suppressed} more times since this was logged)", ()
        return True


client_log: Final = logging.getLogger("dupwatch.kafka")
client_log.addFilter(ConnectionLogFilter())
silent_log: Final = logging.getLogger("dupwatch.silent")
"""For clients whose log would only repeat the errors that they raise."""
silent_log.addHandler(logging.NullHandler())
silent_log.propagate = False
