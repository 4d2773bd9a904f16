"""The clocks of a machine that a test sets: what ``storage.clock`` reads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from storage.clock import SteadyClock
from tests.builders import TIME_MS

S_NS: Final = 1_000_000_000
MINUTE_S: Final = 60
HOUR_S: Final = 60 * MINUTE_S
DAY_S: Final = 24 * HOUR_S
JUMPS_S: Final = [
    sign * jump_s for jump_s in (MINUTE_S, HOUR_S, DAY_S, 8 * DAY_S, 20 * DAY_S, 30 * DAY_S) for sign in (1, -1)
]
"""From a minute to a month, both ways."""


@dataclass(slots=True)
class MachineClock:
    """The wall clock, which can be set, and the time since the machine booted, which cannot; in nanoseconds.

    ``begin`` sets the time that this process goes by.
    """

    begin: Callable[[SteadyClock], None]
    wall_ns: int = TIME_MS * 1_000_000
    boot_ns: int = 77 * S_NS

    def start_process(self) -> None:
        """Let the time of this process begin now, as where another one was started."""
        self.begin(SteadyClock(self.wall, self.boot))

    def wall(self) -> int:
        """Read the wall clock."""
        return self.wall_ns

    def boot(self) -> int:
        """Read the time since the machine booted."""
        return self.boot_ns

    def go_on(self, seconds: float) -> None:
        """Let time pass."""
        self.wall_ns += round(seconds * S_NS)
        self.boot_ns += round(seconds * S_NS)

    def set_wall(self, seconds: float) -> None:
        """Set the wall clock ahead by this, or back."""
        self.wall_ns += round(seconds * S_NS)
