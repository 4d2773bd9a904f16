"""Stories: what spreads, one with all its copies, deciding many at once, and who copies whom."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.reviews import floods
from consumer.reviews.repairs.merge import merge
from storage.errors import StoreUnavailable
from tests.unit.console.desks import Office, Page, decide, office, page
from tests.unit.console.newsroom import BEGAN_MS, article
from tests.unit.console.serving import Answer
from tests.unit.reviews.made import add_person, write


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Office]:
    """A console in which ten flags at most are decided at once."""
    with office(tmp_path, page_rows=5, reviewed_at_once_max=10) as opened:
        yield opened


def told(desk: Office, name: str, copies: int, *, minute: int = 250, source: str = "post") -> int:
    """A story with so many copies, one a minute; its number."""
    original = article(name, f"The {name}", "Text.", source="wire")
    flags = [
        desk.room.flag(article(f"{name}-{n}", f"{name} {n}", "Text.", source=source), original, 0.9, minute=minute + n)
        for n in range(copies)
    ]
    return flags[0].story_id


def sections(opened: Page) -> dict[str, list[str]]:
    """The titles of each list of stories."""
    found = {}
    for section in opened.all("main section"):
        heading = section.css_first("h2")
        if heading is not None:
            found[heading.text()] = [" ".join(node.text().split()) for node in section.css("h3, .floods li > a")]
    return found


def test_the_largest_and_those_that_spread(desk: Office) -> None:
    """Each list has its own order: copies within the span, and copies at all."""
    told(desk, "old", 6, minute=0)
    told(desk, "new", 3)
    opened = page(desk.ann, "/stories?within=1h")
    assert sections(opened)["Spreading fastest now"] == ["The new"]
    assert sections(opened)["Largest"] == ["The old", "The new"]
    assert opened.texts("nav.tabs a") == ["1 hour", "1 day", "1 week"]
    assert opened.texts("nav.tabs [aria-current]") == ["1 hour"]
    assert "3 copies 3 within 1 hour 3 undecided wire · last 24 Nov 2025, 15:12:00 UTC" in opened.answer.shown
    assert desk.articles.asked[-1] == (2, False)
    assert sections(page(desk.ann, "/stories"))["Spreading fastest now"] == ["The old", "The new"]


def test_a_flood_is_one_line(desk: Office) -> None:
    """However many copies it has."""
    story_id = told(desk, "flood", 8)
    desk.room.database.write(lambda c: floods.note_floods(c, [story_id], BEGAN_MS, 600, 5))
    (line,) = page(desk.ann, "/stories").texts(".floods li")
    assert line.startswith("The flood 8 copies from 24 Nov 2025, 15:10:00 UTC to 24 Nov 2025, 15:17:00 UTC")
    desk.served.clock.pass_s(7_200)
    assert page(desk.ann, "/stories?within=1h").texts(".floods li") == []


def test_no_stories_yet(desk: Office) -> None:
    """The pages say so."""
    assert "No stories yet." in page(desk.ann, "/stories").answer.shown
    assert "No source copied another within 1 day." in page(desk.ann, "/sources").answer.shown
    told(desk, "old", 1, minute=0)
    assert "No story got a copy within 1 hour." in page(desk.ann, "/stories?within=1h").answer.shown


@pytest.mark.parametrize("path", ["/stories", "/sources"])
def test_a_span_that_is_none_is_said(desk: Office, path: str) -> None:
    """With those that there are."""
    answer = desk.ann.get(f"{path}?within=1y")
    assert answer.status == 400
    assert "Possible values: 1h, 24h, 7d." in answer.shown


def test_an_original_and_its_copies_over_time(desk: Office) -> None:
    """Copies come page by page in order of arrival, each with its figures, and the picture says what it shows."""
    story_id = told(desk, "story", 7)
    opened = page(desk.ann, f"/stories/{story_id}")
    assert opened.texts("h1") == ["The story"]
    assert opened.texts("ol.queue h3") == [f"story {n}" for n in range(5)]
    assert opened.flags() == [1, 2, 3, 4, 5]
    later = page(desk.ann, opened.link("Later copies"))
    assert later.flags() == [6, 7]
    assert page(desk.ann, later.link("Earlier copies")).flags() == [1, 2, 3, 4, 5]
    assert len(opened.all("svg rect")) == 7
    label = opened.all("svg")[0].attributes["aria-label"] or ""
    assert label.startswith("Copies over time. The peak begins at 24 Nov 2025, 15:")
    assert opened.texts("svg text") == ["1 copy", "15:10", "15:12", "15:14", "15:16"]
    assert opened.texts("figcaption") == [
        "from 24 Nov 2025, 15:10:00 UTC to 24 Nov 2025, 15:16:00 UTC · each bar is 10 seconds; times are in UTC"
    ]
    assert "7 copies" in opened.answer.shown
    assert opened.hrefs("ol.queue [data-item]")[0] == f"/flags/1?order=oldest&story_id={story_id}"
    assert desk.ann.get(f"/stories/{story_id}?after=nonsense").status == 400


def test_a_story_of_one_second_has_no_chart(desk: Office) -> None:
    """There is nothing to compare: a sentence says when."""
    one, same = told(desk, "one", 1), told(desk, "same", 1, minute=20)
    opened = page(desk.ann, f"/stories/{one}")
    assert opened.all("svg") == []
    assert "The copy arrived 24 Nov 2025, 15:10:00 UTC" in opened.answer.shown
    desk.room.flag(article("same-more", "x", "y"), article("same", "The same", "Text."), minute=20)
    assert "All arrived within the same second, 24 Nov 2025, 11:20:00 UTC" in desk.ann.get(f"/stories/{same}").shown


def test_bars_are_proportional_to_counts(desk: Office) -> None:
    """A story with half as many copies has a bar half as long; one copy is still to be seen."""
    for name, copies in (("large", 30), ("half", 15), ("one", 1)):
        told(desk, name, copies, minute=0)
    bars = [node.attributes["class"] for node in page(desk.ann, "/stories").all("#fastest ~ ol .bar")]
    assert bars == ["bar bar-20", "bar bar-10", "bar bar-1"]


def test_a_story_is_shown_without_the_store_and_without_its_original(desk: Office) -> None:
    """By its ids."""
    story_id = told(desk, "story", 1)
    desk.articles.error = StoreUnavailable("no route")
    opened = page(desk.ann, f"/stories/{story_id}")
    assert opened.texts("h1") == ["story"]
    assert "The store does not answer" in opened.answer.shown
    assert "The store does not answer" in page(desk.ann, "/stories").answer.shown
    desk.articles.error = None
    desk.articles.views.clear()
    assert "The store does not have the original:" in page(desk.ann, f"/stories/{story_id}").answer.shown


def confirmed(desk: Office, story_id: int, decision: str, note: str = "") -> Answer:
    """Open the page that asks, and say yes."""
    path = f"/stories/{story_id}/decide"
    opened = page(desk.ann, f"{path}?decision={decision}")
    return desk.ann.post(path, {**opened.form(path), "note": note})


@pytest.mark.parametrize(("decision", "copies"), [("right", 3), ("wrong", 0)])
def test_all_open_flags_of_a_story_at_once(desk: Office, decision: str, copies: int) -> None:
    """After a page that says how many and what it means; others keep what was decided about them."""
    story_id = told(desk, "story", 4)
    decide(desk.ann, 1, "wrong")
    asking = page(desk.ann, f"/stories/{story_id}/decide?decision={decision}")
    assert f"3 flags are {decision}" in asking.texts("button")
    assert ("3 articles count as unique" in asking.answer.shown) == (decision == "wrong")
    desk.served.clock.pass_s(1)
    answer = confirmed(desk, story_id, decision, "One story.")
    shown = page(desk.ann, answer.header("location"))
    assert f"3 flags decided: {decision}." in shown.answer.shown
    assert shown.texts(".decided button") == ["Undo"]
    assert [desk.room.state(f"story-{n}") for n in range(4)] == ["wrong", *[decision] * 3]
    assert desk.room.row("story-1").copies == copies
    assert desk.audited()[1:] == [("Ann", f"flag.{decision}", f"story-{n}") for n in (1, 2, 3)]


def test_many_are_undone_together(desk: Office) -> None:
    """Only those of that decision, only in time, and only by whoever decided."""
    story_id = told(desk, "story", 4)
    decide(desk.ann, 1, "right")
    desk.served.clock.pass_s(1)
    location = confirmed(desk, story_id, "wrong").header("location")
    form = page(desk.ann, location).form(f"/stories/{story_id}/undo")
    bob = desk.colleague()
    assert bob.send(f"/stories/{story_id}/undo", at_ms=form["at_ms"]).status == 409
    answer = desk.ann.post(f"/stories/{story_id}/undo", form)
    assert "Undone: they are open again." in page(desk.ann, answer.header("location")).answer.shown
    assert [desk.room.state(f"story-{n}") for n in range(4)] == ["right", "open", "open", "open"]
    assert desk.ann.post(f"/stories/{story_id}/undo", form).status == 409
    desk.served.clock.pass_s(1)
    form = page(desk.ann, confirmed(desk, story_id, "wrong").header("location")).form(f"/stories/{story_id}/undo")
    desk.served.clock.pass_s(11)
    assert desk.ann.post(f"/stories/{story_id}/undo", form).status == 409
    assert desk.room.state("story-3") == "wrong"


def test_no_more_than_so_many_at_once(desk: Office) -> None:
    """The page says that there may be more, and the rest is left open. Skipped flags do not count."""
    few = told(desk, "few", 3)
    decide(desk.ann, 1, "skip")
    assert "decided at a time" not in page(desk.ann, f"/stories/{few}/decide?decision=right").answer.shown
    story_id = told(desk, "story", 13)
    asking = page(desk.ann, f"/stories/{story_id}/decide?decision=right")
    assert "at most 10 are decided at a time" in asking.answer.shown
    confirmed(desk, story_id, "right")
    assert [desk.room.state(f"story-{n}") for n in range(13)] == ["right"] * 10 + ["open"] * 3


def test_flags_that_come_in_meanwhile_are_not_decided(desk: Office) -> None:
    """Nobody has been asked about them."""
    story_id = told(desk, "story", 2)
    path = f"/stories/{story_id}/decide"
    form = page(desk.ann, f"{path}?decision=wrong").form(path)
    desk.room.flag(article("late", "Late", "x"), article("story", "The story", "Text."), 0.9, minute=1)
    desk.ann.post(path, {**form, "note": ""})
    assert desk.room.state("story-1") == "wrong"
    assert desk.room.state("late") == "open"


def test_others_may_have_decided_meanwhile(desk: Office) -> None:
    """Then nothing is decided twice; where nothing is left, the page says so."""
    story_id = told(desk, "story", 2)
    path = f"/stories/{story_id}/decide"
    form = page(desk.ann, f"{path}?decision=wrong").form(path)
    bob = desk.colleague()
    decide(bob, 1, "right")
    decide(bob, 2, "right")
    late = desk.ann.post(path, {**form, "note": ""})
    assert late.status == 409
    assert "Nothing was decided" in late.shown
    assert "This story has no open flags." in page(desk.ann, f"{path}?decision=wrong").answer.shown


def decided_late(desk: Office, shown: int, story_id: int, into: int) -> Answer:
    """What comes back when the page of a story is shown, two stories are merged, and then the form is sent."""
    path = f"/stories/{shown}/decide"
    form = page(desk.ann, f"{path}?decision=wrong").form(path)
    write(desk.room.database, merge, story_id, into, add_person(desk.room.database, "Wei"), BEGAN_MS)
    return desk.ann.post(path, {**form, "note": ""})


def test_a_story_that_is_merged_meanwhile_is_not_decided(desk: Office) -> None:
    """Nobody was shown the flags of the other one, which came before."""
    large, small = told(desk, "large", 3), told(desk, "small", 2)
    late = decided_late(desk, small, small, large)
    assert late.status == 409
    assert "Nothing was decided" in late.shown
    assert {desk.room.state(name) for name in ("large-0", "small-0")} == {"open"}


def test_flags_of_a_story_that_is_merged_into_it_meanwhile_are_not_decided(desk: Office) -> None:
    """Nobody was shown these, although they are older than the page."""
    small, large = told(desk, "small", 2), told(desk, "large", 3)
    late = decided_late(desk, large, small, large)
    assert late.status == 409
    assert "Nothing was decided" in late.shown
    assert {desk.room.state(name) for name in ("large-0", "small-0")} == {"open"}
    path = f"/stories/{large}/decide"
    again = page(desk.ann, f"{path}?decision=wrong").form(path)
    assert desk.ann.post(path, {**again, "note": ""}).status == 303
    assert {desk.room.state(name) for name in ("large-0", "small-0")} == {"wrong"}


@pytest.mark.parametrize("decision", ["skip", "all", ""])
def test_many_are_right_or_wrong(desk: Office, decision: str) -> None:
    """There is no skipping in bulk."""
    story_id = told(desk, "story", 1)
    assert desk.ann.get(f"/stories/{story_id}/decide?decision={decision}").status == 400
    answer = desk.ann.send(f"/stories/{story_id}/decide", decision=decision, up_to="9", count="1")
    assert answer.status == 400
    assert desk.room.state("story-0") == "open"


def test_who_copies_whom(desk: Office) -> None:
    """As a table with one order of sources, and as a list, the most first, whose links lead to the flags."""
    told(desk, "a", 3, source="post")
    told(desk, "b", 1, source="wire")
    opened = page(desk.ann, "/sources")
    assert opened.texts("thead th") == ["wire"]
    assert opened.texts("tbody tr") == ["wire 1", "post 3"]
    assert opened.texts("ol.queue li") == ["post copies wire 3 Mute …", "wire copies itself 1 Mute …"]
    assert opened.hrefs("tbody a")[1] == "/?state=any&source=post&original_source=wire"
    assert len(page(desk.ann, opened.hrefs("tbody a")[1]).flags()) == 3
