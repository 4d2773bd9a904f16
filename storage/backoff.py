"""Pauses between the attempts of a repeated call."""

import random
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

Result = TypeVar("Result")


class Backoff(NamedTuple):
    """Pauses between attempts, in seconds: ``first_s``, doubled after each attempt up to ``longest_s``.

    Each pause is shortened at random by up to the share ``jitter``, so that many callers do not retry at the same time.
    """

    first_s: float
    longest_s: float
    jitter: float = 0.0

    def pauses(self) -> Iterator[float]:
        """Yield the pauses after the first attempt, the second and so on, without end."""
        pause_s = self.first_s
        while True:
            yield pause_s * random.uniform(1 - self.jitter, 1)  # noqa: S311  # spreads callers over time, protects nothing
            pause_s = min(2 * pause_s, self.longest_s)

    def call(self, work: Callable[[], Result], may_retry: Callable[[Exception], bool], wait_s: float) -> Result:
        """Return the result of a call, which is repeated after errors that ``may_retry`` accepts.

        Raises the last error if ``may_retry`` does not accept it, or if ``wait_s`` seconds have passed.
        """
        until_s = time.monotonic() + wait_s
        pauses = self.pauses()
        while True:
            try:
                return work()
            except Exception as error:
                if not may_retry(error) or time.monotonic() >= until_s:
                    raise
            time.sleep(next(pauses))
