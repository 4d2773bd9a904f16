"""Pages of standing decisions: made on the page of a story and for a pair of sources, listed, and ended."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import pytest

from consumer.banks.exchange import item_id
from consumer.config.sections.console import ConsoleSection
from consumer.console.intake.intake import IntakeParts
from consumer.model.hooks import Hooks
from consumer.reviews import audit, people
from consumer.reviews.audit import AuditFilters
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.moderation.reasons import add_reason, reasons, retire_reason
from tests.unit.console.banks import bank, bank_file, banks_in, item
from tests.unit.console.desks import Office, decide, office, page
from tests.unit.console.newsroom import article
from tests.unit.console.serving import Answer, Browser
from tests.unit.console.test_bank_pages import check_no_markup
from tests.unit.console.test_foreign_text import HOSTILE, check_text

TEXT: Final = "The harbour council votes on the ferry landing."
UNDO_S: Final = 600


@pytest.fixture
def banks_path(tmp_path: Path) -> Path:
    """Where the banks are."""
    return tmp_path / "banks.jsonl"


@pytest.fixture
def desk(tmp_path: Path, banks_path: Path) -> Iterator[Office]:
    """A console with a story of three copies, and with a bank that denies."""
    with office(tmp_path, banks=bank_file(banks_path, bank("spam")), undo_s=UNDO_S) as opened:
        for number in range(3):
            copy(opened, number)
        opened.ann.get("/banks")
        yield opened


def copy(desk: Office, number: int, *, name: str = "ferry", source: str = "post") -> FlagRow:
    """A flag of a story, that comes in as the intake takes it."""
    original = article(name, f"The {name}", TEXT, source="wire")
    flag = desk.room.flag(article(f"{name}-{number}", f"{name} {number}", TEXT, source=source), original, minute=number)
    section = ConsoleSection(undo_s=UNDO_S)
    parts = IntakeParts(desk.served.database, section, desk.served.clock, Hooks(), lambda: None)
    desk.served.database.write(lambda c: parts.decide_new(c, [flag.flag_id]))
    return desk.room.row(flag.article_id)


def noted(desk: Office, action: str) -> list[tuple[str, str, str]]:
    """Who did this to what, and why."""
    with desk.served.database.read_connection() as connection:
        entries = audit.search(connection, AuditFilters(action=action), None, 100).rows
    return [(entry.person, entry.subject, entry.why) for entry in entries[::-1]]


def story_path(desk: Office, name: str = "ferry") -> str:
    """The page of a story."""
    return f"/stories/{desk.room.row(f'{name}-0').story_id}"


def begin(desk: Office, browser: Browser, **form: str) -> Answer:
    """Decide about further copies of the story, by the form of its page."""
    path = story_path(desk)
    return browser.send(f"{path}/standing", path, **({"lasts": "86400"} | form))


def mute(browser: Browser, source: str = "post", original_source: str = "wire", **form: str) -> Answer:
    """Mute a pair of sources, by the form of the page that asks."""
    asks = f"/standing/mute?{urlencode({'source': source, 'original_source': original_source})}"
    hidden = page(browser, asks).form("/standing/mute")
    return browser.post(
        "/standing/mute", {**hidden, "source": source, "original_source": original_source, "lasts": "86400", **form}
    )


def check_refused(answer: Answer, status: int, said: str) -> None:
    """A form had no effect, and the page says why."""
    assert (answer.status, said in answer.shown) == (status, True), answer.shown


def followed(browser: Browser, answer: Answer) -> str:
    """What the page says to which a form leads."""
    assert answer.status == 303, answer.shown
    return browser.get(answer.header("location")).shown


def test_a_story_is_decided_for_what_still_comes_and_stopped(desk: Office) -> None:
    """The page says who, until when, and how many so far; stopped by somebody else, what is not final is open again."""
    said = followed(desk.ann, begin(desk, desk.ann, note="the same report"))
    assert "Further copies of this story are decided right as they arrive." in said
    assert [copy(desk, number).state for number in (3, 4)] == ["right", "right"]
    desk.served.clock.pass_s(UNDO_S)
    assert copy(desk, 5).state == "right"
    bob = desk.colleague()
    opened = page(bob, story_path(desk))
    assert opened.texts('[aria-labelledby="still-to-come"] p') == [
        "All further copies are right until 25 Nov 2025, 16:00:00 UTC, as Ann decided. 3 copies so far.",
        "the same report",
    ]
    assert opened.all(f'form[action="{story_path(desk)}/standing"]') == []
    said = followed(bob, bob.post("/standing/1/end", opened.form("/standing/1/end")))
    assert (
        "The standing decision has ended. 1 of its decisions was taken back: the flag is open again. 2 "
        "were already final and stay." in said
    )
    assert [desk.room.state(f"ferry-{number}") for number in range(6)] == [*["open"] * 3, "right", "right", "open"]
    assert copy(desk, 6).state == "open"
    assert noted(desk, "standing.begin") == [("Ann", "ferry", "right until 2025-11-25T16:00:00.000Z: the same report")]
    assert noted(desk, "standing.end") == [("Bob", "ferry", "right, of Ann: 1 taken back, 2 final")]
    assert noted(desk, "flag.undo") == [("Bob", "ferry-5", "")]
    check_refused(bob.send("/standing/1/end"), 409, "has already ended")
    assert bob.send("/standing/4711/end").status == 404


def test_the_flag_and_the_queue_say_that_nobody_clicked(desk: Office) -> None:
    """But whose decision it was; the owner can undo it like any other."""
    begin(desk, desk.ann)
    flag = copy(desk, 3)
    opened = page(desk.colleague(), f"/flags/{flag.flag_id}")
    assert opened.texts(".history li")[0].startswith("Right · because Ann decided about further copies")
    assert "because Ann decided about further copies" in page(desk.ann, "/?state=right").texts("ol.queue .figures")[0]
    decide(desk.ann, desk.room.row("ferry-0").flag_id, "right")
    rows = page(desk.ann, "/?state=right&order=oldest").texts("ol.queue .figures")
    assert ["because Ann" in row for row in rows] == [False, True]
    path = f"/flags/{flag.flag_id}"
    (undo,) = [node.attributes["action"] for node in page(desk.ann, path).all(".decided form")]
    assert desk.ann.post(str(undo), page(desk.ann, path).form(str(undo))).status == 303
    assert desk.room.state("ferry-3") == "open"


def test_a_pair_of_sources_is_muted(desk: Office) -> None:
    """After a page that says what people called its flags lately; reason and note are those of wrong."""
    desk.served.database.write(lambda c: add_reason(c, "Mirror"))
    decide(desk.ann, desk.room.row("ferry-0").flag_id, "right")
    decide(desk.ann, desk.room.row("ferry-1").flag_id, "wrong")
    listed = page(desk.ann, "/sources")
    (href,) = [href for href in listed.hrefs("a") if href.startswith("/standing/mute")]
    assert page(desk.ann, f"/flags/{desk.room.row('ferry-2').flag_id}").link("Mute …") == href
    opened = page(desk.ann, href)
    assert "In the last week this pair had 3 flags. People called 1 of them right and 1 wrong." in opened.answer.shown
    assert "nobody looks at them" in opened.answer.shown
    assert opened.texts("#lasts option") == ["1 hour", "1 day", "1 week", "1 month"]
    assert opened.texts("#lasts option[selected]") == ["1 day"]
    said = followed(desk.ann, mute(desk.ann, reason="1", note="They send it by contract."))
    assert "The pair of sources is muted" in said
    assert page(desk.ann, "/standing").texts("tbody th") == [
        "Muted: post copies wire · Mirror · They send it by contract."
    ]
    flag = copy(desk, 9)
    assert flag.state == "wrong"
    assert copy(desk, 9, name="other", source="radio").state == "open"
    history = page(desk.ann, f"/flags/{flag.flag_id}").texts(".history li")[0]
    assert "because Ann muted this pair of sources" in history
    assert "will be released" in history
    assert history.endswith("MirrorThey send it by contract.")
    assert "muted until 25 Nov 2025, 16:00:00 UTC" in page(desk.ann, "/sources").answer.shown
    assert "muted until" in page(desk.ann, f"/flags/{flag.flag_id}").answer.shown
    again = page(desk.ann, href)
    assert again.all('form[action="/standing/mute"]') == []
    assert [node.attributes["action"] for node in again.all("main form")] == ["/standing/1/end"]
    # What it has decided is not counted as what people called its flags.
    assert "4 flags. People called 1 of them right and 1 wrong." in again.answer.shown
    why = "wrong until 2025-11-25T16:00:00.000Z: Mirror: They send it by contract."
    assert noted(desk, "standing.begin") == [("Ann", "post -> wire", why)]


def test_all_are_listed(desk: Office) -> None:
    """Those in force, the latest first, and those that have ended in the last 30 days; three pages lead there."""
    assert "No standing decision is in force." in page(desk.ann, "/standing").answer.shown
    begin(desk, desk.ann, lasts="3600")
    mute(desk.ann)
    copy(desk, 3)
    opened = page(desk.ann, "/standing")
    first, second = opened.texts("tbody tr")
    assert first.startswith("Muted: post copies wire Ann 24 Nov 2025, 16:00:00 UTC 25 Nov 2025, 16:00:00 UTC 0 Stop")
    assert second == (
        "All further copies are right: The ferry Ann 24 Nov 2025, 16:00:00 UTC 24 Nov 2025, 17:00:00 UTC 1 Stop"
    )
    assert opened.link("The ferry") == story_path(desk)
    desk.ann.post("/standing/2/end", opened.form("/standing/2/end"))
    desk.served.clock.pass_s(3_600)
    ended = page(desk.ann, "/standing")
    assert ended.texts("caption") == ["Ended in the last 30 days"]
    assert [row.split()[0] for row in ended.texts("tbody tr")] == ["All", "Muted:"]
    assert ended.all("main form") == []
    desk.served.clock.pass_s(31 * 86_400)
    browser = desk.served.in_session_of("Ann")
    assert page(browser, "/standing").all("tbody tr") == []
    for path in ("/stories", "/sources", "/me"):
        assert page(browser, path).link("All standing decisions") == "/standing"


def test_what_cannot_stand_is_refused(desk: Office) -> None:
    """With a sentence, and without any effect."""
    for lasts in ("0", "7776001", "999999999", "x", ""):
        check_refused(begin(desk, desk.ann, lasts=lasts), 400, "")
    check_refused(mute(desk.ann, lasts="7776000"), 400, "Choose from the list how long it lasts.")
    assert begin(desk, desk.ann, lasts="7776000").status == 303
    check_refused(begin(desk, desk.ann), 409, "There is already a standing decision about this")
    for pair in (("post", "nobody"), ("post", ""), ("", "wire")):
        query = urlencode({"source": pair[0], "original_source": pair[1]})
        check_refused(desk.ann.get(f"/standing/mute?{query}"), 400, "Only sources of flags can be muted.")
        form = {"source": pair[0], "original_source": pair[1], "lasts": "3600"}
        check_refused(desk.ann.send("/standing/mute", "/me", **form), 400, "Only sources of flags can be muted")
    check_refused(mute(desk.ann, reason="4711"), 400, "There is no such reason")
    desk.served.database.write(lambda c: add_reason(c, "Mirror"))
    desk.served.database.write(lambda c: retire_reason(c, reasons(c)[0].reason_id, 1))
    check_refused(mute(desk.ann, reason="1"), 409, "This reason was retired")
    assert desk.ann.send("/stories/4711/standing", "/me", lasts="3600").status == 404
    assert len(noted(desk, "standing.begin")) == 1


def test_an_account_that_is_disabled_decides_nothing_more(desk: Office) -> None:
    """The page of people says so, before and after."""
    begin(desk, desk.ann)
    wei = desk.served.signed_in("Wei", "admin")
    assert "its sessions and its standing decisions end" in page(wei, "/people").answer.shown
    said = followed(wei, wei.send("/people/1/disable", "/people"))
    assert "Its sessions and standing decisions have ended" in said
    assert copy(desk, 3).state == "open"


def admin(desk: Office) -> Browser:
    """The browser of an admin."""
    return desk.served.signed_in("Wei", "admin")


def test_copies_of_a_story_are_never_flagged_by_one_click(desk: Office, banks_path: Path) -> None:
    """The text of the original becomes an item of the only bank that allows; the page shows it, and how to undo it."""
    wei, path = admin(desk), story_path(desk)
    opened = page(wei, path)
    assert "There is no allow bank yet." in opened.answer.shown
    assert opened.link("Create one on the page Banks") == "/banks"
    bank_file(banks_path, bank("notices", "allow"))
    wei.get("/banks")
    form = page(wei, path).form(f"{path}/bank")
    said = followed(wei, wei.post(f"{path}/bank", form))
    assert "Text added to the bank notices." in said
    added = banks_in(banks_path).items["notices", item_id(TEXT)]
    story_id = desk.room.row("ferry-0").story_id
    assert (added.text, added.title, added.article, added.by) == (TEXT, "The ferry", "ferry", "Wei")
    assert added.note == f"Copies of story {story_id} are never flagged."
    item_page = f"/banks/notices/items/{item_id(TEXT)}"
    opened = page(wei, path)
    assert opened.link("The ferry") == item_page
    assert opened.all(f'form[action="{path}/bank"]') == []
    assert "Wei · 24 Nov 2025, 16:00:00 UTC" in opened.answer.shown
    assert [(who, what) for who, what, _ in noted(desk, "item.add")] == [("Wei", f"notices/{item_id(TEXT)}")]
    assert wei.post(f"{item_page}/disable", opened.form(f"{item_page}/disable")).status == 303
    assert not banks_in(banks_path).items["notices", item_id(TEXT)].enabled
    again = followed(wei, wei.post(f"{path}/bank", form))
    assert "The bank notices already has this text" in again
    # Anybody sees it, and an admin alone changes it.
    seen = page(desk.ann, path)
    assert seen.link("The ferry") == item_page
    assert seen.all(f'form[action="{item_page}/enable"]') == []
    check_refused(desk.ann.send(f"{path}/bank", path, bank="notices"), 403, "Only an admin can do this")


def test_one_of_several_banks_is_chosen(desk: Office, banks_path: Path) -> None:
    """Among those that allow."""
    bank_file(banks_path, bank("notices", "allow"), bank("agenda", "allow", enabled=False))
    wei, path = admin(desk), story_path(desk)
    wei.get("/banks")
    assert page(wei, path).texts("#bank option") == ["agenda · disabled", "notices"]
    assert wei.send(f"{path}/bank", path, bank="agenda").status == 303
    assert [key[0] for key in banks_in(banks_path).items] == ["agenda"]


def test_what_cannot_be_allowed_is_refused(desk: Office, banks_path: Path) -> None:
    """A bank that denies, or that is not there; a text that is too short, or that the store no longer has."""
    bank_file(banks_path, bank("notices", "allow"), item("notices", "other", "Another text."))
    wei, path = admin(desk), story_path(desk)
    wei.get("/banks")
    check_refused(wei.send(f"{path}/bank", path, bank="spam"), 409, "This is a deny bank. Nothing was added.")
    check_refused(wei.send(f"{path}/bank", path, bank="nobody"), 404, "There is no such bank")
    short = article("short", "Short", "A b c.")
    desk.room.flag(article("short-0", "Short", "A b c."), short)
    check_refused(wei.send(f"{story_path(desk, 'short')}/bank", path, bank="notices"), 400, "fewer than 6 letters")
    desk.room.flag(article("left-0", "Left", "x"), article("left", "Left", "x"), stored=False)
    check_refused(wei.send(f"{story_path(desk, 'left')}/bank", path, bank="notices"), 409, "The store no longer has")
    assert wei.send("/stories/4711/bank", path, bank="notices").status == 404
    assert list(banks_in(banks_path).items) == [("notices", "other")]


def test_a_console_without_banks_offers_none(tmp_path: Path) -> None:
    """Nor does it fail."""
    with office(tmp_path) as desk:
        desk.served.database.write(lambda c: people.set_role(c, 1, "admin"))
        copy(desk, 0)
        path = story_path(desk)
        assert "Never flag copies" not in page(desk.ann, path).answer.shown
        check_refused(desk.ann.send(f"{path}/bank", path, bank="notices"), 404, "Set banks.url")


def test_a_muted_pair_leads_to_the_page_that_stops_it(desk: Office) -> None:
    """The page of its flags and the page of sources link to it, and it belongs to the stories."""
    mute(desk.ann)
    for path in ("/sources", f"/flags/{desk.room.row('ferry-0').flag_id}"):
        (tag,) = page(desk.ann, path).texts("a.tag")
        assert page(desk.ann, path).link(tag) == "/standing"
    assert page(desk.ann, "/standing").texts(".top [aria-current]") == ["Stories"]


def test_a_source_that_copies_itself_is_said_to(desk: Office) -> None:
    """Where it is muted, and where the mute is listed."""
    desk.room.flag(article("own-1", "Own", "x", source="wire"), article("own-0", "Own", "x", source="wire"))
    asking = page(desk.ann, f"/standing/mute?{urlencode({'source': 'wire', 'original_source': 'wire'})}")
    assert "wire copies itself" in asking.answer.shown
    mute(desk.ann, "wire")
    assert "Muted: wire copies itself" in page(desk.ann, "/standing").answer.shown


def test_what_people_and_articles_write_is_text(desk: Office) -> None:
    """In notes, names of sources and titles."""
    for number, text in enumerate(HOSTILE.values()):
        odd = article(f"odd-{number}", text, "x", source=text)
        flag = desk.room.flag(odd, article(f"earlier-{number}", text, "x", source="wire"))
        assert mute(desk.ann, text, note=text).status == 303
        path = f"/stories/{flag.story_id}"
        assert desk.ann.send(f"{path}/standing", path, lasts="3600", note=text).status == 303
        for at in (path, f"/flags/{flag.flag_id}", "/standing"):
            check_no_markup(desk.ann.get(at))
        check_no_markup(desk.ann.get(f"/standing/mute?{urlencode({'source': text, 'original_source': 'wire'})}"))
        listed = page(desk.ann, "/standing").answer.text
        check_text(listed, text)
        for row in page(desk.ann, "/standing").all("main form"):
            desk.ann.post(str(row.attributes["action"]), {"token": desk.ann.get("/me").token})


def test_pages_are_there_in_chinese(desk: Office) -> None:
    """With what was just done."""
    desk.ann.send("/me/language", language="zh")
    assert "今后到达的副本会自动判定为正确" in followed(desk.ann, begin(desk, desk.ann))
    assert "静音" in followed(desk.ann, mute(desk.ann))
    assert "因为 Ann 对后续副本作了判定" in desk.ann.get(f"/flags/{copy(desk, 3).flag_id}").shown
    assert "持续判定已停止。" in followed(desk.ann, desk.ann.send("/standing/1/end"))
