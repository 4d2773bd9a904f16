"""Points in time as text: what command lines, settings and feeds write.

One parser for all of them. Whether a time without a zone is taken is up to the caller: options take it as UTC, as all
output is in UTC; the articles of a feed have ``source.published_at_zone``.
"""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from email.utils import parsedate
from typing import Final
from zoneinfo import ZoneInfo

from consumer.model.errors import ConfigError

TIME_HELP: Final = "2026-11-21T09:00:00Z, 2026-11-21T17:00+08:00 or 2026-11-21; without a zone it is UTC"
"""How a time is written on the command line, for help and errors."""
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
"""The names of RFC 2822, in hours. CST is not among them: in feeds it is as often China's (+8) as America's (-6)."""


def parse_moment(text: str) -> datetime:
    """The time that a text gives as ISO 8601 (RFC 3339 and its shorter forms) or RFC 2822; naive where it has no zone.

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
    """The zone of an offset (+08:00), of Z or UTC, or of an IANA name (Asia/Shanghai). Raises ``ValueError``."""
    if text in {"Z", "UTC"} or _OFFSET.fullmatch(text):
        return _named_zone(text)
    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(
            f"{text!r} is not a time zone known on this machine; write an offset such as +08:00, or a name such as"
            " Asia/Shanghai"
        ) from error


def localised(naive: datetime, zone: tzinfo) -> datetime | None:
    """A local time in its zone; None in an hour that the clocks there skip or repeat, where it is not one moment."""
    moment = naive.replace(tzinfo=zone)
    return moment if moment.utcoffset() == moment.replace(fold=1).utcoffset() else None


def option_time_ms(option: str, text: str, wanted: str = "a time") -> int:
    """The time that an option gives, in milliseconds since 1970; UTC where it names no zone. ``ConfigError`` otherwise.

    Times before 1970 are refused: Kafka takes negative timestamps for something else.
    """
    try:
        moment = parse_moment(text)
    except ValueError:
        raise ConfigError(f"{option}: {text!r} is not {wanted}; write a time as {TIME_HELP}") from None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    time_ms = (aware - _EPOCH) // _MILLISECOND
    if time_ms < 0:
        raise ConfigError(f"{option}: {text!r} is before 1970; write a later time")
    return time_ms


def _named_zone(text: str) -> tzinfo:
    if found := _OFFSET.fullmatch(text):
        size = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"] or 0))
        return timezone(-size if found["sign"] == "-" else size)
    if text not in _ZONES:
        raise ValueError(f"{text!r} is not a zone that every reader takes for the same")
    return timezone(timedelta(hours=_ZONES[text]))
