"""The time of day as every store writes it: milliseconds since 1970, in UTC."""

import time
from collections.abc import Callable
from typing import Final

Clock = Callable[[], int]
"""Tells the time in milliseconds since 1970. Passed in, so that a test can set it."""

MS_PER_S: Final = 1_000
_NS_PER_MS: Final = 1_000_000


def now_ms() -> int:
    """The machine's clock."""
    return time.time_ns() // _NS_PER_MS
