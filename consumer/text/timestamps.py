"""Writes times, and parses times from command lines, settings and feeds.

The caller decides about times without a zone. Options treat them as UTC, like all output; feeds have
``source.published_at_zone``.
"""

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from email.utils import parsedate
from typing import Final
from zoneinfo import ZoneInfo

from consumer.model.errors import ConfigError
from storage.clock import MS_PER_DAY

TIME_HELP: Final = "2026-11-21T09:00:00Z, 2026-11-21T17:00+08:00 or 2026-11-21; without a zone it is UTC"
"""How to write a time on the command line, for help and errors."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_ISO: Final = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)"
    r"(?:[Tt ](?P<time>\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?) ?(?P<zone>[Zz]|UTC|GMT|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_RFC_2822: Final = re.compile(
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), ?)?"
    r"(?P<moment>\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d(?::\d\d)?)"
    r"(?: (?P<zone>[+-]\d{4}|[A-Z]{1,3}))?(?: \([^()]*\))?",
    re.ASCII | re.IGNORECASE,
)
_OFFSET: Final = re.compile(r"(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>[0-5]\d)?", re.ASCII)
_ZONES: Final = {"Z": 0, "UT": 0, "UTC": 0, "GMT": 0, "EST": -5, "EDT": -4, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8,
                 "PDT": -7}  # fmt: skip
"""The zones of RFC 2822 with their offsets in hours.

CST is left out, because in feeds it means China (+8) as often as America (-6).
"""
DURATION_HELP: Final = "30m, 12h or 90d"
"""How to write a duration on the command line, for help and errors."""
_DURATION: Final = re.compile(r"([0-9]{1,6})([mhd])")
_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


def parse_moment(text: str) -> datetime:
    """Return a time parsed from ISO 8601 (RFC 3339 and its shorter forms) or RFC 2822. Without a zone it is naive.

    Raises ``ValueError`` for anything else.
    """
    if found := _ISO.fullmatch(text):
        zone = "" if found["zone"] is None else found["zone"].upper()
        return datetime.fromisoformat(f"{found['date']}T{found['time'] or '00:00'}{'Z' if zone in _ZONES else zone}")
    if (found := _RFC_2822.fullmatch(text)) and (parts := parsedate(found["moment"])):
        naive = datetime(*parts[:6])  # noqa: DTZ001  # the zone comes next
        return naive if found["zone"] is None else naive.replace(tzinfo=_named_zone(found["zone"].upper()))
    raise ValueError(f"{text!r} is not a time")


def parse_zone(text: str) -> tzinfo:
    """Return the zone of an offset (+08:00), Z, UTC, or an IANA name (Asia/Shanghai). Raises ``ValueError``."""
    if text in {"Z", "UTC"} or _OFFSET.fullmatch(text):
        return _named_zone(text)
    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(
            f"{text!r} is not a time zone that this machine knows; write an offset such as +08:00, or a name such as"
            " Asia/Shanghai"
        ) from error


def localised(naive: datetime, zone: tzinfo) -> datetime | None:
    """Return a local time in this zone, or None if clocks skip or repeat it, so that it names no single moment."""
    moment = naive.replace(tzinfo=zone)
    return moment if moment.utcoffset() == moment.replace(fold=1).utcoffset() else None


def option_time_ms(option: str, text: str, expected: str = "a time") -> int:
    """Return the time of an option in milliseconds since 1970. Without a zone it is in UTC.

    Raises ``ConfigError`` for other values; the message says that ``expected`` was expected. Times before 1970 are
    refused, because negative timestamps mean something else to Kafka.
    """
    try:
        moment = parse_moment(text)
    except ValueError:
        raise ConfigError(f"{option}: {text!r} is not {expected}; write a time as {TIME_HELP}") from None
    time_ms = since_1970_ms(moment)
    if time_ms < 0:
        raise ConfigError(f"{option}: {text!r} is before 1970; write a later time")
    return time_ms


def day_begins_ms(day: date) -> int:
    """Return the start of a day in UTC, in milliseconds since 1970."""
    return (day - _EPOCH.date()).days * MS_PER_DAY


def since_1970_ms(moment: datetime) -> int:
    """Return a time in milliseconds since 1970, rounded down. Without a zone it is in UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MILLISECOND


def rfc3339(time_ms: int) -> str:
    """Return a time as RFC 3339, in UTC with milliseconds.

    Raises ``ValueError``, ``OverflowError`` or ``OSError`` for times outside the calendar.
    """
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shown_time(time_ms: int) -> str:
    """Return ``rfc3339`` of an untrusted time, or the number of milliseconds if the time is outside the calendar."""
    try:
        return rfc3339(time_ms)
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"


def _named_zone(text: str) -> tzinfo:
    if found := _OFFSET.fullmatch(text):
        size = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"] or 0))
        return timezone(-size if found["sign"] == "-" else size)
    if text not in _ZONES:
        raise ValueError(f"{text!r} is not an unambiguous time zone")
    return timezone(timedelta(hours=_ZONES[text]))


def option_duration(option: str, text: str) -> timedelta:
    """Return the duration of an option. Raises ``ConfigError`` unless it is written as in ``DURATION_HELP``."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ConfigError(f"{option}: {text!r} is not a duration; write it as {DURATION_HELP}")
    return int(match[1]) * _UNITS[match[2]]


def shown_duration(span: timedelta) -> str:
    """Return a duration in days, in the form of options. A part of a day is dropped."""
    return f"{span.days}d"
