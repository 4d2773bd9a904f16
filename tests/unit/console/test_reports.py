"""Reporting a copy that was missed: compared, confirmed, stored once, undone; and what cannot be reported."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from consumer.console.pages.review_evaluation import evaluation_of
from consumer.console.pages.text_differences import PART_CHARS_MAX
from consumer.reviews import audit
from consumer.reviews.audit import AuditFilters
from consumer.reviews.pairs.reports import latest_reports, undo
from consumer.reviews.tables import METADATA
from storage.errors import StoreUnavailable
from tests.stored_texts import SETTINGS, StoreOfTexts
from tests.unit.banks.test_known_texts import edited, written
from tests.unit.console.archives import Archive
from tests.unit.console.banks import bank, bank_file, banks_in, item
from tests.unit.console.desks import Office, Page, office, page
from tests.unit.console.newsroom import BEGAN_MS
from tests.unit.console.reviewed import review, whole_figures
from tests.unit.console.serving import Answer
from tests.unit.console.test_foreign_text import HOSTILE, check_text

FORM: Final = "/look-up/report"
ARTICLE: Final = written(1, 100)
MISSED: Final = edited(ARTICLE, 14)
"""Too far from the article to be flagged: two thirds of the text are in both."""
LONG: Final = written(3, 2_000)


@dataclass(frozen=True)
class Desk:
    """A console over an archive that it reads articles from."""

    office: Office
    archive: Archive
    banks: Path

    def compare(self, **fields: str) -> Answer:
        """Send the form."""
        return self.office.ann.send(FORM, FORM, **fields)

    def compared(self, **fields: str) -> Page:
        """Send the form, which is complete."""
        return Page(self.compare(**fields))

    def report(self, **fields: str) -> Answer:
        """Send the form, and confirm it."""
        asked = self.compared(**fields)
        return self.office.ann.post("/reports", {**asked.form("/reports"), "note": fields.get("note", "")})

    def reports(self) -> int:
        """How many reports are in force."""
        with self.office.served.database.read_connection() as connection:
            return len(latest_reports(connection, 100))

    def audited(self) -> list[tuple[str, str, str, str]]:
        """Who reported and undid what, the first entry first."""
        with self.office.served.database.read_connection() as connection:
            rows = audit.search(connection, AuditFilters(), None, 1_000).rows
        told = [(row.person, row.action, row.subject, row.why) for row in rows[::-1]]
        return [entry for entry in told if entry[1].startswith("report.")]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A console whose store has an article, a copy that was missed, and a flagged one."""
    path = tmp_path / "banks.jsonl"
    bank_file(path, bank("spam"), bank("notices", "allow"), item("spam", "offer", written(9, 100)))
    made = StoreOfTexts()
    made.judge({"first": ARTICLE, "flagged": edited(ARTICLE, 1), "other": written(2, 100)}, BEGAN_MS)
    made.judge({"missed": MISSED}, BEGAN_MS + 60_000)
    archive = Archive(made)
    with office(tmp_path, comparable=archive, judging=SETTINGS, banks=bank_file(path)) as opened:
        opened.ann.get("/banks")
        opened.articles.read = archive.read  # type: ignore[method-assign]  # the articles of the store
        yield Desk(opened, archive, path)


def test_a_copy_is_compared_reported_and_undone(desk: Desk) -> None:
    """The later one is the article, whichever was named first; the audit log has it, and it can be reported again."""
    asked = desk.compared(one="first", other="missed")
    assert asked.texts(".side h2") == ["(no title) missed", "(no title) first"]
    assert asked.texts(".side ins")
    assert asked.texts(".side del")
    assert "similarity 0.6" in asked.answer.shown
    assert asked.texts(".reasons li") == ["They are less similar than the threshold, 73 %."]
    assert "A report does not count towards precision or recall" in asked.answer.shown
    assert desk.reports() == 0
    answer = desk.office.ann.post("/reports", {**asked.form("/reports"), "note": "seen on Monday"})
    assert (answer.status, answer.header("location")) == (303, "/reports/1")
    shown = page(desk.office.ann, "/reports/1")
    assert "Reported as a missed copy by Ann" in shown.answer.shown
    assert re.search(r"can be undone until 24 Nov 2025, [\d:]+ UTC \. ", shown.answer.shown)
    assert "seen on Monday" in shown.answer.shown
    assert shown.texts(".side ins") == asked.texts(".side ins")
    assert page(desk.office.ann, FORM).hrefs("ol.queue a") == ["/reports/1"]
    undone = desk.office.ann.post("/reports/1/undo", shown.form("/reports/1/undo"))
    assert undone.header("location") == "/reports/1"
    assert "Undone 24 Nov 2025" in page(desk.office.ann, "/reports/1").answer.shown
    assert desk.reports() == 0
    assert desk.report(one="missed", other="first").header("location") == "/reports/2"
    assert desk.audited() == [
        ("Ann", "report.add", "missed (1)", "seen on Monday"),
        ("Ann", "report.undo", "missed (1)", ""),
        ("Ann", "report.add", "missed (2)", ""),
    ]


def test_the_same_pair_is_reported_once(desk: Desk) -> None:
    """By anybody, in either order; the page leads to the report. Somebody who was quicker is told of, too."""
    asked = desk.compared(one="first", other="missed")
    assert desk.report(one="first", other="missed").status == 303
    late = desk.office.ann.post("/reports", asked.form("/reports"))
    assert (late.status, "Somebody has reported this pair already." in late.shown) == (409, True)
    bob = desk.office.colleague()
    again = Page(bob.send(FORM, FORM, one="missed", other="first"))
    assert again.link("Open it") == "/reports/1"
    assert again.all('form[action="/reports"]') == []
    assert desk.reports() == 1


def test_only_ones_own_report_is_undone_and_only_for_a_while(desk: Desk) -> None:
    """As decisions are."""
    assert desk.report(one="first", other="missed").status == 303
    bob = desk.office.colleague()
    assert page(bob, "/reports/1").all('form[action="/reports/1/undo"]') == []
    refused = bob.send("/reports/1/undo")
    assert (refused.status, "This report can no longer be undone" in refused.shown) == (409, True)
    desk.office.served.clock.pass_s(11)
    assert page(desk.office.ann, "/reports/1").all('form[action="/reports/1/undo"]') == []
    assert desk.office.ann.send("/reports/1/undo").status == 409
    assert desk.reports() == 1
    assert desk.office.ann.get("/reports/2").status == 404


def test_a_pasted_text_is_reported_and_kept_nowhere(desk: Desk) -> None:
    """Its figures are, and it can be added to a bank from the answer."""
    text = edited(ARTICLE, 15)
    asked = desk.compared(one="first", text=text, source="a site")
    assert asked.texts(".side h2") == ["The pasted text", "(no title) first"]
    assert asked.texts(".side ins")
    form = asked.form("/reports")
    assert form["text"] == text
    done = Page(desk.office.ann.post("/reports", form))
    assert "Reported as a missed copy by Ann" in done.answer.shown
    assert done.texts(".side ins") == asked.texts(".side ins")
    assert done.texts('button[value="article"]') == ["Add the pasted text"]
    with desk.office.served.database.read_connection() as connection:
        rows = [row for table in METADATA.sorted_tables for row in connection.execute(table.select())]
    assert not [row for row in rows if text[:40] in str(row)]
    again = page(desk.office.ann, "/reports/1")
    assert "Of a pasted text, only a digest, the source and the figures are stored" in again.answer.shown
    assert again.hrefs(".side .about a")[0].startswith("/look-up?id=first")
    known = desk.compared(one="first", text=f" {text}\n")
    assert known.link("Open it") == "/reports/1"
    added = desk.office.ann.post("/reports/1/bank", {**done.form("/reports/1/bank"), "bank": "spam", "side": "article"})
    assert added.status == 303
    assert "Text added to the bank spam." in page(desk.office.ann, added.header("location")).answer.shown
    assert [each.text for each in banks_in(desk.banks).items.values()][-1] == text


@pytest.mark.parametrize(("side", "text"), [("article", MISSED), ("original", ARTICLE)])
def test_either_text_is_added_to_a_bank(desk: Desk, side: str, text: str) -> None:
    """By one click on the page of the report."""
    desk.report(one="first", other="missed")
    form = page(desk.office.ann, "/reports/1").form("/reports/1/bank")
    added = desk.office.ann.post("/reports/1/bank", {**form, "bank": "spam", "side": side})
    assert "Text added to the bank spam." in page(desk.office.ann, added.header("location")).answer.shown
    assert [each.text for each in banks_in(desk.banks).items.values()][-1] == text
    refused = desk.office.ann.post("/reports/1/bank", {**form, "bank": "notices", "side": side})
    assert (refused.status, "Only an admin" in refused.shown) == (403, True)
    assert desk.office.ann.post("/reports/1/bank", {**form, "bank": "spam", "side": "both"}).status == 400


def test_what_was_not_missed(desk: Desk) -> None:
    """Copies of one story, versions of one article, a text that would be flagged, flags and near misses."""
    flagged = desk.compared(one="first", other="flagged")
    assert "Nothing was missed: one is flagged as a copy" in flagged.answer.shown
    desk.archive.made.judge({"missed": written(8, 100)}, BEGAN_MS + 90_000)
    assert "versions of one article" in desk.compared(one="missed", other="missed").answer.shown
    near = desk.compared(one="first", text=edited(ARTICLE, 2))
    assert "this text would be flagged as a copy of the article" in near.answer.shown
    for opened in (flagged, near):
        assert opened.all('form[action="/reports"]') == []
    form = desk.compared(one="first", other="other").form("/reports")
    form |= {"one": "first", "one_version": "", "other": "flagged", "other_version": ""}
    assert desk.office.ann.post("/reports", form).status == 409
    assert desk.reports() == 0


def test_a_pair_of_the_queue_is_decided_there(desk: Desk) -> None:
    """A near miss was drawn at random, so that a decision about it counts."""
    missed, other, first = desk.archive.views("missed", "other", "first")
    flag = desk.office.room.near_miss(missed, first, 0.7)
    opened = desk.compared(one="first", other="missed")
    assert "This pair is in the queue as a near miss that was drawn at random." in opened.answer.shown
    assert opened.link("Open it") == f"/flags/{flag.flag_id}"
    desk.office.room.flag(other, first)
    assert "This pair is already flagged." in desk.compared(one="first", other="other").answer.shown
    assert desk.reports() == 0


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({}, 400, "Enter the id of an article."),
        ({"one": "first"}, 400, "Enter the id of the other article or paste its text"),
        ({"one": "first", "other": "missed", "text": "x"}, 400, "but not both"),
        ({"one": "nowhere", "other": "first"}, 404, "The store has no article nowhere."),
        ({"one": "first", "other": "x" * 10_000}, 400, "This one has 10,000"),
        ({"one": "first", "other": "missed", "other_version": "ab"}, 404, "no longer has this version"),
        ({"one": "first", "text": "x" * 100_001}, 400, "The text has 100,001 characters"),
        ({"one": "first", "text": "\ufdfa" * 5_000}, 400, "that stand for several letters"),
    ],
    ids=["nothing", "one", "both", "unknown", "long id", "version", "long text", "folding"],
)
def test_what_cannot_be_compared(desk: Desk, fields: dict[str, str], status: int, said: str) -> None:
    """It is said on the form, which keeps what was sent; storing it is refused as well."""
    answer = desk.compare(**fields)
    assert (answer.status, said in answer.shown) == (status, True), answer.shown
    assert "first" not in fields.values() or 'value="first"' in answer.text
    assert desk.office.ann.send("/reports", FORM, **fields).status == status
    assert desk.reports() == 0


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_ids_notes_and_texts_are_text(desk: Desk, text: str) -> None:
    """On every page of a report."""
    # Forms change the ends of lines.
    name = text.replace("\r", "")
    desk.archive.made.judge({name: f"{MISSED} {text}"}, BEGAN_MS + 120_000)
    form = desk.compared(one="first", other=name).form("/reports") | {"one": name, "note": text}
    assert desk.office.ann.post("/reports", form).status == 303
    for path in (FORM, "/reports/1"):
        check_text(desk.office.ann.get(path).text, text)
    done = desk.report(one="first", text=f"{written(8, 60)} {text}", source=text, note=text)
    assert done.status == 200
    # A form has the text as it is.
    check_text(re.sub(r'value="[^"]*"', "", done.text), text)


def test_long_texts_have_parts(desk: Desk) -> None:
    """Before the report by a form that keeps what was sent, and after it by links."""
    assert len(LONG) > PART_CHARS_MAX
    desk.archive.made.judge({"long": LONG, "longer": edited(LONG, 700)}, BEGAN_MS)
    first = desk.compared(one="long", other="longer")
    assert "Part 1 of 2" in first.answer.shown
    second = Page(desk.office.ann.post(FORM, {**first.form(FORM), "part": "2"}))
    assert "Part 2 of 2" in second.answer.shown
    assert second.texts(".side .text") != first.texts(".side .text")
    assert desk.office.ann.post("/reports", second.form("/reports")).status == 303
    after = page(desk.office.ann, "/reports/1?part=2")
    assert after.texts(".side .text") == second.texts(".side .text")


def test_a_store_that_is_away_is_said(desk: Desk) -> None:
    """The form keeps what was sent; a report is shown without its texts."""
    desk.report(one="first", other="missed")
    desk.archive.error = StoreUnavailable("no region server")
    answer = desk.compare(one="first", other="other")
    assert (answer.status, "so nothing was compared" in answer.shown) == (503, True)
    assert 'value="other"' in answer.text
    assert desk.office.ann.send("/reports", FORM, one="first", other="other").status == 503
    shown = page(desk.office.ann, "/reports/1")
    assert shown.texts(".text.none") == ["The store does not answer at the moment."] * 2
    assert desk.reports() == 1


def test_reports_change_no_figure_of_thresholds(desk: Desk) -> None:
    """They are counted beside them, and another threshold says how many it would reach."""
    review(desk.office, 0.75, near_misses=60)
    database, clock = desk.office.served.database, desk.office.served.clock
    *_, before = evaluation_of(database, SETTINGS, clock)
    assert desk.report(one="first", other="missed").status == 303
    *_, after = evaluation_of(database, SETTINGS, clock)
    (similarity,) = after.reported.similarities
    assert similarity is not None
    assert 0.6 < similarity < 0.7
    assert after._replace(reported=before.reported) == before
    opened = whole_figures(desk.office)
    assert "1 copy , 0 of them at least as similar as the threshold" in opened.answer.shown
    moved = page(desk.office.ann, "/thresholds?threshold=0.62")
    assert "Reported copies that it would catch 1 of 1" in moved.answer.shown
    database.write(lambda c: undo(c, 1, 1, clock()))
    *_, undone = evaluation_of(database, SETTINGS, clock)
    assert undone == before
