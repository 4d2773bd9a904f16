"""The pages of repeats of ended articles and of bank matches: what they say, and what a decision does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.console.kind_words import WORDS
from consumer.reviews.flag_row import STATES
from consumer.reviews.kinds.rules import KINDS
from consumer.reviews.sending import backlog
from tests.unit.console.banks import bank, bank_file, item
from tests.unit.console.desks import Office, Page, decide, office, page
from tests.unit.console.events_made import denied
from tests.unit.console.newsroom import BEGAN_MS, article

PRIZE = "You have won a prize. Send the fee by Friday."
ITEMS = (
    bank("scams"),
    item("scams", "prize", PRIZE, title="The <b>prize</b>", note="Reported by <i>readers</i>."),
    item("scams", "offer", "An offer that ends today at noon.", enabled=False),
)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Office]:
    """A console that knows the banks."""
    with office(tmp_path, banks=bank_file(tmp_path / "banks.jsonl", *ITEMS)) as opened:
        # Pages show the banks as they were last read.
        opened.ann.get("/banks")
        yield opened


def test_every_kind_has_its_words() -> None:
    """For each state, and in the order of the rules."""
    assert tuple(WORDS) == KINDS
    assert all(tuple(words.states) == STATES for words in WORDS.values())


def test_a_repeat_of_a_retracted_article_asks_whether_it_is_the_same(desk: Office) -> None:
    """It says when that one ended; nothing is released, and the next one is of the same filter."""
    gone = article("gone", "The prize", "Win a ferry.")
    first = desk.room.repeat_of_ended(article("again", "A prize", "Win a ferry now."), gone, 0.91)
    second = desk.room.repeat_of_ended(article("more", "A prize again", "Win a ferry, win."), gone, 0.95)
    queue = page(desk.ann, "/?kind=ended_before")
    assert queue.flags() == [first.flag_id, second.flag_id]
    assert "repeats this retracted or replaced article: The prize" in queue.texts("ol.queue li")[0]
    assert queue.texts("ol.queue .tag") == ["repeats a retracted article"] * 2
    opened = page(desk.ann, f"/flags/{first.flag_id}?kind=ended_before")
    assert opened.texts(".side .role")[1] == "repeats this article, which had been retracted or replaced"
    assert opened.texts(".decide button")[:3] == ["Same article", "Different articles", "Skip"]
    assert opened.texts(".reasons li") == [
        "That article was retracted or replaced 24 Nov 2025, 11:00:00 UTC; about 91 % of the text is in both."
    ]
    assert "it says whether somebody posted the same text again" in opened.answer.shown
    assert "Never flag such pairs again" not in opened.answer.shown
    said = decide(desk.ann, first.flag_id, "wrong", "?kind=ended_before")
    assert said.header("location").startswith(f"/flags/{second.flag_id}?")
    told = desk.ann.get(said.header("location")).shown
    assert "again · Decided: different articles. This can be undone until" in told
    assert "counts as unique. This can be undone" not in told
    assert desk.room.state("again") == "wrong"
    assert "different articles" in page(desk.ann, "/?state=wrong").texts("ol.queue .tag")
    with desk.served.database.read_connection() as connection:
        assert backlog(connection, BEGAN_MS * 2).due == 0
    assert desk.audited() == [("Ann", "flag.wrong", "again")]


def test_a_bank_match_shows_the_item_beside_the_article(desk: Office) -> None:
    """Title, note and text of the most similar one, what differs, and where to change it; others are a click away."""
    text = "You have won a prize. Send the fee by Monday."
    flag = desk.room.bank_match(article("spam", "Won", text), denied("offer", 0.75), denied("prize", 0.9))
    row = page(desk.ann, "/")
    assert "matches bank scams, item The <b>prize</b> and 1 more item" in row.texts("ol.queue li")[0]
    assert row.texts("ol.queue .tag") == ["bank match"]
    opened = page(desk.ann, f"/flags/{flag.flag_id}")
    assert opened.texts(".side h2") == ["Won", "The <b>prize</b>"]
    assert opened.texts(".side ins, .side del") == ["Monday", "Friday"]
    assert "Reported by <i>readers</i>." in opened.texts("#item .about")
    assert opened.link("Change or disable the item") == "/banks/scams/items/prize"
    assert opened.texts(".reasons li") == [
        "About 90 % of the text is in both the article and the item prize of the bank scams.",
        "About 75 % of the text is in both the article and the item offer of the bank scams.",
    ]
    assert opened.texts(".decide button")[:3] == ["Right", "Wrong", "Skip"]
    assert "raise its similarity or disable it" in opened.answer.shown
    assert "Add the text to a bank" not in opened.answer.shown
    other = page(desk.ann, f"/flags/{flag.flag_id}{opened.link('scams/offer').partition('#')[0]}")
    assert other.texts("#item .text") == ["An offer that ends today at noon."]
    assert "disabled" in other.texts("#item .tag")
    whole = desk.ann.get(f"/flags/{flag.flag_id}/text/original?item=scams/prize")
    assert whole.text == PRIZE


def test_wrong_releases_nothing_and_leads_to_the_item(desk: Office) -> None:
    """Where its similarity is raised, or it is disabled; the decision can be undone."""
    flag = desk.room.bank_match(article("spam", "Won", PRIZE), denied("prize"))
    said = desk.ann.get(decide(desk.ann, flag.flag_id, "wrong").header("location"))
    assert "Decided: wrong." in said.shown
    assert "This can be undone until" in said.shown
    assert Page(said).link("View the item") == f"/flags/{flag.flag_id}#item"
    with desk.served.database.read_connection() as connection:
        assert backlog(connection, BEGAN_MS * 2).due == 0
    history = page(desk.ann, f"/flags/{flag.flag_id}").texts(".history li")
    assert len(history) == 1
    assert "release" not in history[0]


def test_an_item_that_is_no_longer_there_keeps_nothing_from_being_decided(desk: Office, tmp_path: Path) -> None:
    """The page says so; a console without banks says what to set."""
    flag = desk.room.bank_match(article("spam", "Won", "Text."), denied("gone"))
    assert "matches bank scams, item gone" in page(desk.ann, "/").texts("ol.queue li")[0]
    assert page(desk.ann, f"/flags/{flag.flag_id}").texts("#item .none") == ["The banks no longer have this item."]
    assert desk.ann.get(f"/flags/{flag.flag_id}/text/original").status == 404
    assert decide(desk.ann, flag.flag_id, "right").status == 303
    (tmp_path / "other").mkdir()
    with office(tmp_path / "other") as without:
        flag = without.room.bank_match(article("spam", "Won", "Text."), denied("prize"))
        opened = page(without.ann, f"/flags/{flag.flag_id}")
        assert opened.texts("#item .none") == [
            "This console does not read the banks. Set banks.url as for the consumers."
        ]


def test_both_entries_of_an_article_are_found_by_its_id(desk: Office) -> None:
    """In a search of the queue."""
    gone = article("gone", "The prize", PRIZE)
    first = desk.room.repeat_of_ended(article("both", "Won", PRIZE), gone)
    second = desk.room.bank_match(article("both", "Won", PRIZE), denied("prize"))
    assert set(page(desk.ann, "/?q=both").flags()) == {first.flag_id, second.flag_id}


def test_in_chinese_too(tmp_path: Path) -> None:
    """Rows and pages of both kinds."""
    with office(tmp_path, language="zh", banks=bank_file(tmp_path / "banks.jsonl", *ITEMS)) as desk:
        desk.ann.get("/banks")
        gone = article("gone", "奖", "您中奖了。")
        again = desk.room.repeat_of_ended(article("again", "中奖", "您中奖了，请付费。"), gone)
        match = desk.room.bank_match(article("spam", "中奖", PRIZE), denied("prize"))
        rows = page(desk.ann, "/").texts("ol.queue li")
        assert "与之重复（该文已被撤回或替换）： 奖" in rows[1]
        assert "匹配 文本库 scams，条目 The <b>prize</b>" in rows[0]
        assert page(desk.ann, f"/flags/{again.flag_id}").texts(".decide button")[:2] == ["同一篇文章", "不同的文章"]
        assert "更改或停用条目" in page(desk.ann, f"/flags/{match.flag_id}").answer.shown
