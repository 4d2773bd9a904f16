"""Looking up an article: its versions, its verdict in words, its flag and its text; and ids that no article has."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

import msgspec
import pytest

from consumer.banks.known_texts import KnownTexts
from consumer.console.pages.look_up import article_page
from consumer.console.pages.text_differences import PART_CHARS_MAX
from consumer.judge.common_hashes import CommonHashes
from consumer.judge.decision import Duplicate, Neighbour
from consumer.judge.detector import Detector
from consumer.judge.events import duplicate_event
from consumer.model.verdict import decode_verdict
from consumer.reviews.flag_events import add_events
from consumer.store_tools.article_facts import ArticleFacts
from consumer.store_tools.releases import Attribution, read_flagged, release
from storage.errors import StoreUnavailable
from storage.records import StoredVersion
from tests.stored_texts import NOW_MS, SETTINGS, StoreOfTexts
from tests.unit.banks.test_known_texts import edited, written
from tests.unit.console.archives import Archive
from tests.unit.console.banks import bank, bank_file, item
from tests.unit.console.desks import Office, Page, office, page
from tests.unit.console.newsroom import BEGAN_MS, article
from tests.unit.console.test_foreign_text import HOSTILE, check_text

TEXT: Final = written(1, 100)
OTHER: Final = written(2, 100)
STRANGE: Final = (
    *HOSTILE.values(),
    "\u202eid",
    "a b",
    "ü/?&=#%",
    "Ж" * 256,
    "'; DROP TABLE flags; --",
    "\n",
    " spaced ",
)
"""Ids of articles that are in the store."""


@dataclass(frozen=True)
class Desk:
    """A console over an archive."""

    office: Office
    archive: Archive

    def look_up(self, article_id: str, **more: str) -> Page:
        """Open the page of an article."""
        return page(self.office.ann, path_of(article_id, **more))

    def missing(self, article_id: str, **more: str) -> str:
        """What the page of an article says that the store does not have."""
        answer = self.office.ann.get(path_of(article_id, **more))
        assert answer.status == 404, answer.shown
        return answer.shown


def path_of(article_id: str, **more: str) -> str:
    """Where an article is looked up."""
    return f"/look-up?{urlencode({'id': article_id, **more})}"


def filled() -> StoreOfTexts:
    """A store with everything that a verdict can say."""
    made = StoreOfTexts()
    known = KnownTexts(made.engine, SETTINGS, lambda: NOW_MS)
    known.replace([bank("spam"), item("spam", "offer", OTHER)])
    judge = Detector(made.store, SETTINGS, lambda: NOW_MS, common=CommonHashes(), with_bank_matches=known.with_matches)
    made.judge({"first": TEXT, "copy": edited(TEXT, 1), "spam": OTHER}, BEGAN_MS, detector=judge)
    made.judge({"longer": f"{written(3, 300)} {TEXT} {written(4, 300)}"}, BEGAN_MS, detector=judge)
    for second, text in enumerate((written(5, 100), written(6, 100), written(5, 100))):
        made.judge({"returning": text}, BEGAN_MS + second * 1_000, feed="feed.jsonl")
    made.judge({"washed": written(7, 100)}, BEGAN_MS)
    made.retract("washed", BEGAN_MS + 1_000)
    made.judge({"washing": written(7, 100), "freed": TEXT, "empty": ""}, BEGAN_MS + 2_000)
    (freed,) = (each for each in made.store.scan() if isinstance(each, StoredVersion) and each.record.id == "freed")
    flagged = read_flagged(made.store, freed.record.reference)
    release(made.store, flagged, Attribution("Bob", "another\u202e fare"), lambda: NOW_MS)
    made.judge({"long": "x y " * PART_CHARS_MAX}, BEGAN_MS)
    for name in STRANGE:
        made.judge({name: f"{written(8, 80)} {name}"}, BEGAN_MS)
    return made


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A console whose store has some articles, and whose queue has their flags."""
    archive = Archive(filled())
    folder = tmp_path_factory.mktemp("desk")
    banks = bank_file(folder / "banks.jsonl", bank("spam"), item("spam", "offer", OTHER))
    with office(folder, comparable=archive, judging=SETTINGS, banks=banks) as opened:
        scanned = (each for each in archive.made.store.scan() if isinstance(each, StoredVersion) and each.verdict)
        verdicts = [decode_verdict(each.verdict or b"") for each in scanned]
        flags = [verdict for verdict in verdicts if verdict.outcome == "duplicate"]
        opened.served.database.write(lambda c: add_events(c, flags))
        yield Desk(opened, archive)


def test_nothing_is_asked_of_the_store_without_an_id(desk: Desk) -> None:
    """The form says what it is for; a field of spaces asks for nothing."""
    assert "its versions, its verdict" in page(desk.office.ann, "/look-up").answer.shown
    assert desk.office.ann.get("/look-up?id=").status == 200


def test_a_flagged_article(desk: Desk) -> None:
    """Its verdict in words, what it repeats, how near that is, its flag and its text; links lead on."""
    opened = desk.look_up("copy")
    assert opened.texts("#verdict") == ["Duplicate: it repeats an earlier article."]
    (chain,) = opened.texts("#chain li")
    assert chain.startswith("repeats first")
    assert opened.hrefs("#chain a") == ["/look-up?id=first"]
    assert "Judged 14 Nov 2023, 22:13:21 UTC" in opened.answer.shown
    assert "similarity 0.9" in opened.answer.shown
    assert opened.texts("mark")
    assert opened.texts("#text") == [edited(TEXT, 1)]
    flag = desk.office.room.row("copy")
    assert opened.link(f"Flag {flag.flag_id}") == f"/flags/{flag.flag_id}"
    original = desk.look_up("first")
    assert original.link("1 copy of this original") == f"/stories/{flag.story_id}"
    assert original.texts("#verdict") == ["Unique: it repeated no earlier article when it arrived."]
    assert opened.link("Report a missed copy of it …") == "/look-up/report?one=copy"
    assert "Judged 14 Nov 2023, 22:13:21 UTC ( 2 years ago )" in opened.answer.shown


def test_shared_keywords_say_something(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on the page of a flag: no stop words, and no fragments of numbers."""
    monkeypatch.setattr(ArticleFacts, "shared_keywords", property(lambda _: ("the", "ferry", "22", "أن")))
    assert desk.look_up("copy").texts(".shared mark") == ["ferry"]


def test_flags_lead_to_both_articles(desk: Desk) -> None:
    """In the version that was judged."""
    flag = desk.office.room.row("copy")
    opened = page(desk.office.ann, f"/flags/{flag.flag_id}")
    named = [("copy", flag.version), ("first", flag.original_version)]
    assert opened.hrefs(".side .about a") == [path_of(*pair[:1], version=pair[1]) for pair in named]
    for href in opened.hrefs(".side .about a"):
        assert page(desk.office.ann, href).texts("#text")


def test_what_else_a_verdict_says(desk: Desk) -> None:
    """Known texts, passages of other articles, what had ended before, and who has released it for which reason."""
    spam = desk.look_up("spam")
    assert "It repeats known texts: spam/offer (the same text, deny)" in spam.answer.shown
    assert "/banks/spam/items/offer" in spam.hrefs("a")
    longer = desk.look_up("longer")
    assert "of this article also appears in first." in longer.answer.shown
    (quote,) = longer.texts("blockquote")
    assert quote.startswith(TEXT[:200].strip()[:100])
    washing = desk.look_up("washing")
    assert "It repeats the text of washed" in washing.answer.shown
    assert "retracted or replaced 24 Nov 2025, 11:00:01 UTC" in washing.answer.shown
    assert "about 100 % of the text is in both." in washing.answer.shown
    freed = desk.look_up("freed")
    assert freed.texts("#verdict") == ["Unique: somebody has released it."]
    assert "It was previously flagged as a copy of first . Released by Bob. another\ufffd fare" in freed.answer.shown
    assert desk.look_up("empty").texts(".text.none") == ["The text is empty."]


def test_versions_and_returns(desk: Desk) -> None:
    """All versions are listed, the latest first, and each has its page; a text that came back says so."""
    opened = desk.look_up("returning")
    rows = opened.texts("#history tbody tr")
    assert len(rows) == 3
    assert ["the text returned" in row for row in rows] == [True, False, False]
    assert ["shown above" in row for row in rows] == [True, False, False]
    assert "The text came back after it had been replaced or retracted once." in opened.answer.shown
    assert "feed.jsonl" in rows[0]
    assert opened.texts("#text") == [written(5, 100)]
    middle = page(desk.office.ann, opened.hrefs("#history a")[1])
    assert middle.texts("#text") == [written(6, 100)]
    assert "no: replaced or retracted 24 Nov 2025, 11:00:02 UTC" in middle.answer.shown


def test_a_long_history_is_cut(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest entries are listed, and the page says how many are not."""
    monkeypatch.setattr(article_page, "HISTORY_MAX", 2)
    opened = desk.look_up("returning")
    assert len(opened.texts("#history tbody tr")) == 2
    assert "1 earlier entry is not listed." in opened.answer.shown


def test_a_long_chain_is_cut(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first articles are listed; what it leads to and is no longer stored is said."""
    store, records = desk.archive.made.store, {}
    for version in desk.archive.made.versions(dict.fromkeys(("link 1", "link 2", "link 3"), written(12, 80)), BEGAN_MS):
        records[version.record.id] = version.record
        store.create([version])
    for name, other in (("link 1", "link 2"), ("link 2", "link 3"), ("link 3", "link 4")):
        of = records.get(other, msgspec.structs.replace(records[name], id=other, reference=b"4" * 32))
        duplicate = Duplicate(records[name], Neighbour(of, 0, 1.0), ())
        event = duplicate_event(duplicate, truncated=False, decided_ms=BEGAN_MS)
        assert store.settle([(records[name].reference, event.encoded)]) == [True]
    opened = desk.look_up("link 1")
    assert [text.split(" no")[0] for text in opened.texts("#chain li")] == ["repeats link 2", "which repeats link 3"]
    assert "The chain continues" not in opened.answer.shown
    assert "It repeats link 4 , which is no longer in the store." in desk.look_up("link 3").answer.shown
    monkeypatch.setattr(article_page, "CHAIN_MAX", 1)
    cut = desk.look_up("link 1")
    assert len(cut.texts("#chain li")) == 1
    assert "The chain continues. Only its first 1 articles are listed." in cut.answer.shown


def test_a_long_text_has_parts(desk: Desk) -> None:
    """Each part has a link to the next."""
    first = desk.look_up("long")
    second = page(desk.office.ann, first.link("Next part"))
    assert "Part 2 of 4" in second.answer.shown
    assert len(second.texts("#text")[0]) <= PART_CHARS_MAX


def test_what_the_store_does_not_have(desk: Desk) -> None:
    """Each case says what it may mean; a page is there all the same."""
    said = desk.missing("nowhere")
    assert "The store has no article with this id." in said
    assert "the window, 1 week, and a little longer" in said
    assert "became a dead letter" in said
    assert "This article was retracted, and no version of it is left" not in said
    assert "does not have the text of this version" in desk.missing("copy", version="ab" * 16)
    retraction = desk.look_up("washed")
    assert "no: replaced or retracted" in retraction.answer.shown
    assert retraction.texts("#history tbody tr")[0].endswith("retraction")


def test_an_article_of_which_only_a_retraction_is_left(desk: Desk) -> None:
    """It is told apart from one that never came."""
    desk.archive.made.retract("only retracted", BEGAN_MS)
    assert "This article was retracted, and no version of it is left in the store." in desk.missing("only retracted")


def test_flags_of_articles_that_have_left_are_found(desk: Desk) -> None:
    """The database knows them longer than the store."""
    flag = desk.office.room.flag(article("left"), article("left too"), stored=False)
    assert f"Flag {flag.flag_id}" in desk.missing("left")


@pytest.mark.parametrize("name", STRANGE, ids=range(len(STRANGE)))
def test_strange_ids_are_found(desk: Desk, name: str) -> None:
    """With any characters, as they are; nothing of them is markup."""
    opened = desk.look_up(name)
    # The field of the form has the id as it is.
    check_text(re.sub(r'value="[^"]*"', "", opened.answer.text), name)
    assert opened.texts("#verdict")
    path = next(href for href in opened.hrefs("a") if href.startswith("/look-up/report?"))
    given = page(desk.office.ann, path).all("input[name=one]")[0].attributes["value"]
    assert given == name.replace("\r\n", "\n")


def test_a_pasted_id_may_have_spaces_around_it(desk: Desk) -> None:
    """Unless the store has one that does."""
    assert desk.look_up(" copy\t").texts("#verdict")
    assert desk.look_up(" spaced ").all("input[name=id]")[0].attributes["value"] == " spaced "


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        (urlencode({"id": "x" * 10_000}), 400, "An id can have at most 512 bytes in UTF-8. This one has 10,000,"),
        (urlencode({"id": "Ж" * 300}), 400, "This one has 600"),
        ("id=a%00b", 400, "contains a NUL character"),
        ("id=%ff", 400, "not UTF-8 text"),
        (urlencode({"id": "copy", "version": "v" * 100}), 400, "“version” has 100 characters"),
        (urlencode({"id": "copy", "part": "-1"}), 400, "“part” is not a number"),
        (urlencode({"id": "\x1b[31m"}), 404, "no article with this id"),
    ],
)
def test_ids_that_no_article_has(desk: Desk, query: str, status: int, said: str) -> None:
    """They are refused in words, on a page like others."""
    answer = desk.office.ann.get(f"/look-up?{query}")
    assert answer.status == status, answer.shown
    assert said in answer.shown
    assert '<main id="main"' in answer.text


def test_a_store_that_is_away_is_said(desk: Desk) -> None:
    """With the layout of other pages; the form does without it."""
    desk.archive.error = StoreUnavailable("no region server")
    try:
        answer = desk.office.ann.get(path_of("copy"))
        assert (answer.status, "The store does not answer." in answer.shown) == (503, True)
        assert "Sign out" in answer.shown
        assert desk.office.ann.get("/look-up").status == 200
    finally:
        desk.archive.error = None
