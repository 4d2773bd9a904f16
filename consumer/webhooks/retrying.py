"""When a delivery that failed is tried again, and when a receiver has failed for too long."""

from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

from storage.clock import MS_PER_DAY

RETRIED_MS: Final = MS_PER_DAY
"""For so long deliveries are retried; then nothing is sent to the address until somebody says so."""
_FIRST_PAUSE_MS: Final = 5_000
_LAST_PAUSE_MS: Final = 3_600_000
RETRY_AFTER_MAX_S: Final = 3_600.0
"""For so long at most a receiver is left alone that asks for it."""
_GROWTH: Final = 3
_JITTER: Final = 0.2
_DIGITS_MAX: Final = 9


def next_try_ms(failing_since_ms: int, now_ms: int, retry_after_s: float | None, chance: float) -> int:
    """Return when to try again what has failed since then: after 5 s, 15 s, 1 min, 4 min, 16 min, then every hour.

    ``retry_after_s`` is what the receiver asks for; it is respected up to an hour. ``chance``, from 0 to 1, spreads the
    attempts over a fifth of the pause.
    """
    grown_ms = _GROWTH * max(now_ms - failing_since_ms, 0)
    pause_ms = min(max(grown_ms, _FIRST_PAUSE_MS), _LAST_PAUSE_MS)
    wanted_ms = round(1_000 * min(retry_after_s or 0.0, RETRY_AFTER_MAX_S))
    return now_ms + max(round(pause_ms * (1 + _JITTER * chance)), wanted_ms)


def has_failed_too_long(failing_since_ms: int, now_ms: int) -> bool:
    """Return whether a receiver that has failed since then gets nothing more."""
    return now_ms - failing_since_ms >= RETRIED_MS


def retry_after_s(value: str, now_s: float) -> float | None:
    """Return the pause in seconds that a header ``Retry-After`` asks for; None where it says nothing of use."""
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:_DIGITS_MAX])
    try:
        at = parsedate_to_datetime(text)
        return max((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now_s, 0.0)
    except (ValueError, OverflowError, OSError):
        return None
