"""The page that counts decisions by day, source or reason."""

from collections.abc import Mapping
from typing import Final, NamedTuple, get_args
from urllib.parse import urlencode

from starlette.responses import Response

from consumer.console.faults import N_
from consumer.console.pages.decision_report.report_days import day_of, days_in
from consumer.console.pages.queue_filters import one_of
from consumer.console.pages.queue_pages import Tab
from consumer.console.visit import SignedInVisit
from consumer.reviews.moderation.decision_report import DecisionReport, DecisionTally, Grouping, RefusalCause, report

ROWS_MAX: Final = 500
"""The maximum number of groups that the page lists. The exported files have all groups."""
GROUPING_FIELD: Final = "by"
_GROUPINGS: Final[Mapping[Grouping, str]] = {
    "day": N_("By day"),
    "source": N_("By source"),
    "reason": N_("By reason"),
}
_CAUSES: Final[Mapping[RefusalCause, str]] = {
    "left_store": N_("the store no longer had the article"),
    "no_flag": N_("the article was not flagged"),
    "other": N_("another cause, which the audit log names"),
}


class ReportRow(NamedTuple):
    """A group of the table. ``name`` is a day, a source or a reason; None for decisions without one."""

    name: str | None
    tally: DecisionTally


def show_report(visit: SignedInVisit) -> Response:
    """Show the counts of the chosen days."""
    days = days_in(visit.query, visit.context.now_ms())
    chosen = one_of(visit.query, GROUPING_FIELD, get_args(Grouping)) or "day"
    grouping: Grouping = next(each for each in _GROUPINGS if each == chosen)
    with visit.context.database.read_connection() as connection:
        found = report(connection, days.span, grouping)
    rows = _rows(found, grouping)
    query = urlencode(days.fields)
    return visit.page(
        "decisions.html",
        days=days,
        grouping=grouping,
        tabs=[
            Tab(
                visit.language.gettext(name),
                f"/decisions?{urlencode({**days.fields, GROUPING_FIELD: each})}",
                each == grouping,
            )
            for each, name in _GROUPINGS.items()
        ],
        rows=rows[:ROWS_MAX],
        left_out=max(len(rows) - ROWS_MAX, 0),
        total=found.total,
        refusals=[(visit.language.gettext(_CAUSES[cause]), flags) for cause, flags in found.refusals.items()],
        csv=f"/decisions.csv?{query}",
        json_lines=f"/decisions.jsonl?{query}",
    )


def _rows(found: DecisionReport, grouping: Grouping) -> list[ReportRow]:
    """Return the groups: days with the latest first, others with the largest first."""
    if grouping == "day":
        days = sorted(((key, tally) for key, tally in found.groups.items() if isinstance(key, int)), reverse=True)
        return [ReportRow(day_of(at_ms).isoformat(), tally) for at_ms, tally in days]
    named = [ReportRow(key, tally) for key, tally in found.groups.items() if not isinstance(key, int)]
    return sorted(named, key=lambda row: (-_size(row.tally), row.name is not None, row.name or ""))


def _size(tally: DecisionTally) -> int:
    return tally.flagged + tally.right + tally.wrong + tally.skip + tally.undone
