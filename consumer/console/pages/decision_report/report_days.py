"""The days that a report of decisions is about, as a query asks for them."""

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
        """The same in milliseconds."""
        return DaySpan(day_begins_ms(self.first), day_begins_ms(self.last + timedelta(days=1)))

    @property
    def fields(self) -> dict[str, str]:
        """The query that asks for them."""
        return {FIRST: self.first.isoformat(), LAST: self.last.isoformat()}


def days_in(query: Fields, now_ms: int) -> ReportDays:
    """Return the days that a query asks for: the latest 30 unless it says others. Raises ``PageError``."""
    today = day_of(now_ms)
    last = query.day(LAST) or today
    first = query.day(FIRST) or last - timedelta(days=min(DEFAULT_DAYS, last.toordinal()) - 1)
    if last < first:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("The last day is before the first one."))
    if (last - first).days >= DAYS_MAX or last == date.max:
        message = N_("A report has at most %(most)s days. Choose a later first day, or an earlier last one.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, most=DAYS_MAX)
    return ReportDays(first, last)


def day_of(at_ms: int) -> date:
    """Return the day in UTC on which a moment is."""
    return datetime.fromtimestamp(at_ms / MS_PER_S, UTC).date()
