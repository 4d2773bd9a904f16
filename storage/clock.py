"""The clock whose times stores write, in milliseconds since 1970 (UTC), and how long a wait may be silent."""

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from threading import Lock
from typing import Final

NOTICE_S: Final = 2.0
"""How long a process waits for a server of a store or of Kafka before it logs the wait."""
Clock = Callable[[], int]
"""Returns the time in milliseconds since 1970. Passed in, so that tests can set it."""

MS_PER_S: Final = 1_000
MS_PER_DAY: Final = 86_400_000
STEP_S_MIN: Final = 5
"""The smallest sudden change of the wall clock, compared with process time, that counts as a step.

A leap second is not a step.
"""
_NS_PER_MS: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000
_BOOT_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

log = logging.getLogger("dupwatch")


def boot_time_ns() -> int:
    """Return the time since the machine booted, in nanoseconds. It cannot be set.

    On Linux it includes the time that the machine was suspended. NTP slews it together with the wall clock.
    """
    return time.clock_gettime_ns(_BOOT_CLOCK)


class SteadyClock:
    """The time of a process: the wall clock as it was at the start, advanced by the boot-time clock.

    Setting the wall clock does not change it, so that articles that have arrived stay in the window. A step of the wall
    clock is logged and counted at the next call. Thread-safe.
    """

    def __init__(self, wall_ns: Callable[[], int] = time.time_ns, boot_ns: Callable[[], int] = boot_time_ns) -> None:
        self._wall_ns = wall_ns
        self._boot_ns = boot_ns
        self._booted_ns = wall_ns() - boot_ns()
        self._ahead_ns = 0
        self._steps = 0
        self._lock = Lock()

    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970. Log and count a step of the wall clock since the last call."""
        now_ns = self._now_ns()
        if self._has_stepped(self._wall_ns() - now_ns):
            self._note_step()
        return now_ns // _NS_PER_MS

    def steps(self) -> int:
        """Check the wall clock, and return how many of its steps were noticed."""
        self.now_ms()
        return self._steps

    def ahead_s(self) -> float:
        """Check the wall clock, and return how many seconds it was ahead of this clock after its last step.

        Below 0 if it was behind, 0 if it has not stepped.
        """
        self.now_ms()
        return self._ahead_ns / _NS_PER_S

    def _now_ns(self) -> int:
        return self._booted_ns + self._boot_ns()

    def _has_stepped(self, ahead_ns: int) -> bool:
        return abs(ahead_ns - self._ahead_ns) >= STEP_S_MIN * _NS_PER_S

    def _note_step(self) -> None:
        with self._lock:
            # Read again: another thread may have noted the step, or this one was paused between its two readings.
            ahead_ns = self._wall_ns() - self._now_ns()
            if not self._has_stepped(ahead_ns):
                return
            step_ns = ahead_ns - self._ahead_ns
            self._ahead_ns = ahead_ns
            self._steps += 1
        what = f"The clock of this machine was set {'ahead' if step_ns > 0 else 'back'} by {_span(step_ns)}"
        if abs(ahead_ns) < STEP_S_MIN * _NS_PER_S:
            log.warning("%s, and agrees with the time of this process again.", what)
            return
        log.warning(
            "%s. It is now %s %s the time of this process, which arrivals and expiry still use. If the clock is wrong, "
            "correct it. If it is right, restart all processes that use this store.",
            what,
            _span(ahead_ns),
            "ahead of" if ahead_ns > 0 else "behind",
        )


PROCESS_CLOCK: Final = SteadyClock()
"""The clock of this process."""


def now_ms() -> int:
    """Return the time of this process in milliseconds since 1970."""
    return PROCESS_CLOCK.now_ms()


def _span(ns: int) -> str:
    return str(timedelta(seconds=round(abs(ns) / _NS_PER_S)))
