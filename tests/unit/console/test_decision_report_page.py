"""The report of decisions, on its page and as files."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from consumer.console.pages.decision_report import report_page
from consumer.reviews.moderation.reasons import add_reason
from tests.unit.console.desks import Office, office, page
from tests.unit.console.newsroom import article

TODAY = "2025-11-24"
SCHEMA = Draft202012Validator(
    json.loads((Path(__file__).parents[3] / "docs" / "schemas" / "decision-count.schema.json").read_bytes())
)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Office]:
    """A console with three flags, two of them decided."""
    with office(tmp_path) as opened:
        opened.room.database.write(lambda c: add_reason(c, "Timetable"))
        original = article("original", "First report", "Text.")
        for source in ("blog", "=1+1", "post"):
            opened.room.flag(article(f"of-{source}", "A copy", "Text.", source=source), original)
        opened.ann.send("/flags/1/decide", decision="right")
        opened.ann.send("/flags/2/decide", decision="wrong", reason="1", note="A secret note.")
        yield opened


def rows(desk: Office, query: str = "") -> list[list[str]]:
    """The rows of the table."""
    found = page(desk.ann, f"/decisions{query}").all("#decisions tbody tr")
    return [[" ".join(cell.text().split()) for cell in row.css("th, td")] for row in found]


def test_the_page_counts_by_day_source_and_reason(desk: Office) -> None:
    """Of the latest thirty days, unless others are asked for."""
    assert rows(desk) == [
        [TODAY, "3", "1", "1", "0", "0", "0", "0", "0", "0", "1"],
        ["All", "3", "1", "1", "0", "0", "0", "0", "0", "0", "1"],
    ]
    assert rows(desk, "?by=source")[:3] == [
        ["=1+1", "1", "0", "1", "0", "0", "0", "0", "0", "0", "1"],
        ["blog", "1", "1", "0", "0", "0", "0", "0", "0", "0", "0"],
        ["post", "1", "0", "0", "0", "0", "0", "0", "0", "0", "0"],
    ]
    assert rows(desk, "?by=reason") == [
        ["without a reason", "1", "0", "0", "0", "0", "0", "0", "0", "0"],
        ["Timetable", "0", "1", "0", "0", "0", "0", "0", "0", "1"],
        ["All", "1", "1", "0", "0", "0", "0", "0", "0", "1"],
    ]
    opened = page(desk.ann, "/decisions?by=source")
    assert opened.texts("nav.tabs [aria-current]") == ["By source"]
    assert opened.all("#first")[0].attributes["value"] == "2025-10-26"
    assert opened.hrefs("nav.tabs a")[0] == f"/decisions?first=2025-10-26&last={TODAY}&by=day"
    assert "Nothing was flagged or decided" in page(desk.ann, "/decisions?last=2025-11-23").answer.shown


def test_the_files_have_the_same(desk: Office) -> None:
    """As CSV that no spreadsheet runs, and as JSON lines; without names of people and notes."""
    csv_file = desk.ann.get("/decisions.csv?first=2025-11-20")
    assert csv_file.header("content-type") == "text/csv; charset=utf-8"
    assert f"dupwatch-decisions-2025-11-20-{TODAY}.csv" in csv_file.header("content-disposition")
    found = list(csv.DictReader(io.StringIO(csv_file.text.removeprefix("\ufeff"))))
    assert [(row["event"], row["source"], row["reason"], row["outcome"], row["flags"]) for row in found] == [
        ("flagged", "'=1+1", "", "", "1"),
        ("flagged", "blog", "", "", "1"),
        ("flagged", "post", "", "", "1"),
        ("wrong", "'=1+1", "Timetable", "waiting", "1"),
        ("right", "blog", "", "", "1"),
    ]
    lines = desk.ann.get("/decisions.jsonl?first=2025-11-20")
    assert lines.header("content-type") == "application/jsonl; charset=utf-8"
    decoded = [json.loads(line) for line in lines.text.splitlines()]
    assert decoded[3] == {
        "day": TODAY,
        "event": "wrong",
        "source": "=1+1",
        "by": "person",
        "reason": "Timetable",
        "outcome": "waiting",
        "why": None,
        "flags": 1,
    }
    assert len(decoded) == len(found)
    assert all(SCHEMA.is_valid(line) for line in decoded)
    for answer in (csv_file, lines, desk.ann.get("/decisions?by=reason")):
        assert "A secret note." not in answer.text
    assert "Ann" not in csv_file.text + lines.text


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("first=2025-11-24&last=2025-11-23", "The last day is before the first one."),
        ("first=2024-11-23", "A report can have at most 366 days."),
        ("first=0001-01-01&last=9999-12-31", "A report can have at most 366 days."),
        ("last=9999-12-31", "A report can have at most 366 days."),
        ("first=today", "“First day (UTC)” is not a date."),
        ("last=2025-02-30", "“Last day (UTC)” is not a date."),
        ("by=person", "“by” cannot be person. Possible values: day, source, reason."),
    ],
)
def test_days_that_cannot_be_are_said(desk: Office, query: str, said: str) -> None:
    """Of the page and of the files."""
    for path in ("/decisions", "/decisions.csv", "/decisions.jsonl"):
        if "by=" in query and path != "/decisions":
            continue
        answer = desk.ann.get(f"{path}?{query}")
        assert (answer.status, said in answer.shown) == (400, True), answer.shown


@pytest.mark.parametrize("query", ["first=2024-11-24", "last=0001-01-05", "first=0001-01-01&last=0001-01-01"])
def test_the_longest_and_the_earliest_days_can_be(desk: Office, query: str) -> None:
    """A year, and the beginning of the calendar."""
    for path in ("/decisions", "/decisions.csv"):
        assert desk.ann.get(f"{path}?{query}").status == 200


def test_a_long_table_is_cut(desk: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest groups are left, and the total is that of all."""
    monkeypatch.setattr(report_page, "ROWS_MAX", 1)
    assert [row[:2] for row in rows(desk, "?by=source")] == [["=1+1", "1"], ["All", "3"]]
    assert "2 smaller groups are not shown." in page(desk.ann, "/decisions?by=source").answer.shown


def test_it_is_read_in_chinese(desk: Office) -> None:
    """With the same figures."""
    desk.ann.send("/me/language", language="zh")
    assert rows(desk)[0][0] == TODAY
    assert "第一天（UTC）" in desk.ann.get("/decisions").shown
