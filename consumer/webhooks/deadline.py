"""The time that one attempt may take in all, whatever it is waiting for."""

import time


class DeadlinePassed(Exception):  # noqa: N818  # named for the attempt
    """The time of an attempt is over."""


class AttemptDeadline:
    """The end of an attempt, on the clock of this process, which nobody sets."""

    def __init__(self, seconds: float) -> None:
        self._ends_s = time.monotonic() + seconds

    def left_s(self) -> float:
        """Return the time that is left, which is more than 0. Raises ``DeadlinePassed``."""
        left_s = self._ends_s - time.monotonic()
        if left_s <= 0:
            raise DeadlinePassed
        return left_s
