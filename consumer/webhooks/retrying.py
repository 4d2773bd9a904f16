"""When to retry a failed delivery, and when a receiver has failed for too long."""

from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

from storage.clock import MS_PER_DAY

RETRY_PERIOD_MS: Final = MS_PER_DAY
"""How long deliveries are retried. After that, the webhook is turned off until somebody turns it on."""
_FIRST_PAUSE_MS: Final = 5_000
_LAST_PAUSE_MS: Final = 3_600_000
RETRY_AFTER_MAX_S: Final = 3_600.0
"""The longest pause that a receiver can request."""
_GROWTH: Final = 3
_JITTER: Final = 0.2
_DIGITS_MAX: Final = 9


def next_try_ms(failing_since_ms: int, now_ms: int, retry_after_s: float | None, chance: float) -> int:
    """Return the time of the next try: after 5 s, 15 s, 1 min, 4 min and 16 min, then every hour.

    ``retry_after_s`` is the pause that the receiver requests, respected up to an hour. ``chance`` is a random number
    from 0 to 1 that lengthens the pause by at most a fifth.
    """
    grown_ms = _GROWTH * max(now_ms - failing_since_ms, 0)
    pause_ms = min(max(grown_ms, _FIRST_PAUSE_MS), _LAST_PAUSE_MS)
    requested_ms = round(1_000 * min(retry_after_s or 0.0, RETRY_AFTER_MAX_S))
    return now_ms + max(round(pause_ms * (1 + _JITTER * chance)), requested_ms)


def has_failed_too_long(failing_since_ms: int, now_ms: int) -> bool:
    """Return whether a receiver has failed for so long that nothing more is sent."""
    return now_ms - failing_since_ms >= RETRY_PERIOD_MS


def retry_after_s(value: str, now_s: float) -> float | None:
    """Return the pause in seconds that a ``Retry-After`` header requests, or None if it is empty or invalid."""
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:_DIGITS_MAX])
    try:
        at = parsedate_to_datetime(text)
        return max((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now_s, 0.0)
    except (ValueError, OverflowError, OSError):
        return None
