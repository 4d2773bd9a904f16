"""The time of day as stores write it, milliseconds since 1970 in UTC, and how long a wait may be silent."""

import time
from collections.abc import Callable
from typing import Final

NOTICE_S: Final = 2.0
"""How long a wait for a server, of a store or of Kafka, may take before it is announced."""
Clock = Callable[[], int]
"""Returns the time in milliseconds since 1970. Passed in, so that tests can set it."""

MS_PER_S: Final = 1_000
_NS_PER_MS: Final = 1_000_000


def now_ms() -> int:
    """Read the machine's clock."""
    return time.time_ns() // _NS_PER_MS
