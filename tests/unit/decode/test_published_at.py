"""Forms of ``published_at``: the common ones are read, and nothing is guessed."""

import math
from datetime import UTC, datetime
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.decode.published_at import Instant, TimeForm, Unit, read_time
from consumer.model.article import TimeFault
from consumer.text.timestamps import parse_zone

AUTO = TimeForm()
AT_S = datetime(2026, 1, 31, 0, 15, 30, tzinfo=UTC).timestamp()
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
CHINA = TimeForm(zone=parse_zone("Asia/Shanghai"))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (0, 0),
        (1.5, 1.5),
        (-86_400, -86_400),
        (1_700_000_000.25, 1_700_000_000.25),
        ("1700000000", 1_700_000_000),
        ("1700000000.25", 1_700_000_000.25),
        (1_700_000_000_251, 1_700_000_000.251),
        ("1700000000251", 1_700_000_000.251),
        (1_700_000_000_251_000, 1_700_000_000.251),
        (1_700_000_000_251_000_000, 1_700_000_000.251),
        ("1970-01-01T00:00:01Z", 1),
        ("2026-01-31t00:15:30.250z", AT_S + 0.25),
        ("2026-01-31T08:15:30+08:00", AT_S),
        ("2026-01-31 08:15:30+0800", AT_S),
        ("2026-01-31 08:15:30 +0800", AT_S),
        ("2026-01-31T08:15+08", AT_S - 30),
        (" 2026-01-31 00:15:30 UTC\n", AT_S),
        ("Sat, 31 Jan 2026 08:15:30 +0800", AT_S),
        ("31 Jan 2026 00:15:30 GMT", AT_S),
        ("Sat, 31 Jan 2026 00:15:30 -0000", AT_S),
        ("Fri, 30 Jan 2026 19:15:30 EST", AT_S),
        (Instant(AT_S), AT_S),
        (Instant(253_402_300_799), 253_402_300_799),
    ],
)
def test_common_forms_are_recognised(value: object, seconds: float) -> None:
    """Seconds and finer, RFC 3339 and its relatives, RFC 2822, and what a schema says is a time."""
    assert read_time(value, AUTO) == seconds


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("", TimeFault.EMPTY),
        ("  ", TimeFault.EMPTY),
        ("2026-01-31T08:15:30", TimeFault.NO_ZONE),
        ("2026-01-31", TimeFault.NO_ZONE),
        ("Sat, 31 Jan 2026 08:15:30", TimeFault.NO_ZONE),
        ("Sat, 31 Jan 2026 08:15:30 CST", TimeFault.NOT_A_TIME),
        ("01/02/2026", TimeFault.NOT_A_TIME),
        ("yesterday", TimeFault.NOT_A_TIME),
        ("2026-02-31T08:15:30Z", TimeFault.NOT_A_TIME),
        ("2026-01-31T08:15:30+99:00", TimeFault.NOT_A_TIME),
        ("9" * 999, TimeFault.NOT_A_TIME),
        (20_260_131, TimeFault.NO_UNIT),
        ("20260131", TimeFault.NO_UNIT),
        (20_260_131_081_530, TimeFault.NO_UNIT),
        (100_000_000_000, TimeFault.NO_UNIT),
        (253_402_300_799, TimeFault.NO_UNIT),
        (-62_135_596_800, TimeFault.NO_UNIT),
        (10**300, TimeFault.OUT_OF_RANGE),
        (10**400, TimeFault.OUT_OF_RANGE),
        (-1e300, TimeFault.OUT_OF_RANGE),
        (math.nan, TimeFault.OUT_OF_RANGE),
        (math.inf, TimeFault.OUT_OF_RANGE),
        ("0001-01-01T00:00:00+08:00", TimeFault.OUT_OF_RANGE),
        (Instant(math.nan), TimeFault.OUT_OF_RANGE),
        (Instant(1_700_000_000_000), TimeFault.OUT_OF_RANGE),
        (True, TimeFault.WRONG_TYPE),
        ([], TimeFault.WRONG_TYPE),
        ({"$date": 1}, TimeFault.WRONG_TYPE),
        (b"1", TimeFault.WRONG_TYPE),
    ],
)
def test_what_is_not_read_is_told(value: object, fault: TimeFault) -> None:
    """Also what fits two times, of which nobody knows which is meant."""
    assert read_time(value, AUTO) is fault


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_unit_that_is_set_holds_for_every_number(unit: Unit) -> None:
    """For those in texts too; not for times that say themselves what they are."""
    form = TimeForm(unit)
    per_second = PER_SECOND[unit]
    for seconds in (0, 20_260_131, 100_000_000, 253_402_300_799, -62_135_596_800):
        assert read_time(seconds * per_second, form) == seconds
        assert read_time(str(seconds * per_second), form) == seconds
    assert read_time(253_402_300_800 * per_second, form) is TimeFault.OUT_OF_RANGE
    assert read_time("1970-01-01T00:00:01Z", form) == 1
    assert read_time(Instant(5), form) == 5


@given(st.floats(253_402_301, 9_999_999_999), st.sampled_from(get_args(Unit)[1:]))
def test_every_unit_is_recognised_from_1978_to_2286(seconds: float, unit: Unit) -> None:
    """To within what a float tells apart."""
    found = read_time(int(seconds * PER_SECOND[unit]), AUTO)
    assert not isinstance(found, TimeFault)
    assert found == pytest.approx(seconds, abs=1.0)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-01-31T08:15:30", AT_S),
        ("2026-01-31 08:15", AT_S - 30),
        ("2026-01-31", AT_S - 8 * 3_600 - 15 * 60 - 30),
        ("Sat, 31 Jan 2026 08:15:30", AT_S),
        ("2026-01-31T00:15:30Z", AT_S),
        ("2026-01-31T01:15:30+01:00", AT_S),
    ],
)
def test_a_zone_that_is_set_holds_for_times_without_one(text: str, seconds: float) -> None:
    """And for no other."""
    assert read_time(text, CHINA) == seconds


def test_an_hour_that_comes_twice_is_not_read() -> None:
    """Nor one that the clocks skip; China had summer time until 1991."""
    berlin = TimeForm(zone=parse_zone("Europe/Berlin"))
    assert read_time("2026-10-25T02:30:00", berlin) is TimeFault.NO_ZONE
    assert read_time("2026-03-29T02:30:00", berlin) is TimeFault.NO_ZONE


def test_numbers_with_a_fraction_are_read_at_once() -> None:
    """Whether they may be dates is not looked up one by one: 10,000 of them would take the better part of an hour."""
    for number in range(10_000):
        assert read_time(1_700_000_000.5 + number, AUTO) == 1_700_000_000.5 + number
    assert read_time(20_260_131.0, AUTO) is TimeFault.NO_UNIT
    assert read_time(20_260_131.5, AUTO) == 20_260_131.5


@given(st.one_of(st.text(max_size=40), st.integers(), st.floats(), st.binary(max_size=4), st.none()))
def test_anything_is_a_time_or_a_fault(value: object) -> None:
    """Nothing is raised, and what is read is within the years 1 to 9999."""
    for form in (AUTO, CHINA, TimeForm("ns")):
        found = read_time(value, form)
        assert isinstance(found, TimeFault) or -62_135_596_800 <= found < 253_402_300_800
