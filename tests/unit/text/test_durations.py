"""Spans of time in options."""

from datetime import timedelta

import pytest

from consumer.model.errors import ConfigError
from consumer.text.timestamps import option_duration, shown_duration


def test_spans() -> None:
    """Minutes, hours and days; what is shown can be given again."""
    assert option_duration("--x", "30m") == timedelta(minutes=30)
    assert option_duration("--x", "12h") == timedelta(hours=12)
    assert option_duration("--x", shown_duration(timedelta(days=90))) == timedelta(days=90)


@pytest.mark.parametrize("text", ["", "90", "d", "1.5d", "-1d", "1w", "1d12h", " 1d", "1d\n", "٣d", "9999999d"])
def test_what_is_no_span(text: str) -> None:
    """The message names the option and says how to write it."""
    with pytest.raises(ConfigError, match=r"--x: .* is not a duration; write it as 30m, 12h or 90d"):
        option_duration("--x", text)
