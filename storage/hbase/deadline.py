"""Until when something may take."""

import time
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point of this process's monotonic clock, in seconds."""

    at_s: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """The deadline that is so far from now."""
        return cls(time.monotonic() + seconds)

    def at_most(self, seconds: float) -> "Deadline":
        """This deadline, or the one that is so far from now if that comes first."""
        return min(self, Deadline.after(seconds), key=lambda deadline: deadline.at_s)

    @property
    def left_s(self) -> float:
        """What is left, 0 at least."""
        return max(self.at_s - time.monotonic(), 0.0)
