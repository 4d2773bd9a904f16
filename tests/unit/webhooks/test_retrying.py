"""When a delivery is tried again, and when a receiver has failed for too long."""

import pytest

from consumer.webhooks.retrying import RETRY_PERIOD_MS, has_failed_too_long, next_try_ms, retry_after_s


def test_pauses_grow_to_an_hour() -> None:
    """From five seconds, three times as long each time; a day has some thirty attempts."""
    at_ms, pauses = 0, []
    while not has_failed_too_long(0, at_ms):
        later_ms = next_try_ms(0, at_ms, None, 0.0)
        pauses.append((later_ms - at_ms) // 1_000)
        at_ms = later_ms
    assert pauses[:7] == [5, 15, 60, 240, 960, 3_600, 3_600]
    assert set(pauses[5:]) == {3_600}
    assert 25 < len(pauses) < 35


def test_chance_only_adds() -> None:
    """Up to a fifth, so that receivers that come back are not asked by all at once."""
    assert next_try_ms(0, 0, None, 0.5) == 5_500
    assert next_try_ms(0, RETRY_PERIOD_MS, None, 1.0) == RETRY_PERIOD_MS + 4_320_000


@pytest.mark.parametrize(("asked_s", "pause_s"), [(None, 5), (0.0, 5), (60.0, 60), (3_600.0, 3_600), (1e12, 3_600)])
def test_a_receiver_may_ask_for_an_hour(asked_s: float | None, pause_s: int) -> None:
    """And never for less than the pause."""
    assert next_try_ms(7_000, 7_000, asked_s, 0.0) == 7_000 + pause_s * 1_000


def test_a_clock_that_goes_back_makes_no_pause_shorter() -> None:
    """Nor longer than an hour."""
    assert next_try_ms(10_000, 0, None, 0.0) == 5_000


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0), (" 5 ", 5.0), ("0", 0.0), ("9" * 400, 999_999_999.0), ("", None), ("soon", None), ("-5", None),
        ("1.5", None), ("٣", None), ("Fri, 27 Nov 2026 22:21:00 GMT", 60.0), ("Fri, 27 Nov 2026 22:00:00 GMT", 0.0),
        ("Fri, 99 Nov 2026 22:00:00 GMT", None),
    ],
)  # fmt: skip
def test_what_a_receiver_asks_for(value: str, seconds: float | None) -> None:
    """Seconds, or a date; other values say nothing."""
    assert retry_after_s(value, 1_795_818_000.0) == seconds


def test_a_day_is_a_day() -> None:
    """To the millisecond."""
    assert not has_failed_too_long(5, 5 + RETRY_PERIOD_MS - 1)
    assert has_failed_too_long(5, 5 + RETRY_PERIOD_MS)
