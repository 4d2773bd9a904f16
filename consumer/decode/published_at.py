"""Reads the time of publication in the forms that feeds use (decision 0039).

The field is optional, so the article is judged even if its value cannot be read. Nothing is guessed: an ambiguous form
is unreadable until a setting says what it means.
"""

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Literal, get_args

import msgspec

from consumer.model.article import TimeFault
from consumer.text.timestamps import localised, parse_moment

Unit = Literal["auto", "s", "ms", "us", "ns"]
_PER_SECOND: Final[dict[Unit, int]] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_YEAR_1_S: Final = -62_135_596_800
_YEAR_10000_S: Final = 253_402_300_800
_AUTO_S_END: Final = 10_000_000_000
"""The unit of a number is recognised only for times less than this many seconds from 1970 (until 20 November 2286)."""
_NUMBER: Final = re.compile(r"[+-]?\d{1,21}(?:\.\d{1,21})?", re.ASCII)
_CALENDAR: Final = range(1900_01_01, 2200_01_01)
"""Whole numbers that may be dates written as YYYYMMDD."""


class Instant(float):
    """Seconds since 1970 from a value whose schema says that it is a time. The unit and zone settings do not apply."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TimeForm:
    """The unit of numbers and the zone of times without one. ``zone`` is None if it is unknown."""

    unit: Unit = "auto"
    zone: tzinfo | None = None


def read_time(value: object, form: TimeForm) -> float | TimeFault:
    """Return seconds since 1970, in the years 1 to 9999, or why the value cannot be read."""
    if isinstance(value, Instant):
        return _in_range(float(value))
    if isinstance(value, str):
        return _of_text(value.strip(), form)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _of_number(value, form.unit)
    return TimeFault.WRONG_TYPE


def _of_number(number: float, unit: Unit) -> float | TimeFault:
    if isinstance(number, float) and not math.isfinite(number):
        return TimeFault.OUT_OF_RANGE
    found = _recognise_unit(number) if unit == "auto" else unit
    if isinstance(found, TimeFault):
        return found
    per_second = _PER_SECOND[found]
    if not _YEAR_1_S * per_second <= number < _YEAR_10000_S * per_second:
        return TimeFault.OUT_OF_RANGE
    return float(number) if per_second == 1 else number / per_second


def _recognise_unit(number: float) -> Unit | TimeFault:
    """Return the unit of a number if only one is possible, or else the fault.

    Finer units are recognised only for times from 1978 to 2286, and equally far before 1970. Numbers for times nearer
    to 1970 could also be more distant times in the next coarser unit.
    """
    size = abs(number)
    if size < _AUTO_S_END:
        return TimeFault.NO_UNIT if _is_calendar_date(number) else "s"
    for unit in get_args(Unit)[2:]:
        finer = _PER_SECOND[unit]
        if size < _AUTO_S_END * finer:
            return unit if size >= _YEAR_10000_S * finer // 1000 else TimeFault.NO_UNIT
    return TimeFault.OUT_OF_RANGE


def _is_calendar_date(number: float) -> bool:
    # A range would compare a float with each of its three million numbers.
    if not float(number).is_integer() or int(number) not in _CALENDAR:
        return False
    try:
        datetime.strptime(f"{number:.0f}", "%Y%m%d")  # noqa: DTZ007  # only checks that the day exists
    except ValueError:
        return False
    return True


def _of_text(text: str, form: TimeForm) -> float | TimeFault:
    if not text:
        return TimeFault.EMPTY
    if _NUMBER.fullmatch(text):
        return _of_number(float(text) if "." in text else int(text), form.unit)
    try:
        moment = _moment(text)
    except ValueError:
        return TimeFault.NOT_A_TIME
    if moment.tzinfo is None:
        local = None if form.zone is None else localised(moment, form.zone)
        if local is None:
            return TimeFault.NO_ZONE
        moment = local
    return _in_range((moment - _EPOCH) / _SECOND)


def _moment(text: str) -> datetime:
    try:
        return msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        return parse_moment(text)


def _in_range(seconds: float) -> float | TimeFault:
    return seconds if _YEAR_1_S <= seconds < _YEAR_10000_S else TimeFault.OUT_OF_RANGE
