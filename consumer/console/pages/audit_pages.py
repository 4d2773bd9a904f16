"""The audit log: a page to search it, and its export as CSV."""

import csv
import io
from collections.abc import Iterable
from datetime import UTC, date, datetime
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

from starlette.responses import Response

from consumer.console.faults import N_, PageError
from consumer.console.visit import SignedInVisit, StreamedResponse
from consumer.reviews import audit
from consumer.reviews.audit import AuditEntry, AuditFilters
from consumer.text.spreadsheet import text_cell
from consumer.text.timestamps import day_begins_ms
from consumer.text.visible import one_line
from storage.clock import MS_PER_DAY

ACTIONS: Final[dict[str, str]] = {
    "session.begin": N_("signed in"),
    "session.refused": N_("failed to sign in"),
    "session.end": N_("signed out"),
    "person.first_seen": N_("visited for the first time"),
    "person.add": N_("added a person"),
    "person.disable": N_("disabled a person"),
    "person.enable": N_("enabled a person"),
    "person.role": N_("changed a role"),
    "person.password": N_("issued a new password"),
    "flag.right": N_("decided right"),
    "flag.wrong": N_("decided wrong"),
    "flag.skip": N_("skipped a flag"),
    "flag.undo": N_("undid a decision"),
    "flag.note": N_("wrote a note"),
    "standing.begin": N_("made a standing decision"),
    "standing.end": N_("stopped a standing decision"),
    "reason.add": N_("added a reason"),
    "reason.rename": N_("renamed a reason"),
    "reason.retire": N_("retired a reason"),
    "reason.restore": N_("restored a reason"),
    "reason.move": N_("moved a reason"),
    "source.rank": N_("set or removed the rank of a source"),
    "report.add": N_("reported a missed copy"),
    "report.undo": N_("undid a report"),
    "story.split": N_("split an article off its story"),
    "story.split.undo": N_("undid a split"),
    "story.merge": N_("merged two stories"),
    "story.merge.undo": N_("undid a merge"),
    "bank.create": N_("created a bank"),
    "bank.change": N_("changed a bank"),
    "bank.enable": N_("enabled a bank"),
    "bank.disable": N_("disabled a bank"),
    "bank.remove": N_("removed a bank"),
    "item.add": N_("added a text to a bank"),
    "item.change": N_("changed an item of a bank"),
    "item.enable": N_("enabled an item of a bank"),
    "item.disable": N_("disabled an item of a bank"),
    "item.confirm": N_("confirmed an item of a bank"),
    "item.unconfirm": N_("withdrew the confirmation of an item"),
    "item.remove": N_("removed an item of a bank"),
    "webhook.add": N_("created a webhook"),
    "webhook.change": N_("changed a webhook"),
    "webhook.secret": N_("made a new secret for a webhook"),
    "webhook.former": N_("ended the former secret of a webhook"),
    "webhook.test": N_("tested a webhook"),
    "webhook.send": N_("sent the waiting events of a webhook"),
    "webhook.off": N_("a webhook was turned off"),
    "webhook.remove": N_("removed a webhook"),
    "own.language": N_("changed their language"),
    "own.password": N_("changed their password"),
    "release.sent": N_("a release was sent"),
    "release.refused": N_("a release was refused"),
    "audit.export": N_("exported the audit log"),
}
"""Labels of actions. Other actions are shown by their names."""
ROWS_MAX: Final = 100
_PIECE_ROWS_MAX: Final = 1_000
"""The maximum number of entries in one piece of an export."""
_COLUMNS: Final = ("at", "person", "address", "action", "subject", "flag", "why")
_FIELDS: Final = ("person", "action", "text", "from", "to")
_CELL_CHARS_MAX: Final = 4_000
# Without a byte order mark, spreadsheets do not recognise UTF-8.
_BYTE_ORDER_MARK: Final = "\ufeff"


def show_audit(visit: SignedInVisit) -> Response:
    """Show the entries that match, latest first."""
    filters, query = _filters(visit), visit.query
    with visit.context.database.read_connection() as connection:
        page = audit.search(connection, filters, query.text("after") or None, ROWS_MAX)
    given = {name: query.text(name) for name in _FIELDS}
    language = visit.language
    kept = urlencode(_pairs(given))
    return visit.page(
        "audit.html",
        entries=page.rows,
        given=given,
        actions=[("", language.gettext(N_("all")))]
        + [(name, language.gettext(label)) for name, label in ACTIONS.items()],
        names={name: language.gettext(label) for name, label in ACTIONS.items()},
        export=f"/audit.csv?{kept}" if kept else "/audit.csv",
        further=f"/audit?{urlencode([*_pairs(given), ('after', page.after)])}" if page.after else "",
        first=bool(query.text("after")) and (f"/audit?{kept}" if kept else "/audit"),
    )


def export(visit: SignedInVisit) -> StreamedResponse:
    """Send all matching entries as CSV, latest first."""
    filters = _filters(visit)
    filtered_by = urlencode(_pairs({name: visit.query.text(name) for name in _FIELDS}))

    def piece(after: str | None) -> tuple[bytes, str | None]:
        with visit.context.database.read_connection() as connection:
            page = audit.search(connection, filters, after, _PIECE_ROWS_MAX)
        if after is None:
            visit.context.database.write(lambda c: visit.add_audit_entry(c, "audit.export", subject=filtered_by))
        rows = _rows(page.rows)
        return (_csv([_COLUMNS, *rows], _BYTE_ORDER_MARK) if after is None else _csv(rows)), page.after

    at = datetime.fromtimestamp(visit.context.now_ms() / 1_000, UTC)
    return StreamedResponse("text/csv; charset=utf-8", f"dupwatch-audit-{at:%Y%m%dT%H%M%SZ}.csv", piece)


def _filters(visit: SignedInVisit) -> AuditFilters:
    query = visit.query
    begin, end = _day(visit, "from"), _day(visit, "to")
    return AuditFilters(
        person=query.text("person") or None,
        action=query.text("action") or None,
        text=query.text("text") or None,
        from_ms=begin,
        to_ms=None if end is None else end + MS_PER_DAY,
    )


def _day(visit: SignedInVisit, name: str) -> int | None:
    """Return the beginning of a day in UTC, in milliseconds, or None for an empty field. Raises ``PageError``."""
    value = visit.query.text(name)
    if not value:
        return None
    try:
        day = date.fromisoformat(value)
    except ValueError as error:
        message = N_("%(value)s is not a date. Write it as 2026-11-23.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, value=one_line(value, 40)) from error
    return day_begins_ms(day)


def _pairs(given: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in given.items() if value]


def _rows(entries: Iterable[AuditEntry]) -> list[tuple[str, ...]]:
    return [
        (
            datetime.fromtimestamp(entry.at_ms / 1_000, UTC).isoformat(timespec="milliseconds"),
            entry.person,
            entry.address,
            entry.action,
            entry.subject,
            "" if entry.flag_id is None else str(entry.flag_id),
            entry.why,
        )
        for entry in entries
    ]


def _csv(rows: Iterable[tuple[str, ...]], begin: str = "") -> bytes:
    file = io.StringIO()
    file.write(begin)
    csv.writer(file).writerows([_cell(cell) for cell in row] for row in rows)
    return file.getvalue().encode()


def _cell(text: str) -> str:
    """Return a cell that every program reads as text: no formula and no terminal control."""
    return text_cell(one_line(text, _CELL_CHARS_MAX))
