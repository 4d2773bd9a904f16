"""Ranks of sources on their page, and the member that a story prefers on every page that names the story."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.console.intake.rank_updates import RankUpdates
from consumer.console.pages.sources import preferred_line, rank_forms
from consumer.reviews import audit
from consumer.reviews.audit import AuditFilters
from consumer.reviews.database import Database
from consumer.reviews.ranking import rank_changes
from consumer.reviews.ranking.ranks import listed_ranks, rank_progress
from tests.stored_texts import StoreOfTexts
from tests.unit.console.archives import Archive
from tests.unit.console.desks import Office, office, page
from tests.unit.console.newsroom import BEGAN_MS, article
from tests.unit.console.serving import Browser
from tests.unit.console.test_foreign_text import HOSTILE, check_text
from tests.unit.reviews.made import add, flagged, read

AUTHORITY = {"wire": 2, "xinhua": 10}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Office]:
    """A console with a story of three sources, and the configured rank of one that has no article yet."""
    with office(tmp_path, authority=AUTHORITY) as opened:
        original = article("original", "First report", "Text.", source="wire")
        for minute, source in enumerate(("blog", "post")):
            opened.room.flag(article(source, f"By {source}", "Text.", source=source), original, minute=minute)
        keep_ranks(opened)
        yield opened


@pytest.fixture
def wei(desk: Office) -> Browser:
    """The browser of an admin."""
    return desk.served.signed_in("Wei", "admin")


def keep_ranks(desk: Office) -> None:
    """Do what the thread of a console that starts does, until nothing is left."""
    updates = RankUpdates(desk.served.database, AUTHORITY, desk.served.clock)
    while updates.work():
        pass


def preferred(browser: Browser, path: str = "/stories/1") -> str:
    """What a page says of the preferred member."""
    (line,) = page(browser, path).texts(".preferred")
    return line


def ranked(browser: Browser) -> list[str]:
    """The list of ranks, without the texts of buttons."""
    found = []
    for item in page(browser, "/sources").all("#ranked li"):
        for form in item.css("form"):
            form.decompose()
        found.append(" ".join(item.text().split()))
    return found


def noted(desk: Office) -> list[tuple[str, str, str]]:
    """Who did what to which rank, the first entry first."""
    with desk.served.database.read_connection() as connection:
        entries = audit.search(connection, AuditFilters(action="source.rank"), None, 99).rows
    return [(entry.person, entry.subject, entry.why) for entry in reversed(entries)]


def test_an_admin_sets_and_removes_ranks(desk: Office, wei: Browser) -> None:
    """Of a source in the list, and of one that is named by hand; the page says where each comes from."""
    assert ranked(desk.ann) == ["10 xinhua from the configuration", "2 wire from the configuration"]
    assert preferred(desk.ann) == "Preferred: the original · wire · also in 2 other sources"
    answer = wei.send("/sources/ranks", source="post", rank="20")
    assert "Rank set." in page(wei, answer.header("location")).answer.shown
    assert preferred(desk.ann) == "Preferred: By post · post · also in 2 other sources"
    wei.send("/sources/ranks", source="nobody so far", rank="-5")
    (xinhua,) = [each for each in read(desk.served.database, listed_ranks) if each.source == "xinhua"]
    wei.send(f"/sources/{xinhua.source_id}/rank", action="set", rank="+30")
    at = "24 Nov 2025, 16:00:00 UTC (just now)"
    assert ranked(desk.ann) == [
        f"30 xinhua set by Wei, {at} · the configuration says 10",
        f"20 post set by Wei, {at}",
        "2 wire from the configuration",
        f"-5 nobody so far set by Wei, {at}",
    ]
    answer = wei.send(f"/sources/{xinhua.source_id}/rank", action="remove")
    assert "Rank removed." in page(wei, answer.header("location")).answer.shown
    assert ranked(desk.ann)[1] == "10 xinhua from the configuration"
    assert noted(desk) == [
        ("Wei", "post", "20"),
        ("Wei", "nobody so far", "-5"),
        ("Wei", "xinhua", "30"),
        ("Wei", "xinhua", "removed"),
    ]
    assert "set or removed the rank of a source" in wei.get("/audit").text


def test_what_cannot_be_is_said(desk: Office, wei: Browser) -> None:
    """Nothing is changed then, and nothing is in the log."""
    (xinhua, _) = read(desk.served.database, listed_ranks)
    path = f"/sources/{xinhua.source_id}/rank"
    for where, form, status, said in (
        ("/sources/ranks", {"source": " ", "rank": "1"}, 400, "Enter the name of a source"),
        ("/sources/ranks", {"source": "x" * 301, "rank": "1"}, 400, "has 301 characters"),
        ("/sources/ranks", {"source": "x"}, 400, "A rank must be a whole number from -1,000 to 1,000."),
        ("/sources/ranks", {"source": "x", "rank": "1001"}, 400, "A rank must be a whole number"),
        ("/sources/ranks", {"source": "x", "rank": "1.5"}, 400, "A rank must be a whole number"),
        ("/sources/ranks", {"source": "x", "rank": "٣"}, 400, "A rank must be a whole number"),
        (path, {"action": "raise", "rank": "1"}, 400, "A rank can be set or removed."),
        (path, {"action": "remove"}, 409, "This rank comes from the configuration"),
        ("/sources/999/rank", {"action": "set", "rank": "1"}, 404, "There is no such page."),
    ):
        answer = wei.send(where, **form)
        assert (answer.status, said in answer.shown) == (status, True), answer.shown
    assert len(ranked(wei)) == 2
    assert noted(desk) == []


def test_reviewers_see_ranks_and_no_forms(desk: Office) -> None:
    """An admin has one for each rank, and one for a source that is named by hand."""
    assert page(desk.ann, "/sources").all("#ranked form, form[action^='/sources']") == []
    opened = page(desk.served.signed_in("Wei", "admin"), "/sources")
    assert len(opened.all("#ranked form")) == 2
    assert len(opened.all("form[action='/sources/ranks']")) == 1
    assert opened.all("[name=action][value=remove]") == []


def test_every_page_of_a_story_names_its_preferred_member(desk: Office) -> None:
    """With the other sources; a page of the original leads to it, and so do lists."""
    desk.room.flag(
        article("new", "By Xinhua", "Text.", source="xinhua"),
        article("original", "First report", "Text.", source="wire"),
        minute=5,
    )
    said = "Preferred: By Xinhua · xinhua · also in 3 other sources"
    assert preferred(desk.ann) == said
    assert preferred(desk.ann, "/flags/1") == said
    opened = page(desk.ann, "/stories")
    assert opened.texts(".preferred") == ["Preferred: By Xinhua · xinhua"] * 2
    assert "also in 3 other sources" in opened.answer.shown
    assert opened.hrefs(".preferred a") == ["/flags/3"] * 2
    desk.ann.send("/flags/3/decide", decision="wrong")
    assert preferred(desk.ann) == "Preferred: the original · wire · also in 2 other sources"


def test_the_page_of_an_article_names_the_story(tmp_path: Path) -> None:
    """Of an original and of a copy."""
    archive = Archive(StoreOfTexts())
    archive.made.judge(dict.fromkeys(["kept", "copy"], "One text about the harbour council. " * 9), BEGAN_MS)
    with office(tmp_path, comparable=archive) as desk:
        archive.flag(desk.room, "One text about the harbour council. " * 9, "kept", "copy")
        for article_id in ("kept", "copy"):
            opened = page(desk.ann, f"/look-up?id={article_id}")
            assert opened.texts(".preferred")[0].startswith("Preferred: the original")
            assert opened.hrefs(".preferred a") == ["/look-up?id=kept"]
        assert "Its story has 1 copy" in page(desk.ann, "/look-up?id=copy").answer.shown


def test_large_stories_say_at_least(desk: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of their sources only those of so many copies are counted."""
    monkeypatch.setattr(preferred_line.read_preferred, "__defaults__", (1,))
    assert "also in at least 1 other source" in preferred(desk.ann)


def test_the_page_says_that_stories_are_being_updated(
    desk: Office, wei: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the thread has been through all of them, also one of another console."""
    monkeypatch.setattr(rank_changes, "FLAGS_AT_ONCE_MAX", 0)
    wei.send("/sources/ranks", source="blog", rank="20")
    assert "Stories are being updated" in page(desk.ann, "/sources").answer.shown
    assert preferred(desk.ann).startswith("Preferred: the original")
    keep_ranks(desk)
    assert "Stories are being updated" not in page(desk.ann, "/sources").answer.shown
    assert preferred(desk.ann).startswith("Preferred: By blog")


def test_a_long_list_is_cut(desk: Office, wei: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page has the highest ranks, and says how many more there are."""
    monkeypatch.setattr(rank_forms, "RANKS_MAX", 1)
    opened = page(wei, "/sources")
    assert len(opened.all("#ranked li")) == 1
    assert "and 1 more source with a rank" in opened.answer.shown


def test_names_are_shown_as_text(desk: Office, wei: Browser) -> None:
    """Whatever a source is called."""
    text = next(text for text in HOSTILE.values() if text.isprintable() and len(text) <= 80)
    assert wei.send("/sources/ranks", source=text, rank="1").status == 303
    for path in ("/sources", "/audit"):
        check_text(wei.get(path).text, text)


def test_a_start_takes_over_the_configuration_once(database: Database) -> None:
    """Each thread at its own start; another one finds nothing to do."""
    add(database, flagged("b", "a", sources=("xinhua", "wire")))
    first, second = (RankUpdates(database, {"xinhua": 1}, lambda: BEGAN_MS) for _ in range(2))
    assert not first.work()
    assert not second.work()
    assert [(each.source, each.rank) for each in read(database, listed_ranks)] == [("xinhua", 1)]
    assert read(database, rank_progress) is None
    assert not RankUpdates(database, {}, lambda: BEGAN_MS, lambda: False).work()
    assert read(database, rank_progress) is not None, "the outbox is full, and each story may have an event"
    assert not RankUpdates(database, {}, lambda: BEGAN_MS).work()
    assert read(database, listed_ranks) == []
