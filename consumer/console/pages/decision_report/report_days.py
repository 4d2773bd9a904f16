"""The days of a report of decisions, read from a query."""

from datetime import UTC, date, datetime, timedelta
from http import HTTPStatus
from typing import Final, NamedTuple

from consumer.console.faults import N_, PageError
from consumer.console.visit import Fields
from consumer.reviews.moderation.decision_report import DaySpan
from consumer.text.timestamps import day_begins_ms
from storage.clock import MS_PER_S

DAYS_MAX: Final = 366
DEFAULT_DAYS: Final = 30
FIRST: Final = "first"
LAST: Final = "last"


class ReportDays(NamedTuple):
    """The first and the last day of a report, both included, in UTC."""

    first: date
    last: date

    @property
    def span(self) -> DaySpan:
        """The span of the days in milliseconds."""
        return DaySpan(day_begins_ms(self.first), day_begins_ms(self.last + timedelta(days=1)))

    @property
    def fields(self) -> dict[str, str]:
        """The query fields for these days."""
        return {FIRST: self.first.isoformat(), LAST: self.last.isoformat()}


def days_in(query: Fields, now_ms: int) -> ReportDays:
    """Return the days in a query, by default the latest 30. Raises ``PageError``."""
    today = day_of(now_ms)
    last = query.day(LAST) or today
    first = query.day(FIRST) or last - timedelta(days=min(DEFAULT_DAYS, last.toordinal()) - 1)
    if last < first:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("The last day is before the first one."))
    if (last - first).days >= DAYS_MAX or last == date.max:
        message = N_("A report can have at most %(most)s days. Choose a later first day, or an earlier last one.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, most=DAYS_MAX)
    return ReportDays(first, last)


def day_of(at_ms: int) -> date:
    """Return the day of a moment in UTC."""
    return datetime.fromtimestamp(at_ms / MS_PER_S, UTC).date()
