"""Deadlines: points in time by which something must be done."""

import time
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point of this process's monotonic clock, in seconds."""

    at_s: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """Return the deadline that many seconds from now."""
        return cls(time.monotonic() + seconds)

    def at_most(self, seconds: float) -> "Deadline":
        """Return the earlier one of this deadline and the one that many seconds from now."""
        return min(self, Deadline.after(seconds), key=lambda deadline: deadline.at_s)

    @property
    def left_s(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(self.at_s - time.monotonic(), 0.0)
