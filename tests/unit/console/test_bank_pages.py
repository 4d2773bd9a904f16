"""The pages of banks: what is shown, what is changed and recorded, and what is refused to whom."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import msgspec
import pytest

from consumer.banks.bank import ITEM_CHARS_MAX, BankItem, BanksUnreachable, ChangeUnknown
from consumer.banks.exchange import item_id
from consumer.console.visit import FORM_BYTES_MAX
from consumer.model.verdict import BankMention
from consumer.reviews import audit
from consumer.reviews.audit import AuditFilters
from consumer.reviews.database import DatabaseUnavailable
from consumer.reviews.people import Role
from tests.unit.console.banks import TEXT, FailingBanks, bank, bank_file, banks_in, item
from tests.unit.console.desks import Office, Page, office, page
from tests.unit.console.newsroom import article
from tests.unit.console.serving import Answer, Browser
from tests.unit.console.test_foreign_text import HOSTILE, check_text

AT: Final = "2025-11-24T16:00:00.000Z"
"""The clock of a served console."""
OFFER: Final = item(
    "spam", "offer", "Tickets for nothing, only today.", title="Ferry tickets", labels=("tickets",),
    at="2025-11-20T08:00:00.000Z",
)  # fmt: skip
NOTICE: Final = item("notices", "bridge", "The bridge is closed on Sunday.", note="of the harbour office")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file with a bank of each kind, and an item in each."""
    path = tmp_path / "banks.jsonl"
    bank_file(path, bank("spam", note="campaigns"), bank("notices", "allow"), OFFER, NOTICE)
    return path


@pytest.fixture
def desk(tmp_path: Path, path: Path) -> Iterator[Office]:
    """A console with these banks."""
    with office(tmp_path, banks=bank_file(path)) as opened:
        yield opened


def admin(desk: Office) -> Browser:
    """The browser of an admin."""
    return desk.served.signed_in("Wei", "admin")


def noted(desk: Office) -> list[tuple[str, str, str, str]]:
    """Who did what to which bank or item, and why, the first entry first."""
    with desk.served.database.read_connection() as connection:
        entries = audit.search(connection, AuditFilters(), None, 1_000).rows
    told = [(entry.person, entry.action, entry.subject, entry.why) for entry in entries[::-1]]
    return [entry for entry in told if entry[1].startswith(("bank.", "item."))]


def check_leads_to(answer: Answer, path: str) -> None:
    """A form had its effect, and the browser is sent on."""
    assert (answer.status, answer.header("location")) == (303, path), answer.shown


def check_refused(answer: Answer, status: int, said: str) -> Answer:
    """A form had no effect, and the page says why."""
    assert (answer.status, said in answer.shown) == (status, True), answer.shown
    return answer


def value_of(answer: Answer, field: str) -> str:
    """What stands in a field of a form."""
    (node,) = Page(answer._replace(status=200)).all(f"form [name={field}]")
    return (node.attributes.get("value") if node.tag == "input" else node.text()) or ""


def test_all_banks_are_shown(desk: Office, path: Path) -> None:
    """With their items counted, as others change the file; the navigation leads there."""
    opened = page(desk.ann, "/banks")
    assert opened.texts("tbody tr th") == ["notices", "spam"]
    assert opened.texts("tbody tr:nth-child(2) td")[:3] == ["deny", "1", "enabled"]
    assert page(desk.ann, "/").link("Banks") == "/banks"
    assert opened.all("form[action='/banks']") == []
    bank_file(path, bank("exams"), item("spam", "more"))
    assert page(desk.ann, "/banks").texts("tbody td.figure") == ["0", "1", "2"]


def test_a_bank_is_created_changed_and_switched(desk: Office, path: Path) -> None:
    """By an admin, whose name is in the entry and in the audit log; what says nothing new is not recorded."""
    wei = admin(desk)
    form = {"bank": "exams", "action": "deny", "similarity": "0.8", "labels": "leaks  2026", "note": "Leaked.\nAll."}
    check_leads_to(wei.send("/banks", "/banks", **form), "/banks/exams?done=created")
    exams = bank("exams", similarity=0.8, labels=("leaks", "2026"), note="Leaked.\nAll.", by="Wei", at=AT)
    assert banks_in(path).banks["exams"] == exams
    assert "Bank created." in wei.get("/banks/exams?done=created").shown
    desk.served.clock.pass_s(1)
    seen = page(wei, "/banks/exams").form("/banks/exams")["seen"]
    change = {"seen": seen, "labels": "", "note": "Leaked", "similarity": ""}
    for _ in range(2):
        check_leads_to(wei.send("/banks/exams", "/banks/exams", **change), "/banks/exams?done=changed")
        change["seen"] = banks_in(path).banks["exams"].at or ""
    assert banks_in(path).banks["exams"] == bank("exams", note="Leaked", by="Wei", at="2025-11-24T16:00:01.000Z")
    for _ in range(2):
        check_leads_to(wei.send("/banks/exams/disable"), "/banks/exams?done=disabled")
    assert not banks_in(path).banks["exams"].enabled
    check_leads_to(wei.send("/banks/exams/enable"), "/banks/exams?done=enabled")
    assert banks_in(path).banks["exams"].enabled
    assert noted(desk) == [
        ("Wei", "bank.create", "exams", "deny"),
        ("Wei", "bank.change", "exams", "Leaked"),
        ("Wei", "bank.disable", "exams", ""),
        ("Wei", "bank.enable", "exams", ""),
    ]


def test_a_bank_that_cannot_be_is_refused(desk: Office, path: Path) -> None:
    """The page says why, keeps what was written, and nothing was changed."""
    before, wei = path.read_bytes(), admin(desk)
    token = wei.get("/banks").token
    refused: list[tuple[dict[str, str], str]] = [
        ({"bank": "Exams"}, "lowercase letters"),
        ({"bank": ""}, "lowercase letters"),
        ({"bank": "a" * 65}, "lowercase letters"),
        ({"bank": "a/b"}, "lowercase letters"),
        ({"action": "burn"}, "action of the bank: deny or allow"),
        ({"similarity": "0.4"}, "from 0.5 to 1"),
        ({"action": "allow", "similarity": "0.8"}, "from 0.9 to 1"),
        ({"similarity": "nan"}, "“Similarity (optional)” is not a number"),
        ({"labels": "a" * 65}, "labels of up to"),
        ({"labels": " ".join(map(str, range(21)))}, "labels of up to"),
        ({"note": "n" * 2_001}, "“Note (optional)” has 2,001 characters; the limit is 2,000"),
        ({"bank": "spam"}, "A bank of this name already exists"),
    ]
    for form, said in refused:
        sent = {"token": token, "bank": "exams", "action": "deny", "note": "kept"} | form
        answer = check_refused(wei.post("/banks", sent), 409 if form == {"bank": "spam"} else 400, said)
        assert (value_of(answer, "bank"), value_of(answer, "note")) == (sent["bank"], sent["note"])
    assert path.read_bytes() == before
    assert noted(desk) == []


def test_a_bank_is_removed_with_as_many_items_as_the_page_said(desk: Office, path: Path) -> None:
    """Where somebody has added one in the meantime, it is asked again."""
    wei = admin(desk)
    asked = page(wei, "/banks/spam/remove")
    assert "Its 1 item is removed with it." in asked.answer.shown
    form = asked.form("/banks/spam/remove")
    bank_file(path, item("spam", "more"))
    check_refused(wei.post("/banks/spam/remove", form), 409, "since you opened the page")
    assert "Its 2 items are removed" in wei.get("/banks/spam/remove").shown
    form = page(wei, "/banks/spam/remove").form("/banks/spam/remove")
    check_leads_to(wei.post("/banks/spam/remove", form), "/banks?done=removed")
    assert (set(banks_in(path).banks), set(banks_in(path).items)) == ({"notices"}, {NOTICE.key})
    assert noted(desk) == [("Wei", "bank.remove", "spam", "2 items")]
    assert wei.post("/banks/spam/remove", form).status == 404


def test_a_text_is_added(desk: Office, path: Path) -> None:
    """With all that an item has; the page of the item shows it whole, and a text that is there is not added again."""
    text = "Nur heute:\n\n  Tee gratis.\n" + "Zeile.\n" * 20
    form = {"text": f"  {text}".replace("\n", "\r\n"), "title": "Tee", "labels": "tea", "note": "since May",
            "until": "2026-12-31 18:00", "similarity": "0.75"}  # fmt: skip
    name = item_id(text.strip())
    added = desk.ann.send("/banks/spam/items", "/banks/spam", **form)
    check_leads_to(added, f"/banks/spam/items/{name}?done=added")
    assert banks_in(path).items["spam", name] == item(
        "spam", name, text.strip(), title="Tee", labels=("tea",), note="since May",
        until="2026-12-31T18:00:00.000Z", similarity=0.75, by="Ann", at=AT,
    )  # fmt: skip
    opened = page(desk.ann, f"/banks/spam/items/{name}?done=added")
    assert [node.text() for node in opened.all("section.part div.text")] == [text.strip()]
    assert {
        "Ann · 24 Nov 2025, 16:00:00 UTC (just now)",
        "31 Dec 2026, 18:00:00 UTC (in 1 year)",
        "0.75",
        "tea",
    } <= set(opened.texts("dd"))
    assert "Text added." in opened.answer.shown
    again = desk.ann.send("/banks/spam/items", "/banks/spam", text=text, title="Other")
    check_leads_to(again, f"/banks/spam/items/{name}?done=known")
    assert "The bank already has this text" in desk.ann.get(again.header("location")).shown
    assert banks_in(path).items["spam", name].title == "Tee"
    named = desk.ann.send("/banks/spam/items", "/banks/spam", text=OFFER.text)
    check_leads_to(named, "/banks/spam/items/offer?done=known")
    assert noted(desk) == [("Ann", "item.add", f"spam/{name}", "")]


def test_a_text_that_cannot_be_an_item_is_refused(desk: Office, path: Path) -> None:
    """The page says why, and keeps what was written."""
    before, token = path.read_bytes(), desk.ann.get("/banks/spam").token
    refused: list[tuple[dict[str, str], str]] = [
        ({"text": ""}, "fewer than 6 letters"),
        ({"text": "… 12 ab …"}, "fewer than 6 letters"),
        ({"text": "a" * (ITEM_CHARS_MAX + 1)}, "has 100,001 characters"),
        ({"until": "tomorrow"}, "tomorrow is not a time"),
        ({"until": "2026-02-30"}, "is not a time"),
        ({"until": "9999-12-31T23:59-23:00"}, "is not a time"),
        ({"similarity": "2"}, "from 0.5 to 1"),
        ({"title": "t" * 4_097}, "the limit is 4,096"),
        ({"labels": "a\x1bb"}, "labels of up to"),
    ]
    for form, said in refused:
        sent = {"token": token, "text": TEXT * 2, "title": "kept"} | form
        answer = check_refused(desk.ann.post("/banks/spam/items", sent), 400, said)
        assert (value_of(answer, "text"), value_of(answer, "title")) == (sent["text"], sent["title"])
    assert (path.read_bytes(), noted(desk)) == (before, [])


def test_the_longest_text_is_taken_from_those_who_are_signed_in(desk: Office, path: Path) -> None:
    """In Chinese it is a large form, which nobody else may send."""
    text = "".join(chr(0x4E00 + number % 20_000) for number in range(ITEM_CHARS_MAX))
    assert len(text.encode()) * 3 > FORM_BYTES_MAX
    form = {"token": desk.ann.get("/banks/spam").token, "text": text}
    check_leads_to(desk.ann.post("/banks/spam/items", form), f"/banks/spam/items/{item_id(text)}?done=added")
    assert banks_in(path).items["spam", item_id(text)].text == text
    assert text in desk.ann.get(f"/banks/spam/items/{item_id(text)}").text
    check_refused(desk.served.browser().post("/banks/spam/items", form), 413, "larger than 65,536 bytes")
    check_refused(desk.ann.post("/banks/spam", form), 413, "larger than 65,536 bytes")


def test_an_item_is_changed_switched_and_removed(desk: Office, path: Path) -> None:
    """What a form leaves as it was stays exactly; each change has the person's name, in the entry and in the log."""
    exact = OFFER.at and item("spam", "offer", until="2030-01-01T00:00:00.123Z", similarity=0.7, at=OFFER.at)
    assert isinstance(exact, BankItem)
    bank_file(path, exact)
    here = "/banks/spam/items/offer"
    form = {**page(desk.ann, here).form(here), "title": "Offer", "labels": "x y", "note": "n", "similarity": "0.7",
            "until": value_of(desk.ann.get(here), "until")}  # fmt: skip
    check_leads_to(desk.ann.post(here, form), f"{here}?done=changed")
    changed = item("spam", "offer", title="Offer", labels=("x", "y"), note="n", until=exact.until, similarity=0.7,
                   by="Ann", at=AT)  # fmt: skip
    assert banks_in(path).items[OFFER.key] == changed
    check_refused(desk.ann.post(here, form), 409, "since you opened the page")
    check_leads_to(desk.ann.post(here, {**form, "seen": AT}), f"{here}?done=changed")
    form |= {"seen": AT, "until": "", "similarity": ""}
    check_leads_to(desk.ann.post(here, form), f"{here}?done=changed")
    assert (banks_in(path).items[OFFER.key].until, banks_in(path).items[OFFER.key].similarity) == (None, None)
    for state in ("disable", "disable", "enable"):
        check_leads_to(desk.ann.send(f"{here}/{state}"), f"{here}?done={state}d")
        assert banks_in(path).items[OFFER.key].enabled is (state == "enable")
    check_refused(desk.ann.send(f"{here}/remove", seen="2025"), 409, "since you opened the page")
    gone = page(desk.ann, here).form(f"{here}/remove")
    check_leads_to(desk.ann.post(f"{here}/remove", gone), "/banks/spam?done=removed")
    assert OFFER.key not in banks_in(path).items
    assert desk.ann.get(here).status == 404
    assert [entry[:3] for entry in noted(desk)] == [
        ("Ann", f"item.{action}", "spam/offer") for action in ("add", "change", "change", "disable", "enable", "remove")
    ][1:]


def test_a_change_that_cannot_be_keeps_what_was_written(desk: Office) -> None:
    """On the page of the item, too."""
    here = "/banks/spam/items/offer"
    form = {**page(desk.ann, here).form(here), "title": "kept", "until": "never"}
    answer = check_refused(desk.ann.post(here, form), 400, "never is not a time")
    assert (value_of(answer, "title"), value_of(answer, "until")) == ("kept", "never")


def test_only_an_admin_changes_what_a_bank_allows(desk: Office, path: Path) -> None:
    """A reviewer looks at it, and has no form for it; a form that is sent all the same is refused."""
    before, here = path.read_bytes(), "/banks/notices/items/bridge"
    for at in ("/banks/notices", here):
        opened = page(desk.ann, at)
        assert "Only an admin can change the items of an allow bank." in opened.answer.shown
        assert opened.all("main form[method=post]") == []
    for at in ("/banks/notices/items", here, f"{here}/disable", f"{here}/enable", f"{here}/remove"):
        check_refused(desk.ann.send(at, text=TEXT, seen=""), 403, "Only an admin")
    desk.room.flag(article("copy", "Copy", TEXT), article("original", "Original", TEXT))
    check_refused(desk.ann.send("/flags/1/bank", bank="notices", side="article"), 403, "Only an admin")
    assert (path.read_bytes(), noted(desk)) == (before, [])
    wei = admin(desk)
    assert page(wei, "/flags/1").texts("form[action='/flags/1/bank'] option") == ["spam · deny", "notices · allow"]
    assert wei.send("/banks/notices/items", text=TEXT).status == 303
    check_refused(wei.send("/banks/notices/items", text=TEXT * 2, similarity="0.8"), 400, "from 0.9 to 1")
    assert wei.send(f"{here}/disable").status == 303
    assert wei.send(f"{here}/remove", seen=AT).status == 303
    assert set(banks_in(path).items) == {OFFER.key, ("notices", item_id(TEXT))}


def test_items_are_found_by_a_piece_and_shown_in_pages(desk: Office, path: Path) -> None:
    """The newest first; a piece of the id, the title, a label or the text finds them, in capitals or not."""
    many = [item("spam", f"i{n:03}", f"Line number {n} of many", at=f"2025-11-21T08:{n:02}:00.000Z") for n in range(60)]
    bank_file(path, *many, item("spam", "off", "Another one", enabled=False, until="2025-01-01T00:00:00.000Z"))
    opened = page(desk.ann, "/banks/spam")
    names = [href.rpartition("/")[2] for href in opened.hrefs("[data-item]")]
    assert names == [f"i{n:03}" for n in range(59, 9, -1)]
    second = page(desk.ann, opened.link("Earlier items"))
    assert [href.rpartition("/")[2] for href in second.hrefs("[data-item]")] == [
        *(f"i{n:03}" for n in range(9, -1, -1)), "offer", "off",
    ]  # fmt: skip
    assert second.texts("li:last-child .tag") == ["disabled", "ended"]
    assert second.link("Back to the latest") == "/banks/spam"
    for piece in ("FERRY+TICKETS", "icke", "only+today", "Offer"):
        found = page(desk.ann, f"/banks/spam?piece={piece}")
        assert found.hrefs("[data-item]") == ["/banks/spam/items/offer"], piece
    lines = page(desk.ann, "/banks/spam?piece=line+number")
    assert "piece=line+number&after=" in lines.link("Earlier items")
    assert "No item matches." in desk.ann.get("/banks/spam?piece=nowhere").shown
    assert "No item matches." in desk.ann.get("/banks/spam?after=~").shown
    assert desk.ann.get("/banks/nobody").status == desk.ann.get("/banks/spam/items/nobody").status == 404


def test_the_text_of_a_flag_is_added_by_one_click(desk: Office, path: Path) -> None:
    """Of the article, or of the earlier one; it becomes an item with its article, title and language."""
    copy = article("copy", "Kopie", "Heute gibt es Fährkarten.", lang="de", source="post")
    desk.room.flag(copy, article("original", "First", TEXT))
    query = "?source=post"
    desk.ann.get("/banks")
    form = page(desk.ann, f"/flags/1{query}")
    assert form.texts("form[action='/flags/1/bank'] option") == ["spam · deny"]
    sent = {**form.form("/flags/1/bank"), "bank": "spam"}
    answer = desk.ann.post("/flags/1/bank", {**sent, "side": "article"})
    name = item_id(copy.body or "")
    check_leads_to(answer, f"/flags/1?source=post&to_bank=spam&item={name}&banked=added")
    assert banks_in(path).items["spam", name] == item(
        "spam", name, copy.body or "", title="Kopie", lang="de", article="copy", by="Ann", at=AT
    )
    shown = page(desk.ann, answer.header("location"))
    assert "Text added to the bank spam." in shown.answer.shown
    assert shown.link("View the item") == f"/banks/spam/items/{name}"
    assert shown.hrefs(".crumbs a")[0] == "/flags/1/leave?source=post"
    again = desk.ann.post("/flags/1/bank", {**sent, "side": "article"})
    assert "The bank spam already has this text" in desk.ann.get(again.header("location")).shown
    assert desk.ann.post("/flags/1/bank", {**sent, "side": "original"}).status == 303
    assert banks_in(path).items["spam", item_id(TEXT)].article == "original"
    assert noted(desk) == [
        ("Ann", "item.add", f"spam/{name}", "copy"), ("Ann", "item.add", f"spam/{item_id(TEXT)}", "original")
    ]  # fmt: skip
    with desk.served.database.read_connection() as connection:
        entries = audit.search(connection, AuditFilters(action="item.add"), None, 10).rows
    assert [entry.flag_id for entry in entries] == [1, 1]


def test_what_of_a_flag_cannot_be_added(desk: Office, path: Path) -> None:
    """It is said, and nothing is added."""
    desk.room.flag(article("short", "S", "Hi"), article("none", "N", None))
    desk.room.flag(article("gone-b", "B", TEXT), article("gone-a", "A", TEXT), stored=False)
    before = path.read_bytes()
    desk.ann.get("/banks")
    assert page(desk.ann, "/flags/1").texts("form[action='/flags/1/bank'] button") == ["Add the article"]
    assert "The store does not have the text of either article." in desk.ann.get("/flags/2").shown
    for flag_id, side, of_bank, status, said in (
        (1, "article", "spam", 400, "fewer than 6 letters"),
        (1, "original", "spam", 409, "no longer has the text"),
        (2, "article", "spam", 409, "no longer has the text"),
        (1, "both", "spam", 400, "Choose the article"),
    ):
        answer = desk.ann.send(f"/flags/{flag_id}/bank", f"/flags/{flag_id}", side=side, bank=of_bank)
        check_refused(answer, status, said)
    desk.room.flag(article("long-b", "B", TEXT), article("long-a", "A", "a" * (ITEM_CHARS_MAX + 1)))
    check_refused(desk.ann.send("/flags/3/bank", side="original", bank="spam"), 400, "has 100,001 characters")
    check_refused(desk.ann.send("/flags/3/bank", side="article", bank="nobody"), 404, "There is no such bank")
    check_refused(desk.ann.send("/flags/3/bank", side="article"), 404, "There is no such bank")
    assert desk.ann.send("/flags/4711/bank", side="article", bank="spam").status == 404
    assert (path.read_bytes(), noted(desk)) == (before, [])


def test_an_item_names_the_flags_whose_articles_repeat_it(desk: Office) -> None:
    """As their verdicts say; of other items, and of other banks, it names none."""
    mention = BankMention(bank="spam", item="offer", action="deny", form="part", similarity=0.9)
    other = BankMention(bank="spam", item="other", action="deny", form="part", similarity=0.9)
    original = article("original", "First", "x")
    desk.room.flag(article("one", "Names it", "y"), original, banks=(other, mention))
    desk.room.flag(article("two", "Names another", "y"), original, banks=(other,))
    opened = page(desk.ann, "/banks/spam/items/offer")
    assert opened.texts("ol.short a") == ["Names it"]
    assert "the latest 2 flags" in opened.answer.shown
    flag = page(desk.ann, opened.hrefs("ol.short a")[0])
    assert flag.link("spam/offer") == "/banks/spam/items/offer"
    assert page(desk.ann, "/banks/notices/items/bridge").texts("ol.short a") == []


def test_without_banks_the_pages_say_what_to_set(tmp_path: Path) -> None:
    """And nothing else leads to banks."""
    with office(tmp_path) as desk:
        desk.room.flag(article("copy", "Copy", TEXT), article("original", "Original", TEXT))
        for path in ("/", "/flags/1"):
            assert not [href for href in page(desk.ann, path).hrefs("a") if "/bank" in href]
        for path in ("/banks", "/banks/spam", "/banks/spam/items/offer"):
            check_refused(desk.ann.get(path), 404, "Set banks.url")
        check_refused(desk.ann.send("/flags/1/bank", bank="spam", side="article"), 404, "Set banks.url")


def test_the_first_bank_is_created_here(tmp_path: Path) -> None:
    """A file that does not exist yet has no banks."""
    path = tmp_path / "new.jsonl"
    with office(tmp_path, banks=bank_file(path)) as desk:
        assert "There are no banks yet." in desk.ann.get("/banks").shown
        assert admin(desk).send("/banks", "/banks", bank="spam", action="deny").status == 303
        assert set(banks_in(path).banks) == {"spam"}


def test_banks_that_are_away_hold_up_nothing_else(tmp_path: Path, path: Path) -> None:
    """Their pages say so, or wait; a flag is shown with the banks as they were last read."""
    banks = FailingBanks(bank_file(path))
    with office(tmp_path, banks=banks, threads=1) as desk, ThreadPoolExecutor() as waiting:
        desk.room.flag(article("copy", "Copy", TEXT), article("original", "Original", TEXT))
        assert "The banks have not been read yet." in desk.ann.get("/flags/1").shown
        desk.ann.get("/banks")
        for error, said in (
            (BanksUnreachable("no brokers at 10.0.0.1"), "cannot be read or changed at the moment"),
            (ChangeUnknown("in part"), "may have been made only in part"),
        ):
            banks.error = error
            for answer in (desk.ann.get("/banks"), desk.ann.send("/banks/spam/items", text=TEXT)):
                check_refused(answer, 503, said)
                assert "10.0.0.1" not in answer.text
        assert page(desk.ann, "/flags/1").texts("form[action='/flags/1/bank'] option") == ["spam · deny"]
        banks.error = None
        banks.gate.clear()
        try:
            answers = [waiting.submit(desk.ann.get, "/banks") for _ in range(3)]
            assert desk.ann.get("/flags/1").status == desk.ann.get("/").status == 200
            assert not any(answer.done() for answer in answers)
        finally:
            banks.gate.set()
        assert [answer.result().status for answer in answers] == [200] * 3


def test_a_change_that_cannot_be_recorded_is_said_to_be_made(
    desk: Office, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log of the console names it."""

    def away(*_: object, **__: object) -> None:
        raise DatabaseUnavailable("gone")

    token = desk.ann.get("/me").token
    monkeypatch.setattr(audit, "add_entry", away)
    answer = desk.ann.post("/banks/spam/items/offer/disable", {"token": token})
    check_refused(answer, 503, "The change was made, but")
    assert not banks_in(path).items[OFFER.key].enabled
    assert "item.disable of spam/offer by Ann: gone" in caplog.text


def test_whatever_an_item_has_is_shown_as_text(desk: Office, path: Path) -> None:
    """To somebody who has no form for it; and in forms, which carry it as it is, it makes no markup either."""
    wei = admin(desk)
    for number, text in enumerate(HOSTILE.values()):
        label, short, name = "".join(text.split())[:64], text[:64], f"evil{number}"
        evil = item(name, name, f"{text} and more", title=text, labels=(label,), note=short, by=short, article=text,
                    lang=short)  # fmt: skip
        bank_file(path, bank(name, "allow", note=short, labels=(label,), by=short), evil)
        for at in (f"/banks/{name}", f"/banks/{name}/items/{name}"):
            check_text(desk.ann.get(at).text, text)
            check_no_markup(wei.get(at))
        check_no_markup(wei.get(f"/banks/spam?{urlencode({'piece': text})}"))
        check_no_markup(wei.send(f"/banks/{name}/items", text="x", title=text, note=text, until=short[:9]))
    check_no_markup(desk.ann.get("/banks"))


def check_no_markup(answer: Answer) -> None:
    """Nothing that somebody wrote does anything."""
    inside = answer.text.partition("<body>")[2]
    assert not any(markup in inside for markup in ("<img", "<script>", "<style>", "</style>"))
    assert " autofocus onfocus" not in inside.replace("&#34; autofocus onfocus", "")


@pytest.mark.parametrize("role", ["reviewer", "admin"])
def test_pages_of_banks_are_there_in_chinese(desk: Office, role: Role) -> None:
    """With every sentence that depends on who looks, and on what was done."""
    li = desk.served.signed_in("Li", role)
    li.send("/me/language", language="zh")
    desk.room.flag(article("copy", "Copy", TEXT), article("original", "Original", TEXT))
    assert "已知文本库" in li.get("/banks").shown
    for at in ("/banks/spam?done=created", "/banks/notices?piece=x", "/banks/spam/items/offer?done=known"):
        assert "文本库" in page(li, at).answer.shown
    answer = li.send("/flags/1/bank", side="article", bank="spam")
    assert "文本已加入文本库 spam。" in li.get(answer.header("location")).shown


def test_an_item_is_confirmed_by_an_admin(desk: Office, path: Path) -> None:
    """And no longer is; the entry and the audit log say who did it, and a page from before has no effect."""
    wei, at = admin(desk), "/banks/spam/items/offer"
    assert page(desk.ann, at).all("form[action$=confirm]") == []
    seen = page(wei, at).form(f"{at}/confirm")["seen"]
    check_leads_to(wei.send(f"{at}/confirm", at, seen=seen), f"{at}?done=confirmed")
    assert banks_in(path).items["spam", "offer"] == msgspec.structs.replace(OFFER, confirmed=True, by="Wei", at=AT)
    assert "It may match any share of the feed." in wei.get(at).shown
    check_refused(wei.send(f"{at}/unconfirm", at, seen=seen), 409, "Somebody else has changed this")
    desk.served.clock.pass_s(1)
    check_leads_to(wei.send(f"{at}/unconfirm", at, seen=AT), f"{at}?done=unconfirmed")
    assert not banks_in(path).items["spam", "offer"].confirmed
    assert noted(desk) == [("Wei", "item.confirm", "spam/offer", ""), ("Wei", "item.unconfirm", "spam/offer", "")]
    desk.served.clock.pass_s(1)
    seen = page(wei, at).form(f"{at}/confirm")["seen"]
    check_leads_to(wei.send(f"{at}/confirm", at, seen=seen), f"{at}?done=confirmed")
    for similarity, is_confirmed in (("0.8", True), ("0.75", False)):
        form = page(desk.ann, at).form(at) | {"similarity": similarity}
        check_leads_to(desk.ann.send(at, at, **form), f"{at}?done=changed")
        assert banks_in(path).items["spam", "offer"].confirmed is is_confirmed
        desk.served.clock.pass_s(1)
