"""The pauses between the attempts of a call that is repeated."""

import random
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

Result = TypeVar("Result")


class Backoff(NamedTuple):
    """A first pause in seconds, which is doubled after each attempt, and the longest.

    Chance shortens each pause by up to the share ``jitter`` of it, so that many callers do not repeat at one moment.
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

    def call(self, work: Callable[[], Result], passes: Callable[[Exception], bool], wait_s: float) -> Result:
        """Repeat a call while its error ``passes``, and return its result; after ``wait_s`` seconds raise the error."""
        until_s = time.monotonic() + wait_s
        pauses = self.pauses()
        while True:
            try:
                return work()
            except Exception as error:
                if not passes(error) or time.monotonic() >= until_s:
                    raise
            time.sleep(next(pauses))
