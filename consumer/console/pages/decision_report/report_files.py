"""Exports the report of decisions as CSV and as JSON lines, day by day."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import date, timedelta
from typing import Final

import msgspec

from consumer.console.pages.decision_report.report_days import days_in
from consumer.console.visit import SignedInVisit, StreamedResponse
from consumer.reviews.moderation.decision_report import ReportLine, lines_of_day
from consumer.text.spreadsheet import text_cell
from consumer.text.timestamps import day_begins_ms
from consumer.text.visible import one_line

COLUMNS: Final = ("day", "event", "source", "by", "reason", "outcome", "why", "flags")
_CELL_CHARS_MAX: Final = 4_000
# Without a byte order mark, spreadsheets do not recognise UTF-8.
_BYTE_ORDER_MARK: Final = "\ufeff"


def export_csv(visit: SignedInVisit) -> StreamedResponse:
    """Send the counts as CSV."""
    return _streamed_response(visit, "csv", "text/csv; charset=utf-8", _csv, _table([COLUMNS], _BYTE_ORDER_MARK))


def export_json_lines(visit: SignedInVisit) -> StreamedResponse:
    """Send the counts as JSON lines."""
    return _streamed_response(visit, "jsonl", "application/jsonl; charset=utf-8", _json_lines, b"")


def _streamed_response(
    visit: SignedInVisit,
    ending: str,
    content_type: str,
    encode: Callable[[date, Sequence[ReportLine]], bytes],
    prefix: bytes,
) -> StreamedResponse:
    days = days_in(visit.query, visit.context.now_ms())

    def piece(last: str | None) -> tuple[bytes, str | None]:
        """Return the lines of the day after ``last`` (None: the first day), and that day, or None if it is the last."""
        day = days.first if last is None else date.fromisoformat(last) + timedelta(days=1)
        with visit.context.database.read_connection() as connection:
            lines = lines_of_day(connection, day_begins_ms(day))
        data = encode(day, lines)
        return (prefix + data if last is None else data), None if day == days.last else day.isoformat()

    return StreamedResponse(content_type, f"dupwatch-decisions-{days.first}-{days.last}.{ending}", piece)


def _csv(day: date, lines: Sequence[ReportLine]) -> bytes:
    return _table([[day.isoformat(), *_cells(line)] for line in lines])


def _cells(line: ReportLine) -> list[str]:
    values = {name: "" if value is None else str(value) for name, value in asdict(line).items()}
    return [values[name] for name in COLUMNS[1:]]


def _table(rows: Sequence[Sequence[str]], prefix: str = "") -> bytes:
    file = io.StringIO()
    file.write(prefix)
    csv.writer(file).writerows([text_cell(one_line(cell, _CELL_CHARS_MAX)) for cell in row] for row in rows)
    return file.getvalue().encode()


def _json_lines(day: date, lines: Sequence[ReportLine]) -> bytes:
    named = [{"day": day.isoformat(), **asdict(line)} for line in lines]
    return b"".join(msgspec.json.encode({name: line[name] for name in COLUMNS}) + b"\n" for line in named)
