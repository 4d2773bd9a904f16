"""What an item would have matched: the stored articles of a page, and the flags that an admin releases."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from consumer.banks.bank import Banks
from consumer.console import stored_matches
from consumer.console.faults import PageError
from consumer.console.stored_matches import LOOK_UP_S, MatchSearch
from consumer.model.errors import StoreMismatch
from consumer.store_tools.text_query import QueriedStore
from storage.errors import StoreUnavailable
from tests.stored_texts import StoreOfTexts
from tests.unit.banks.test_known_texts import edited, written
from tests.unit.console.archives import Archive
from tests.unit.console.banks import bank, bank_file, item
from tests.unit.console.desks import Office, office, page
from tests.unit.console.newsroom import BEGAN_MS, article
from tests.unit.console.serving import Browser
from tests.unit.console.test_foreign_text import HOSTILE, check_text

NOTICE: Final = written(1, 100)
OTHER: Final = written(2, 100)
OF_NOTICE: Final = "/banks/notices/items/bridge"
OF_OFFER: Final = "/banks/spam/items/offer"
RELEASE: Final = f"{OF_NOTICE}/release"
COPIES: Final = {"copy 1": NOTICE, "copy 2": edited(NOTICE, 1)}
CHANGED: Final = edited(NOTICE, 6)
"""Near enough to be flagged, but too far from the notice to be allowed."""


@dataclass(frozen=True)
class Desk:
    """A console over an archive, with its banks."""

    office: Office
    archive: Archive
    path: Path

    def admin(self) -> Browser:
        """The browser of an admin."""
        return self.office.served.signed_in("Wei", "admin")

    def flag(self, *copies: str) -> None:
        """Take in the flags of copies of the notice."""
        self.archive.flag(self.office.room, NOTICE, "notice", *copies)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A console whose store has a kept notice with three flagged copies, a longer article, and others."""
    path = tmp_path / "banks.jsonl"
    entries = (bank("spam"), bank("notices", "allow"), item("spam", "offer", NOTICE), item("notices", "bridge", NOTICE))
    bank_file(path, *entries)
    made = StoreOfTexts()
    longer = f"{written(3, 120)} {NOTICE} {written(4, 120)}"
    made.judge({"notice": NOTICE, **COPIES, "copy 3": CHANGED, "longer": longer, "other": OTHER}, BEGAN_MS)
    archive = Archive(made)
    with office(tmp_path, banks=bank_file(path), comparable=archive) as opened:
        made_desk = Desk(opened, archive, path)
        opened.ann.get("/banks")
        yield made_desk


def test_kept_articles_are_listed(desk: Desk) -> None:
    """The most similar first, each with how it repeats the item and the story of its copies."""
    desk.flag(*COPIES)
    opened = page(desk.office.ann, f"{OF_OFFER}/matches")
    assert opened.texts("ol.queue .tag") == ["the same text", "contains the item"]
    assert opened.texts("ol.queue .id") == ["notice", "longer"]
    assert opened.link("story with 2 copies") == f"/stories/{desk.office.room.row('copy 1').story_id}"
    assert "within the window of 1 week: 2." in opened.answer.shown
    assert "dupwatch bank scan --bank spam --item offer --send" in opened.answer.shown
    assert page(desk.office.ann, OF_OFFER).link("Search the store …") == f"{OF_OFFER}/matches"


def test_what_is_cut_short_is_said(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """In words."""
    assert "There are more" not in page(desk.office.ann, f"{OF_OFFER}/matches").answer.shown
    monkeypatch.setattr(stored_matches, "MATCHES_MAX", 1)
    opened = page(desk.office.ann, f"{OF_OFFER}/matches")
    assert opened.texts("ol.queue .id") == ["notice"]
    assert "There are more: a limit cut the search short." in opened.answer.shown


def test_an_item_that_does_not_count_finds_nothing(desk: Desk) -> None:
    """The page says why, and nothing is released because of it."""
    desk.flag(*COPIES)
    wei = desk.admin()
    wei.send(f"{OF_NOTICE}/disable")
    wei.get("/banks")
    opened = page(wei, f"{OF_NOTICE}/matches")
    assert "so nothing is compared with it" in opened.answer.shown
    assert opened.all("ol.queue") == []
    assert "Compared: 0 open flags." in page(wei, RELEASE).answer.shown


def test_flags_are_released_after_a_page_that_shows_them(desk: Desk) -> None:
    """Those that repeat the item, through a decision that names it and can be undone; others stay open."""
    desk.flag(*COPIES, "copy 3")
    room, wei = desk.office.room, desk.admin()
    listed = page(wei, f"{OF_NOTICE}/matches")
    assert listed.texts("ol.queue .id") == ["notice"]
    assert "3 flags are open in the stories of these articles." in listed.answer.shown
    assert listed.link("See which of them repeat the item …") == RELEASE
    asked = page(wei, RELEASE)
    assert asked.texts("ol.queue h2") == ["Title of copy 1", "Title of copy 2"]
    assert "Compared: 3 open flags." in asked.answer.shown
    flags = [str(room.row(name).flag_id) for name in COPIES]
    form = [("token", asked.form(RELEASE)["token"]), ("seen", ""), *(("flag", each) for each in flags)]
    answer = wei.post(RELEASE, form)
    assert (answer.status, answer.header("location").partition("=")[0]) == (303, f"{OF_NOTICE}/matches?decided_at")
    assert [room.state(name) for name in (*COPIES, "copy 3")] == ["wrong", "wrong", "open"]
    assert desk.office.audited() == [("Wei", "flag.wrong", name) for name in COPIES]
    assert "It repeats bridge of the bank notices, which allows it." in wei.get(f"/flags/{flags[0]}").shown
    done = page(wei, answer.header("location"))
    assert "2 flags decided: wrong." in done.answer.shown
    assert "1 flag is open" in done.answer.shown
    wei.post(f"{OF_NOTICE}/undo", done.form(f"{OF_NOTICE}/undo"))
    assert [room.state(name) for name in COPIES] == ["open", "open"]
    assert desk.office.audited()[2:] == [("Wei", "flag.undo", name) for name in COPIES]


def test_flags_that_others_decided_are_left(desk: Desk) -> None:
    """And one that nobody can release any more says so."""
    desk.flag(*COPIES)
    room, wei = desk.office.room, desk.admin()
    form = [*page(wei, RELEASE).form(RELEASE).items()]
    form = [pair for pair in form if pair[0] != "flag"]
    flags = [room.row(name).flag_id for name in COPIES]
    ann = desk.office.ann
    ann.post(f"/flags/{flags[0]}/decide", {"token": ann.get("/me").token, "decision": "right"})
    answer = wei.post(RELEASE, [*form, *(("flag", str(flag)) for flag in flags)])
    assert answer.header("location").endswith("&refused=1")
    assert [room.state(name) for name in COPIES] == ["right", "wrong"]
    near_miss = room.near_miss(article("near"), article("notice"), 0.7)
    again = wei.post(RELEASE, [*form, *(("flag", str(flag)) for flag in (flags[0], near_miss.flag_id, 999_999))])
    assert room.state("near") == "open"
    assert (again.status, "Nothing was decided" in again.shown) == (409, True)


def test_nothing_is_released_because_of_another_item_than_the_page_has_shown(desk: Desk) -> None:
    """Nor because of a bank that denies, nor more at once than was shown."""
    desk.flag(*COPIES)
    wei, flag = desk.admin(), str(desk.office.room.row("copy 1").flag_id)
    form = {"token": page(wei, RELEASE).form(RELEASE)["token"], "seen": "", "flag": flag}
    changed = item("notices", "bridge", OTHER, at="2025-11-24T15:00:00.000Z")
    bank_file(desk.path, changed)
    wei.get("/banks")
    assert "Somebody else has changed this" in wei.post(RELEASE, form).shown
    denied = wei.post(f"{OF_OFFER}/release", form)
    assert (denied.status, "Only an allow bank can release flags" in denied.shown) == (409, True)
    assert wei.get(f"{OF_OFFER}/release").status == 409
    many = [("token", form["token"]), ("seen", changed.at or ""), *(("flag", str(number)) for number in range(501))]
    assert "At most 500 flags can be decided together" in wei.post(RELEASE, many).shown
    assert desk.office.room.state("copy 1") == "open"


def test_more_flags_than_are_compared_are_named(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest are compared, and the page says that there are more."""
    desk.flag(*COPIES, "copy 3")
    monkeypatch.setattr("consumer.console.pages.item_matches.COMPARED_MAX", 1)
    opened = page(desk.admin(), RELEASE)
    assert opened.texts("ol.queue h2") == ["Title of copy 1"]
    assert "There may be more: at most 1 flags are compared at a time." in opened.answer.shown


def test_articles_that_the_store_lost_are_not_released(desk: Desk) -> None:
    """Nor those that were retracted: nothing tells that they repeat the item."""
    desk.flag(*COPIES)
    desk.archive.made.retract("copy 1", BEGAN_MS)
    desk.office.room.flag(
        article("never stored"), replace(article("notice"), version=desk.office.room.row("copy 1").original_version)
    )
    opened = page(desk.admin(), RELEASE)
    assert opened.texts("ol.queue h2") == ["Title of copy 2"]


def test_a_store_that_is_away_is_said(desk: Desk) -> None:
    """The pages of banks do without it."""
    desk.archive.error = StoreUnavailable("no region server")
    answer = desk.office.ann.get(f"{OF_OFFER}/matches")
    assert (answer.status, "The store does not answer." in answer.shown) == (503, True)
    desk.archive.error = StoreMismatch("the store is empty: nothing was ever judged into it")
    answer = desk.office.ann.get(f"{OF_OFFER}/matches")
    assert (answer.status, "The store cannot be searched" in answer.shown) == (409, True)
    assert page(desk.office.ann, OF_OFFER).texts("h1") == ["(no title) offer"]


def test_a_slow_store_is_not_waited_for(desk: Desk) -> None:
    """A look-up ends after its time, and the next one begins at once."""
    ticks = iter([0.0, LOOK_UP_S + 1, 0.0, 0.0, *([0.0] * 100)])
    search = MatchSearch(desk.archive, desk.office.served.clock, lambda: next(ticks))
    banks = Banks.of([bank("spam"), item("spam", "offer", NOTICE)])
    with pytest.raises(PageError, match="The search was stopped after"):
        search.find_kept(banks)
    assert [match.stored.record.id for match in search.find_kept(banks).matches.found] == ["notice", "longer"]


def test_one_request_at_a_time_searches_the_store(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others wait for a moment, and are told."""
    begun, ends = threading.Event(), threading.Event()

    def waiting() -> QueriedStore:
        begun.set()
        assert ends.wait(60)
        return desk.archive()

    search = MatchSearch(waiting, desk.office.served.clock)
    banks = Banks.of([bank("spam"), item("spam", "offer", NOTICE)])
    thread = threading.Thread(target=search.find_kept, args=(banks,))
    thread.start()
    try:
        assert begun.wait(60)
        monkeypatch.setattr(stored_matches, "WAIT_S", 0.0)
        with pytest.raises(PageError, match="still being searched for somebody else"):
            search.find_kept(banks)
    finally:
        ends.set()
        thread.join(60)


def test_a_store_without_sketches_cannot_be_searched(desk: Desk) -> None:
    """The page says so."""
    desk.archive.made.settings = replace(desk.archive.made.settings, verify=False, lane1=False)
    answer = desk.office.ann.get(f"{OF_OFFER}/matches")
    assert (answer.status, "The store has no sketches" in answer.shown) == (409, True)


def test_hostile_titles_are_shown_as_text(desk: Desk) -> None:
    """Of items, and of articles of the store."""
    for number, text in enumerate(HOSTILE.values()):
        bank_file(desk.path, item("spam", "offer", NOTICE, title=text, at=f"2025-11-24T15:00:{number:02}.000Z"))
        desk.office.ann.get("/banks")
        check_text(desk.office.ann.get(f"{OF_OFFER}/matches").text, text)
