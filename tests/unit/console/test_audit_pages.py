"""The audit log is searched, paged and exported."""

import csv
import io
import re
from collections.abc import Mapping
from http.client import IncompleteRead
from pathlib import Path
from typing import Any, get_args

import pytest

import consumer
from consumer.config.descriptions import all_settings
from consumer.console.pages.audit_pages import ACTIONS, ROWS_MAX
from consumer.reviews import audit
from consumer.reviews.audit import AuditFilters
from consumer.reviews.database import Connection, DatabaseUnavailable
from consumer.reviews.decisions import Decision
from tests.unit.console.serving import Browser, Served

CONSUMER = Path(consumer.__file__).parent
DAY_MS = 86_400_000
SECOND = 1_764_028_800_000
"""2025-11-25, the day on which the second half happened."""


@pytest.fixture
def wei(console: Served) -> Browser:
    """The browser of an admin."""
    return console.signed_in("Wei", "admin")


def note(console: Served, *entries: Mapping[str, object]) -> None:
    """Put entries into the log."""

    def noted(connection: Connection) -> None:
        for entry in entries:
            given: dict[str, object] = {"at_ms": SECOND, "person": "Ann", "address": "10.0.0.1", "action": "person.add"}
            audit.add_entry(connection, **(given | dict(entry)))  # type: ignore[arg-type]  # as the test says

    console.database.write(noted)


def rows(text: str) -> list[dict[str, str]]:
    """Read an export."""
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


def test_every_field_can_be_searched(console: Served, wei: Browser) -> None:
    """And all together; the last day of a span belongs to it."""
    note(
        console,
        {"subject": "flag-one", "at_ms": SECOND - 1, "person": "Ann"},
        {"subject": "flag-two", "at_ms": SECOND, "action": "person.role", "why": "a promotion"},
        {"subject": "flag-three", "at_ms": SECOND + DAY_MS - 1, "person": "李娜", "flag_id": 7},
        {"subject": "flag-four", "at_ms": SECOND + DAY_MS, "person": "李娜"},
    )
    expected = {
        "person=Ann": {"one", "two"},
        "person=%E6%9D%8E%E5%A8%9C": {"three", "four"},
        "action=person.role": {"two"},
        "text=promotion": {"two"},
        "text=flag-t": {"two", "three"},
        "from=2025-11-25&person=Ann": {"two"},
        "from=2025-11-25&to=2025-11-25": {"two", "three"},
        "to=2025-11-24&text=flag-": {"one"},
        "text=100%25": set(),
    }
    for query, found in expected.items():
        shown = wei.get(f"/audit?{query}").shown
        assert {name for name in ("one", "two", "three", "four") if f"flag-{name}" in shown} == found, query
    assert "Nothing matches." in wei.get("/audit?text=no-such-thing").shown
    assert '<a href="/flags/7">' in wei.get("/audit?text=flag-three").text


def test_a_day_that_is_none_is_refused(wei: Browser) -> None:
    """With the form in which days are written."""
    for day in ("yesterday", "2025-02-30", "9" * 40):
        answer = wei.get(f"/audit?from={day}")
        assert answer.status == 400
        assert "Write it as 2026-11-23" in answer.shown
    assert wei.get("/audit?after=nowhere").status == 400


def test_pages_go_on_to_the_first_entry(console: Served, wei: Browser) -> None:
    """Each entry once, with the search kept from page to page."""
    note(console, *({"subject": f"subject-{number:03}-end"} for number in range(2 * ROWS_MAX + 50)))
    seen: list[str] = []
    path = "/audit?text=subject-"
    while path:
        answer = wei.get(path)
        seen += [word for word in answer.shown.split() if word.endswith("-end")]
        found = answer.text.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
        assert not found or "text=subject-" in found
        path = found
    assert seen == [f"subject-{number:03}-end" for number in reversed(range(2 * ROWS_MAX + 50))]


def test_an_export_has_everything_that_matches(console: Served, wei: Browser) -> None:
    """More than one piece of it, in the order of the page; the export is in the log itself."""
    note(console, *({"subject": f"subject-{number:04}", "why": "because"} for number in range(2_500)))
    answer = wei.get("/audit.csv?text=subject-&person=Ann")
    assert answer.status == 200
    assert answer.header("content-type") == "text/csv; charset=utf-8"
    assert "dupwatch-audit-" in answer.header("content-disposition")
    found = rows(answer.text)
    assert [row["subject"] for row in found] == [f"subject-{number:04}" for number in reversed(range(2_500))]
    assert found[0] == {
        "at": "2025-11-25T00:00:00.000+00:00",
        "person": "Ann",
        "address": "10.0.0.1",
        "action": "person.add",
        "subject": "subject-2499",
        "flag": "",
        "why": "because",
    }
    with console.database.read_connection() as connection:
        (entry,) = audit.search(connection, AuditFilters(action="audit.export"), None, 1_000).rows
    assert (entry.person, entry.subject) == ("Wei", "person=Ann&text=subject-")


def test_the_head_of_an_export_is_not_all_of_it(console: Served, wei: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever only asks how it would be answered gets nothing, and is not said to have exported anything."""
    note(console, *({"subject": "subject"} for _ in range(2_500)))
    pieces: list[str | None] = []
    search = audit.search

    def counting(connection: Connection, filters: AuditFilters, after: str | None, rows_max: int) -> audit.AuditPage:
        pieces.append(after)
        return search(connection, filters, after, rows_max)

    monkeypatch.setattr(audit, "search", counting)
    assert wei.ask("HEAD", "/audit.csv?person=Ann").status == 200
    assert pieces == []
    with console.database.read_connection() as connection:
        assert search(connection, AuditFilters(action="audit.export"), None, 1).rows == ()
    assert len(rows(wei.get("/audit.csv?person=Ann").text)) == 2_500
    assert len(pieces) == 3


def test_a_spreadsheet_takes_nothing_for_a_formula(console: Served, wei: Browser) -> None:
    """Nor does a terminal take anything for a command; quotes and commas stay in their cell."""
    hostile = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "a\x1b[31m", 'a","b', "two\nlines", "\u202eevil"]
    note(console, *({"why": text} for text in hostile))
    found = [row["why"] for row in rows(wei.get("/audit.csv?person=Ann").text)][::-1]
    assert found[:4] == ["'=1+1", "'+1", "'-1", "'@SUM(A1)"]
    assert found[4:] == ["\ufffd=1", "\ufffd=1", "a\ufffd[31m", 'a","b', "two\ufffdlines", "\ufffdevil"]


def test_every_action_has_a_name() -> None:
    """A moderator reads sentences, whatever part of dupwatch made the entry; there is no name for what nobody does."""
    kinds = {action.partition(".")[0] for action in ACTIONS}
    literal = re.compile(rf'"((?:{"|".join(kinds)})\.(?!html)[a-z_.]+)"')
    sources = [path for folder in ("console", "cli") for path in (CONSUMER / folder).rglob("*.py")]
    others = [path for path in sources if path.name != "audit_pages.py"]
    found = {action for path in others for action in literal.findall(path.read_text(encoding="utf-8"))}
    found -= {setting.name for setting in all_settings()}
    decided = {f"flag.{decision}" for decision in get_args(Decision)}
    assert found | decided | {"audit.export"} == set(ACTIONS)


def test_actions_have_names_in_the_log(console: Served, wei: Browser) -> None:
    """An action of a later version is shown by its own name."""
    note(console, *({"action": action} for action in ACTIONS), {"action": "later.thing"})
    shown = wei.get("/audit?person=Ann").shown
    assert "later.thing" in shown
    assert [name for name in ACTIONS.values() if name not in shown] == []


@pytest.mark.parametrize("pieces", [0, 1])
def test_an_export_while_the_database_goes_away(
    console: Served, wei: Browser, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, pieces: int
) -> None:
    """At its beginning that is a page. Later the connection is closed, so that no part is taken for the whole."""
    note(console, *[{"subject": f"subject-{number}"} for number in range(1_500)])
    search, searched = audit.search, 0

    def away(*given: Any) -> audit.AuditPage:  # noqa: ANN401  # those of search
        nonlocal searched
        searched += 1
        if searched > pieces:
            raise DatabaseUnavailable("gone")
        return search(*given)

    monkeypatch.setattr(audit, "search", away)
    if pieces:
        with pytest.raises(IncompleteRead):
            wei.get("/audit.csv")
        assert "is cut off: gone" in caplog.text
    else:
        answer = wei.get("/audit.csv")
        assert (answer.status, answer.header("content-type")) == (503, "text/html; charset=utf-8")
    assert [record for record in caplog.records if record.exc_info] == []
