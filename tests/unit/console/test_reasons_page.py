"""Admins keep the list of reasons for *wrong*; people choose from it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.reviews import audit
from consumer.reviews.audit import AuditFilters
from tests.unit.console.desks import Office, office, page
from tests.unit.console.newsroom import article
from tests.unit.console.serving import Browser
from tests.unit.console.test_foreign_text import HOSTILE, check_text


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Office]:
    """A console with three flags of one story."""
    with office(tmp_path) as opened:
        original = article("original", "First report", "Text.")
        for name in ("one", "two", "three"):
            opened.room.flag(article(name, name, "Text."), original, 0.8)
        yield opened


@pytest.fixture
def wei(desk: Office) -> Browser:
    """The browser of an admin."""
    return desk.served.signed_in("Wei", "admin")


def noted(desk: Office) -> list[tuple[str, str, str]]:
    """What the audit log has of reasons and of decisions, the first entry first."""
    with desk.served.database.read_connection() as connection:
        entries = audit.search(connection, AuditFilters(), None, 1_000).rows
    kept = [entry for entry in entries if entry.action.startswith(("reason.", "flag."))]
    return [(entry.action, entry.subject, entry.why) for entry in reversed(kept)]


def names(wei: Browser) -> list[str | None]:
    """The names of the reasons on the page, in order."""
    return [field.attributes.get("value") for field in page(wei, "/reasons").all(".reasons-to-choose [name=name]")]


def test_a_list_is_kept(desk: Office, wei: Browser) -> None:
    """Added, renamed, moved, retired and restored; each change is in the audit log, and forms offer what is left."""
    assert "There are no reasons yet, so forms ask for a note only." in page(wei, "/reasons").answer.shown
    assert page(desk.ann, "/flags/1").all("#reason") == []
    for name in ("Timetable", "Obituary"):
        answer = wei.send("/reasons", name=f" {name} ")
        assert "Reason added." in page(wei, answer.header("location")).answer.shown
    wei.send("/reasons/1", action="rename", name="Time table")
    wei.send("/reasons/2", action="up")
    assert names(wei) == ["Obituary", "Time table"]
    wei.send("/reasons/2", action="retire")
    assert names(wei) == ["Time table"]
    assert page(desk.ann, "/flags/1").texts("#reason option") == ["Reason, if wrong", "Time table"]
    wei.send("/reasons/2", action="restore")
    assert page(desk.ann, "/").texts("#reason option") == ["Reason, if wrong", "Time table", "Obituary"]
    assert noted(desk) == [
        ("reason.add", "Timetable", ""),
        ("reason.add", "Obituary", ""),
        ("reason.rename", "Timetable", "Time table"),
        ("reason.move", "Obituary", ""),
        ("reason.retire", "Obituary", ""),
        ("reason.restore", "Obituary", ""),
    ]


def test_what_cannot_be_is_said(desk: Office, wei: Browser) -> None:
    """Nothing is changed, and nothing is in the log."""
    wei.send("/reasons", name="Timetable")
    for path, form, status, said in (
        ("/reasons", {"name": "Timetable"}, 409, "A reason of this name already exists"),
        ("/reasons", {"name": "TIMETABLE"}, 409, "A reason of this name already exists"),
        ("/reasons", {"name": " "}, 400, "Enter a name"),
        ("/reasons", {"name": "a\u202eb"}, 400, "Enter a name"),
        ("/reasons", {"name": "x" * 81}, 400, "“Name” has 81 characters"),
        ("/reasons/1", {"action": "delete"}, 400, "can be renamed, retired"),
        ("/reasons/1", {"action": "rename"}, 400, "Enter a name"),
        ("/reasons/9", {"action": "retire"}, 404, "There is no such page."),
    ):
        answer = wei.send(path, **form)
        assert (answer.status, said in answer.shown) == (status, True), answer.shown
    for number in range(19):
        wei.send("/reasons", name=f"Reason {number}")
    full = wei.send("/reasons", name="One more")
    assert (full.status, "The list can have at most 20 reasons" in full.shown) == (409, True)
    assert "which is the limit" in page(wei, "/reasons").answer.shown
    assert len(noted(desk)) == 20


def test_wrong_has_a_reason(desk: Office, wei: Browser) -> None:
    """Of one flag, of a selection and of a story: it is in the history and in the audit log, beside the note."""
    wei.send("/reasons", name="Timetable")
    reason = {"reason": "1", "note": "Page 3."}
    desk.ann.send("/flags/1/decide", decision="wrong", **reason)
    desk.ann.send("/flags/decide", flag="2", decision="wrong", reason="1")
    story = f"/stories/{desk.room.row('three').story_id}/decide"
    assert page(desk.ann, f"{story}?decision=wrong").texts("#reason option") == ["Reason", "Timetable"]
    assert page(desk.ann, f"{story}?decision=right").all("#reason") == []
    desk.ann.send(story, decision="wrong", up_to="9", count="9", **reason)
    assert noted(desk)[1:] == [
        ("flag.wrong", "one", "Timetable: Page 3."),
        ("flag.wrong", "two", "Timetable"),
        ("flag.wrong", "three", "Timetable: Page 3."),
    ]
    wei.send("/reasons/1", action="retire")
    opened = page(desk.ann, "/flags/1")
    assert opened.texts(".history .reason") == ["Timetable"]
    assert opened.texts(".history .text") == ["Page 3."]


def test_only_wrong_has_a_reason(desk: Office, wei: Browser) -> None:
    """With another decision it says nothing; one that is not there, or is retired, is refused."""
    wei.send("/reasons", name="Timetable")
    desk.ann.send("/flags/1/decide", decision="right", reason="1")
    assert page(desk.ann, "/flags/1").texts(".history .reason") == []
    for wrong, said in (("9", "There is no such reason. Nothing was decided."), ("x", "“reason” is not a number")):
        answer = desk.ann.send("/flags/2/decide", decision="wrong", reason=wrong)
        assert (answer.status, said in answer.shown) == (400, True)
    assert desk.room.state("two") == "open"
    wei.send("/reasons/1", action="retire")
    answer = desk.ann.send("/flags/2/decide", decision="wrong", reason="1")
    assert (answer.status, "This reason was retired. Nothing was decided." in answer.shown) == (409, True)
    assert desk.room.state("two") == "open"


def test_a_name_may_differ_in_case_from_its_own(wei: Browser) -> None:
    """And it may be spelled with the joiner that its script needs."""
    wei.send("/reasons", name="timetable")
    assert wei.send("/reasons/1", action="rename", name="Timetable").status == 303
    assert wei.send("/reasons", name="می\u200cخواهم").status == 303
    assert names(wei) == ["Timetable", "می\u200cخواهم"]


def test_an_error_leads_back_to_its_form(wei: Browser) -> None:
    """Where the browser says where it came from; the title does not blame the request."""
    wei.send("/reasons", name="Timetable")
    form = {"token": wei.get("/reasons").token, "name": "Timetable"}
    for referer, name, expected in (
        ("/reasons", "Timetable", '<a class="button main" href="/reasons">Back to the form</a>'),
        ("/reasons/1", " ", '<a class="button main" href="/reasons">Back to the form</a>'),
        ("/", " ", '<a class="button main" href="/">Back to the queue</a>'),
        ("/%0a//evil.example", " ", '<a class="button main" href="/">Back to the queue</a>'),
    ):
        answer = wei.post("/reasons", {**form, "name": name}, referer=f"{wei.url}{referer}")
        assert expected in answer.text, (referer, answer.text)
        assert "<h1>Not done</h1>" in answer.text
    other = wei.post("/reasons", form, referer="https://evil.example/reasons")
    assert "Back to the form" not in other.shown
    assert "<h1>This page cannot be shown</h1>" in wei.get("/audit?from=today").text


def test_names_are_shown_as_text(desk: Office, wei: Browser) -> None:
    """On every page that has them."""
    text = next(text for text in HOSTILE.values() if text.isprintable() and len(text) <= 80)
    assert wei.send("/reasons", name=text).status == 303
    desk.ann.send("/flags/1/decide", decision="wrong", reason="1")
    for path in ("/reasons", "/flags/1", "/flags/2", "/", "/audit"):
        check_text(wei.get(path).text, text)
