"""Trying a text: what it would repeat, of the store and of the banks, with every limit said; nothing is stored."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from consumer.banks.known_texts import KnownTexts
from consumer.console import bank_texts
from consumer.console.pages.look_up import text_page
from consumer.console.pages.look_up.pasted_text import TEXT_CHARS_MAX
from consumer.judge.settings import SourceRule
from consumer.model.errors import StoreMismatch
from consumer.model.hooks import Hooks
from consumer.web.requests import LimitExceeded
from storage.errors import StoreUnavailable
from tests.stored_texts import SETTINGS, StoreOfTexts
from tests.unit.banks.test_known_texts import edited, written
from tests.unit.console.archives import Archive
from tests.unit.console.banks import bank, bank_file, item
from tests.unit.console.desks import Office, Page, office, page
from tests.unit.console.newsroom import BEGAN_MS
from tests.unit.console.serving import Answer
from tests.unit.console.test_foreign_text import HOSTILE, check_text

TEXT: Final = written(1, 100)
OTHER: Final = written(2, 100)
PATH: Final = "/look-up/text"


@dataclass(frozen=True)
class Desk:
    """A console over an archive, with a bank."""

    office: Office
    archive: Archive
    banks: Path
    heard: list[LimitExceeded]

    def send(self, text: str, **more: str) -> Answer:
        """Paste a text."""
        return self.office.ann.send(PATH, PATH, text=text, **more)

    def tried(self, text: str, **more: str) -> Page:
        """Return what is said of a text."""
        return Page(self.send(text, **more))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A console whose store has two kept articles and a copy, and whose bank has another text."""
    folder = tmp_path_factory.mktemp("desk")
    path = folder / "banks.jsonl"
    bank_file(path, bank("spam"), item("spam", "offer", OTHER))
    settings = replace(
        SETTINGS, sources={"strict": SourceRule(similarity_min=0.99), "official": SourceRule(flag="never")}
    )
    made = StoreOfTexts(settings)
    made.judge({"first": TEXT, "second": written(5, 100), "copy": TEXT}, BEGAN_MS)
    archive = Archive(made)
    hooks, heard = Hooks(), list[LimitExceeded]()
    hooks.on(LimitExceeded, heard.append)
    with office(folder, comparable=archive, judging=settings, banks=bank_file(path), hooks=hooks) as opened:
        opened.ann.get("/banks")
        yield Desk(opened, archive, path, heard)


def stored(desk: Desk) -> int:
    """How many versions the store has."""
    return desk.archive.made.store.stats().versions


def test_shared_keywords_say_something(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on the page of a flag: no stop words, and no fragments of numbers."""
    monkeypatch.setattr(text_page, "shared_keywords", lambda *_: ("the", "ferry", "22", "أن"))
    assert desk.tried(edited(TEXT, 2)).texts("ol.queue .shared mark") == ["ferry"]


def test_a_text_that_would_be_flagged(desk: Desk) -> None:
    """Each kept article that it repeats, with figures, shared words and a link; nothing is stored."""
    before = stored(desk)
    opened = desk.tried(edited(TEXT, 2))
    assert opened.texts("#outcome") == ["Duplicate: this text would be flagged"]
    assert opened.texts("ol.queue h3") == ["(no title) first"]
    (href,) = opened.hrefs("ol.queue h3 a")
    assert href.startswith("/look-up?id=first&version=")
    assert page(desk.office.ann, href).texts("#text") == [TEXT]
    assert "similarity 0.9" in opened.texts("ol.queue .figures")[0]
    assert "fingerprint bits differ" in opened.texts("ol.queue .figures")[0]
    assert opened.texts("ol.queue mark")
    assert opened.texts("#banks") == ["It repeats no text of the banks."]
    assert opened.texts("textarea") == [edited(TEXT, 2)]
    assert stored(desk) == before


def test_a_text_that_would_not(desk: Desk) -> None:
    """The page says below which similarity, and where a copy that somebody knows is reported."""
    opened = desk.tried(written(9, 100))
    assert opened.texts("#outcome") == ["Unique: this text would not be flagged"]
    assert "A look-up finds no kept article in the window with a similarity of at least 0.73." in opened.answer.shown
    assert opened.link("report it") == "/look-up/report"


def test_a_source_has_its_rules(desk: Desk) -> None:
    """As if an article of it arrived."""
    opened = desk.tried(edited(TEXT, 2), source="strict")
    assert "A look-up finds no kept article in the window with a similarity of at least 0.99." in opened.answer.shown


def test_a_text_that_is_never_flagged(desk: Desk) -> None:
    """Since its source or a bank says so; the page does not claim that nothing is near."""
    bank_file(desk.banks, bank("notices", "allow"), item("notices", "first", TEXT))
    desk.office.ann.get("/banks")
    for opened in (desk.tried(TEXT), desk.tried(edited(TEXT, 2), source="official")):
        assert opened.texts("#outcome") == ["Unique: this text would not be flagged"]
        assert "It is never flagged, whatever it repeats" in opened.answer.shown
        assert "No kept article" not in opened.answer.shown
    bank_file(desk.banks, bank("notices", removed=True))
    desk.office.ann.get("/banks")


def test_what_else_is_said_of_a_text(desk: Desk) -> None:
    """Known texts with links to their items, also one that was added a moment ago; texts that have ended."""
    opened = desk.tried(OTHER)
    assert opened.texts("#banks") == ["It repeats known texts: spam/offer (the same text, deny)"]
    assert opened.hrefs("#banks a") == ["/banks/spam/items/offer"]
    bank_file(desk.banks, item("spam", "new", written(6, 100)))
    desk.office.ann.get("/banks")
    assert "spam/new" in desk.tried(edited(written(6, 100), 1)).texts("#banks")[0]
    desk.archive.made.judge({"gone": written(7, 100)}, BEGAN_MS)
    desk.archive.made.retract("gone", BEGAN_MS + 1_000)
    assert "It repeats the text of gone" in desk.tried(written(7, 100)).answer.shown


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_text(desk: Desk, text: str) -> None:
    """In the form again, and whatever is said of them."""
    words = f"{written(100 + [*HOSTILE.values()].index(text), 60)} {text}"
    answer = desk.send(words, source=text)
    assert answer.status in {200, 400}
    assert "<img" not in answer.text.partition("<body>")[2]
    desk.archive.made.judge({text: words}, BEGAN_MS)
    found = desk.tried(words)
    check_text(found.answer.text.partition("<textarea")[0], text)


@pytest.mark.parametrize(
    ("text", "more", "said", "limit"),
    [
        ("", {}, "Paste a text first.", ""),
        ("  \n ", {}, "Paste a text first.", ""),
        (
            "x" * (TEXT_CHARS_MAX + 1),
            {},
            "has 100,001 characters; at most 100,000 are compared.",
            "body_chars_max",
        ),
        ("text", {"source": "s" * 600}, "“Source” has 600 characters", ""),
        ("\ufdfa" * 5_000, {}, "too many characters that stand for several letters", "fold_growth_max"),
    ],
    ids=["nothing", "spaces", "too long", "source", "folding"],
)
def test_what_cannot_be_compared_is_refused(desk: Desk, text: str, more: dict[str, str], said: str, limit: str) -> None:
    """With the limit that was met, which is counted; the form keeps what was sent, unless it is too long for it."""
    before = len(desk.heard)
    answer = desk.send(text, **more)
    assert [met.limit for met in desk.heard[before:]] == [limit] * bool(limit)
    assert answer.status == 400
    assert said in answer.shown
    assert (text.strip() in answer.text) == (len(text) <= TEXT_CHARS_MAX)


def test_the_longest_text_is_compared(desk: Desk) -> None:
    """In letters that take most bytes in a form."""
    assert desk.tried("中" * TEXT_CHARS_MAX).texts("#outcome")
    assert desk.send("中" * TEXT_CHARS_MAX, source="x" * 512).status == 200


def test_texts_without_letters_are_compared(desk: Desk) -> None:
    """Emoji, marks and spaces repeat nothing."""
    assert desk.tried("😀 … !?").texts("#outcome") == ["Unique: this text would not be flagged"]


def test_a_store_that_is_away_is_said(desk: Desk) -> None:
    """On the form, which keeps the text."""
    try:
        desk.archive.error = StoreUnavailable("no region server")
        answer = desk.send(TEXT)
        assert (answer.status, answer.header("retry-after")) == (503, "5")
        assert "The store does not answer, so nothing was compared." in answer.shown
        assert TEXT in answer.text
        desk.archive.error = StoreMismatch("the store is empty: nothing was ever judged into it")
        answer = desk.send(TEXT)
        assert (answer.status, "The store cannot be searched" in answer.shown) == (409, True)
        assert desk.office.ann.get(PATH).status == 200
    finally:
        desk.archive.error = None


def test_banks_that_a_text_is_not_compared_with_are_said(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many items, and items that are being prepared, which nobody waits for."""
    with monkeypatch.context() as patch:
        patch.setattr(bank_texts, "BANK_ITEMS_MAX", 0)
        assert "It was not compared with the banks: they have more than" in desk.tried(TEXT).texts("#banks")[0]
    gate = threading.Event()
    held = KnownTexts.replace
    monkeypatch.setattr(bank_texts, "PREPARE_S", 0.01)
    monkeypatch.setattr(KnownTexts, "replace", lambda *given: (gate.wait(60), held(*given)))
    bank_file(desk.banks, item("spam", "late", written(11, 100)))
    desk.office.ann.get("/banks")
    try:
        opened = desk.tried(written(11, 100))
        assert "It was not compared with the banks, which are still being read." in opened.texts("#banks")[0]
        assert opened.texts("#outcome")
    finally:
        gate.set()
    monkeypatch.setattr(bank_texts, "PREPARE_S", 60.0)
    assert "spam/late" in desk.tried(written(11, 100)).texts("#banks")[0]


def test_a_console_without_banks_says_so(tmp_path: Path) -> None:
    """And one whose banks were never read."""
    made = StoreOfTexts()
    made.judge({"first": TEXT}, BEGAN_MS)
    with office(tmp_path, comparable=Archive(made)) as opened:
        answer = opened.ann.send(PATH, PATH, text=TEXT)
        assert Page(answer).texts("#banks") == ["This console has no banks to compare with."]
    with office(tmp_path, comparable=Archive(made), banks=bank_file(tmp_path / "banks.jsonl")) as opened:
        answer = opened.ann.send(PATH, PATH, text=TEXT)
        assert "which are still being read" in Page(answer).texts("#banks")[0]
