"""The deadline of one attempt, over all its steps."""

import time


class DeadlinePassed(Exception):  # noqa: N818  # named for the deadline
    """The deadline of an attempt has passed."""


class AttemptDeadline:
    """The end of an attempt, on the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self._ends_s = time.monotonic() + seconds

    def left_s(self) -> float:
        """Return the time left, greater than 0. Raises ``DeadlinePassed``."""
        left_s = self._ends_s - time.monotonic()
        if left_s <= 0:
            raise DeadlinePassed
        return left_s
