"""Splitting an article off its story, merging two stories, and undoing either, on the pages of the console."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from consumer.reviews import audit
from consumer.reviews.audit import AuditFilters
from tests.unit.console.desks import Office, Page, decide, office, page
from tests.unit.console.newsroom import article
from tests.unit.console.serving import Answer, Browser


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Office]:
    """A console with two stories: three copies of "The port", of which the first has a copy, and one of "The ferry"."""
    with office(tmp_path) as opened:
        port, ferry = article("port", "The port"), article("ferry", "The ferry", source="post")
        copies = [article(f"port-{n}", f"Port {n}") for n in range(3)]
        for n, copy in enumerate(copies):
            opened.room.flag(copy, port, minute=n)
        opened.room.flag(article("port-0-0", "Port again"), copies[0], cluster="port", minute=5)
        opened.room.flag(article("ferry-0", "Ferry 0"), ferry, minute=9)
        yield opened


def story_path(desk: Office, name: str) -> str:
    """The path of the story that shows a flag."""
    return f"/stories/{desk.room.row(name).story_id}"


def send(browser: Browser, path: str, action: str = "") -> Answer:
    """Open a page, and send its form for an action, that of the page without one."""
    action = action or path
    return browser.post(action, page(browser, path).form(action))


def done(answer: Answer) -> str:
    """Where a form leads that had its effect."""
    assert answer.status == 303, answer.shown
    return answer.header("location")


def repairs(opened: Page) -> list[str]:
    """The repairs that a page lists."""
    return opened.texts(".split-off, .merged")


def audited(desk: Office) -> list[tuple[str, str, str, str]]:
    """Who repaired what, the first entry first."""
    with desk.served.database.read_connection() as connection:
        entries = audit.search(connection, AuditFilters(), None, 100).rows
    told = [(each.person, each.action, each.subject, each.why) for each in reversed(entries)]
    return [each for each in told if each[1].startswith("story.")]


def test_an_article_is_split_off_and_brought_back(desk: Office) -> None:
    """From the page of its story, with its copies; anybody can undo it there."""
    before, flag_id = story_path(desk, "port-0"), desk.room.row("port-0").flag_id
    opened = page(desk.ann, before)
    assert opened.texts("ol.queue a[href$='/split']") == ["Split off …"] * 4
    path = f"/flags/{flag_id}/split"
    assert path in opened.hrefs("ol.queue a")
    asking = page(desk.ann, path)
    assert "It repeats: The port port · wire" in asking.answer.shown
    assert "Its 1 copy moves with it, and so do later ones." in asking.answer.shown
    own = done(send(desk.ann, path))
    assert own != before
    opened = page(desk.ann, own)
    assert opened.texts("h1") == ["Port 0"]
    assert opened.texts("ol.queue h3") == ["Port 0", "Port again"]
    (told,) = repairs(opened)
    assert told.startswith("Split off from the story of The port Ann · ")
    assert opened.hrefs(".split-off a") == [before]
    assert page(desk.ann, before).texts("ol.queue h3") == ["Port 1", "Port 2"]
    assert done(send(desk.colleague(), own, f"/flags/{flag_id}/unsplit")) == before
    opened = page(desk.ann, before)
    assert opened.texts("ol.queue h3") == ["Port 0", "Port 1", "Port 2", "Port again"]
    assert repairs(opened) == []
    # An old link leads to where the article is.
    assert page(desk.ann, own).texts("h1") == ["The port"]
    assert audited(desk) == [("Ann", "story.split", "port-0", ""), ("Bob", "story.split.undo", "port-0", "")]


def test_a_flag_is_split_off_on_its_page(desk: Office) -> None:
    """There it says so, and there it can be undone."""
    flag_id = desk.room.row("port-0-0").flag_id
    flag = f"/flags/{flag_id}"
    opened = page(desk.ann, flag)
    assert opened.link("Split this article off the story …") == f"{flag}/split"
    assert "Its later copies move with it." in page(desk.ann, f"{flag}/split").answer.shown
    send(desk.ann, f"{flag}/split")
    opened = page(desk.ann, flag)
    assert [text.startswith("Split off from the story of port Ann · ") for text in repairs(opened)] == [True]
    assert not opened.all(f"a[href='{flag}/split']")
    assert send(desk.ann, flag, f"{flag}/unsplit").status == 303
    assert repairs(page(desk.ann, flag)) == []


def test_what_cannot_be_split_off_is_said(desk: Office) -> None:
    """Before somebody is asked, and where somebody else was faster."""
    flag_id = desk.room.row("port-0").flag_id
    path = f"/flags/{flag_id}/split"
    fields = page(desk.ann, path).form(path)
    assert desk.ann.post(path, fields).status == 303
    again = desk.colleague().send(path)
    assert again.status == 409
    assert "This article was already split off." in again.shown
    assert desk.ann.get(path).status == 409
    assert desk.ann.get("/flags/999/split").status == 404
    undone = f"/flags/{flag_id}/unsplit"
    assert desk.ann.send(undone).status == 303
    answer = desk.ann.send(undone)
    assert answer.status == 409
    assert "Nothing was changed: the flag or the story no longer exists, or this was already undone." in answer.shown
    root = desk.room.flag(replace(article("port", "The port, again"), version="00" * 16), article("port-1"))
    links = page(desk.ann, story_path(desk, "port-0")).hrefs("a[href$='/split']")
    assert len(links) == 4
    assert f"/flags/{root.flag_id}/split" not in links
    assert "another version of the story's original" in desk.ann.get(f"/flags/{root.flag_id}/split").shown


@pytest.mark.parametrize("named", ["link", "number", "original", "copy", "page of a flag's story"])
def test_two_stories_are_merged(desk: Office, named: str) -> None:
    """However the other one is named, the one with fewer copies becomes part of the other, and links to it go on."""
    small, large = story_path(desk, "ferry-0"), story_path(desk, "port-0")
    number = small.rpartition("/")[2]
    other = {
        "link": f"{desk.served.url}{small}?after=abc",
        "number": number,
        "original": "ferry",
        "copy": "ferry-0",
        "page of a flag's story": f"https://console.example{small}#main",
    }[named]
    path = f"{large}/merge?other={quote(other)}"
    asking = page(desk.ann, path)
    assert asking.hrefs(".confirm p a")[:2] == [small, large]
    assert "The ferry ferry · post · 1 copy" in asking.answer.shown
    assert "becomes part of this story: The port port · wire · 4 copies" in asking.answer.shown
    assert done(send(desk.ann, path, f"{small}/merge")) == large
    for at in (small, large):
        opened = page(desk.ann, at)
        assert opened.texts("h1") == ["The port"]
        assert "5 copies" in opened.answer.shown
        assert opened.texts("ol.queue h3")[-1] == "Ferry 0"
        (told,) = repairs(opened)
        assert told.startswith("Merged into this story: The ferry Ann · ")
    queue = page(desk.ann, f"/?story_id={number}")
    assert len(queue.flags()) == 5
    assert done(send(desk.colleague(), large, f"{small}/unmerge")) == small
    assert page(desk.ann, small).texts("ol.queue h3") == ["Ferry 0"]
    assert repairs(page(desk.ann, large)) == []
    assert audited(desk) == [
        ("Ann", "story.merge", "ferry", "port"),
        ("Bob", "story.merge.undo", "ferry", "port"),
    ]


def test_a_merge_that_is_refused_is_said(desk: Office) -> None:
    """A story with itself, one that is merged already, and what is no story."""
    small, large = story_path(desk, "ferry-0"), story_path(desk, "port-0")
    for other in ("nobody", "", "999", "/stories/999", "9" * 19, "9" * 30, "x" * 2_000, "é" * 400):
        answer = desk.ann.get(f"{large}/merge?other={quote(other)}")
        assert answer.status == 400
        assert "There is no such story." in answer.shown
    assert desk.ann.get(f"{large}/merge?other={'x' * 2_001}").status == 400
    assert desk.ann.get(f"{large}/merge?other=port-2").status == 409
    assert desk.ann.get("/stories/999/merge?other=port").status == 404
    assert desk.ann.send(f"{small}/merge", into="999").status == 409
    assert desk.ann.send(f"{small}/merge", into="one").status == 400
    number = large.rpartition("/")[2]
    assert desk.ann.send(f"{small}/merge", into=number).status == 303
    answer = desk.colleague().send(f"{small}/merge", into=number)
    assert answer.status == 409
    assert "The two are already one story." in answer.shown
    assert desk.ann.send(f"{large}/unmerge").status == 409


def test_a_decision_is_undone_after_its_story_was_merged(desk: Office) -> None:
    """The link is that of the story as it was."""
    small, large = story_path(desk, "ferry-0"), story_path(desk, "port-0")
    asking = page(desk.ann, f"{small}/decide?decision=right")
    decided = done(desk.ann.post(f"{small}/decide", {**asking.form(f"{small}/decide"), "decision": "right"}))
    form = page(desk.ann, decided).form(f"{small}/undo")
    desk.ann.send(f"{small}/merge", into=large.rpartition("/")[2])
    assert desk.ann.post(f"{small}/undo", form).status == 303
    assert desk.room.state("ferry-0") == "open"
    decide(desk.ann, desk.room.row("ferry-0").flag_id, "right")
    assert desk.room.state("ferry-0") == "right"


def test_repairs_are_shown_in_chinese(desk: Office) -> None:
    """All of it."""
    desk.ann.send("/me/language", language="zh")
    large = story_path(desk, "port-0")
    send(desk.ann, f"/flags/{desk.room.row('port-0').flag_id}/split")
    desk.ann.send(f"{story_path(desk, 'ferry-0')}/merge", into=large.rpartition("/")[2])
    assert repairs(page(desk.ann, large))[0].startswith("已并入这个报道：The ferry Ann · ")
    assert repairs(page(desk.ann, story_path(desk, "port-0")))[0].startswith("已移出报道：The port Ann · ")
