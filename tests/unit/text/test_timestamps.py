"""Times as options and feeds give them, and as events have them."""

import pytest

from consumer.cli.operations.dead_letters import _selection
from consumer.config.loading import load_config
from consumer.kafka.offset_range import Bound, parse_bound
from consumer.model.errors import ConfigError
from consumer.text.timestamps import localised, option_time_ms, parse_moment, parse_zone, rfc3339, shown_time


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("1970-01-02", 86_400_000),
        ("1970-01-01T00:01", 60_000),
        ("1970-01-01 00:00:02", 2_000),
        ("1970-01-01T00:00:01Z", 1_000),
        ("1970-01-01T09:00:00.5+09:00", 500),
        ("1970-01-01T09:00:00 +0900", 0),
        ("Thu, 01 Jan 1970 08:00:03 +0800", 3_000),
    ],
)
def test_every_option_takes_the_same_times(text: str, time_ms: int) -> None:
    """A time without a zone is UTC, for ``replay --from``, ``dead-letters --since`` and ``store pack --before``."""
    assert parse_bound("--from", text) == Bound(time_ms=time_ms)
    topic = load_config(None, {"sink": {"url": "kafka://h:1/a"}})
    selection = _selection(topic, None, text, text, None)
    assert (selection.since_ms, selection.until_ms) == (time_ms, time_ms)
    assert option_time_ms("--before", text) == time_ms


@pytest.mark.parametrize("text", ["", "yesterday", "20260101", "2026-02-30", "2026-01-01T00:00:00+25:00", "٢٠٢٦-01-01"])
def test_what_is_not_a_time(text: str) -> None:
    """The option is named, and how a time is written."""
    with pytest.raises(ConfigError, match=r"--since: .* is not a time; write a time as .* without a zone it is UTC"):
        option_time_ms("--since", text)


def test_times_before_1970_are_refused() -> None:
    """Kafka takes -1 ms and -2 ms for the end and the beginning of a partition."""
    with pytest.raises(ConfigError, match="before 1970"):
        parse_bound("--from", "1969-12-31T23:59:59.999Z")


def test_names_of_zones_that_are_read_in_two_ways() -> None:
    """CST is China's or America's; the other names of RFC 2822 are one zone."""
    assert parse_moment("Sat, 31 Jan 2026 08:15:30 EST").isoformat() == "2026-01-31T08:15:30-05:00"
    assert parse_moment("31 Jan 2026 08:15 GMT (UTC)").isoformat() == "2026-01-31T08:15:00+00:00"
    with pytest.raises(ValueError, match="CST"):
        parse_moment("Sat, 31 Jan 2026 08:15:30 CST")


def test_local_times_that_name_no_one_moment() -> None:
    """Where clocks are changed, an hour comes twice and another one not at all."""
    zone = parse_zone("Europe/Berlin")
    assert localised(parse_moment("2026-03-29T01:30"), zone) is not None
    assert localised(parse_moment("2026-03-29T02:30"), zone) is None
    assert localised(parse_moment("2026-10-25T02:30"), zone) is None
    assert localised(parse_moment("2026-10-25T03:30"), zone) is not None


@pytest.mark.parametrize("text", ["", "Nowhere/City", "../etc/passwd", "/etc/passwd", "+8", "Asia", "CST"])
def test_what_is_not_a_zone(text: str) -> None:
    """It is quoted, with how to write one."""
    with pytest.raises(ValueError, match=r"zone"):
        parse_zone(text)


@pytest.mark.parametrize(
    ("time_ms", "text"), [(0, "1970-01-01T00:00:00.000Z"), (1_700_000_000_250, "2023-11-14T22:13:20.250Z")]
)
def test_times_are_written_in_utc_with_milliseconds(time_ms: int, text: str) -> None:
    """As events have them; what is written can be parsed again."""
    assert rfc3339(time_ms) == shown_time(time_ms) == text
    assert int(parse_moment(text).timestamp() * 1000) == time_ms


def test_a_time_that_the_calendar_does_not_have_is_shown_as_a_number() -> None:
    """Times from outside may be any number."""
    assert shown_time(1 << 62) == f"{1 << 62} ms"
    with pytest.raises((OverflowError, ValueError, OSError)):
        rfc3339(1 << 62)
