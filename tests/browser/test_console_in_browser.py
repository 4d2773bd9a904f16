"""The console in Chromium: by click and by keyboard, with and without scripts, on a telephone, for a screen reader.

The articles, flags and banks are hard ones, made for these tests; ``test_whole_stacks.py`` goes through real ones.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from typing import Final
from urllib.parse import urlencode

import pytest
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select
from sqlalchemy import update

from consumer.config.sections.console import ConsoleSection
from consumer.console.intake.intake import Intake, IntakeParts
from consumer.console.pages import queue_pages
from consumer.fingerprint import BlockPlan
from consumer.judge.settings import JudgeSettings
from consumer.model.hooks import Hooks
from consumer.model.verdict import BankMention, Verdict
from consumer.reviews import discussion, floods, people
from consumer.reviews.database import Connection
from consumer.reviews.moderation import claims
from consumer.reviews.moderation.reasons import add_reason
from consumer.reviews.outbox import deliveries, webhooks
from consumer.reviews.repairs import merge, split
from consumer.reviews.tables import WEBHOOKS
from tests.browser.driving import (
    PHONE,
    axe,
    button,
    complaints,
    on_a_phone,
    picks,
    press,
    said,
    shown,
    wait_for,
    without_scripts,
)
from tests.examples import drawn
from tests.stored_texts import StoreOfTexts
from tests.unit.banks.test_known_texts import edited, written
from tests.unit.console.archives import Archive
from tests.unit.console.banks import bank, bank_file, item
from tests.unit.console.desks import Office, decide, office
from tests.unit.console.newsroom import BEGAN_MS, article
from tests.unit.console.reviewed import review, whole_figures
from tests.unit.reviews.webhooks_made import SECRET, add_webhook, happened, settings, tell

pytestmark = pytest.mark.servers

OWN: Final = "window.owned = (window.owned || 0) + 1"
HOSTILE: Final = (
    f'"\'></title></style></bdi></h2><script>{OWN}</script><img src=x onerror="{OWN}"><svg/onload={OWN}>'
    f'<a href="javascript:{OWN}">x</a><base href=//evil.example/>'
)
LOOKS: Final = drawn([*product(("en", "zh"), ("light", "dark"))], 4)
"""What two long tests look at, one of the four in each run."""
COPIES: Final = 4
LOST: Final = "z" * 64
"""An item that no bank has any longer."""
_WORD: Final = "a-label-that-does-not-end" * 2
NOTICE: Final = written(1, 100)
NOTICE_PATH: Final = f"/banks/{'x' * 64}/items/notice"
BANKS: Final = (
    bank("spam", note=HOSTILE, labels=(_WORD, "<b>")),
    bank("x" * 64, "allow", note="n" * 200),
    item("spam", "evil", HOSTILE, title=HOSTILE, note=HOSTILE, labels=(_WORD,), article=HOSTILE, by=HOSTILE[:200]),
    item("spam", "i" * 64, "长文本" * 2_000, lang="zh", until="2025-01-01T00:00:00.000Z"),
    item("spam", "arabic", "صوّت مجلس الميناء يوم الثلاثاء.", title="مجلس الميناء", lang="ar", enabled=False),
    item("x" * 64, "notice", NOTICE, title="مجلس"),
)
JUDGING: Final = JudgeSettings(plan=BlockPlan.named("4x16"), scheme_digest="")
LONG: Final = "The harbour council votes on a title that does not end, and on a_word_that_does_not_end" + "_either" * 30


@pytest.fixture
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """Flags of every kind: plain, Chinese, Arabic, hostile, without title, of a megabyte, without articles; and banks.

    Ann is an admin, and has all forms.
    """
    folder = tmp_path_factory.mktemp("office")
    banks = bank_file(folder / "banks.jsonl", *BANKS)
    archive = Archive(StoreOfTexts())
    names = (f"kept{HOSTILE}", f"copy{HOSTILE}", "long" * 60)
    archive.made.judge(dict.fromkeys(names, NOTICE), BEGAN_MS)
    archive.made.judge({"missed": edited(NOTICE, 14), f"evil{HOSTILE}": f"{HOSTILE} {'w' * 900}"}, BEGAN_MS)
    with office(folder, judging=JUDGING, banks=banks, comparable=archive) as opened:
        opened.served.database.write(lambda c: people.set_role(c, 1, "admin"))
        for reason in ("Timetable", "w" * 80, HOSTILE[:80]):
            opened.served.database.write(partial(add_reason, name=reason))
        fail_webhook(opened)
        opened.ann.get("/banks")
        fill(opened)
        archive.flag(opened.room, NOTICE, *names)
        yield opened


def fail_webhook(desk: Office) -> None:
    """Add a webhook of a long name and URL, with a former secret, which is off and misses events."""
    database, at_ms = desk.served.database, desk.served.clock()
    hook = add_webhook(database, settings(HOSTILE[:80], f"https://192.0.2.1/{'x' * 900}"), now_ms=at_ms)
    tell(database, happened("a"), now_ms=at_ms)

    def failed(connection: Connection) -> None:
        webhooks.rotate(connection, hook, SECRET, at_ms)
        (claim,) = deliveries.claim_due_deliveries(connection, hook, at_ms, 1, 1)
        why = f"status {HOSTILE}"
        deliveries.note_failed(connection, deliveries.Failure(claim, 500, why, at_ms), at_ms)
        deliveries.note_last(connection, hook, deliveries.LastAttempt(at_ms, 500, why, at_ms))
        webhooks.turn_off(connection, hook, "day", at_ms)
        connection.execute(update(WEBHOOKS).values(missed=4_711))

    database.write(failed)


def fill(desk: Office) -> None:
    """Add the flags; the first one in the queue is that of copy-0."""
    original = article("original", "Ferry landing", "The council voted on Tuesday. " * 20, source="wire",
                       keywords=("council", "ferry"))  # fmt: skip
    for n in range(COPIES):
        body = "The council voted on Friday. " + "The council voted on Tuesday. " * 19
        copy = article(f"copy-{n}", f"Ferry landing {n}", body, source="post", keywords=("ferry", "council"))
        desk.room.flag(copy, original, 0.76 + n / 100, minute=250 + n)
    arabic = ("مجلس الميناء يعيد بناء رصيف العبّارات", "صوّت مجلس الميناء يوم الثلاثاء.")
    megabyte = "Line by line. " * 70_000
    hostile = {"title": HOSTILE, "body": HOSTILE, "source": HOSTILE, "url": "javascript:window.owned=1"}
    pairs = [
        (
            article("zh-b", "重建码头", "港口委员会星期五决定。", lang="zh"),
            article("zh-a", "码头", "港口委员会星期二决定。"),
        ),
        (article("ar-b", *arabic, lang="ar"), article("ar-a", *arabic, lang="ar")),
        (article("untitled-b", "", "x"), article("untitled-a", " ", "y", source="")),
        (article("long-b", LONG, "x " * 9, source="s" * 90), article(f"long-a{'-a' * 90}", LONG, None)),
        (article("mega-b", "A megabyte", megabyte), article("mega-a", "A megabyte", "x" + megabyte)),
        (article(f"evil-b{HOSTILE}", **hostile), article(f"evil-a{HOSTILE}", **hostile)),
    ]
    for copy, earlier in pairs:
        desk.room.flag(copy, earlier, 0.95)
    desk.room.flag(article("left-b", "B", "x"), article("left-a", "A", "x"), 0.96, stored=False)
    desk.room.near_miss(article("near-b", "Nearly", "x y"), original, 0.97)
    repair(desk)
    story_id = desk.room.row("copy-0").story_id
    desk.room.database.write(lambda c: floods.note_floods(c, [story_id], BEGAN_MS, 600, COPIES))


def repair(desk: Office) -> None:
    """Split an article with a long title off, and merge another story into its own."""
    long_id, arabic = desk.room.row("long-b").flag_id, desk.room.row("ar-b")

    def repaired(connection: Connection) -> None:
        ann = people.person_named(connection, "Ann")
        assert ann is not None
        story_id = split.split(connection, long_id, ann, BEGAN_MS)
        merge.merge(connection, arabic.story_id, story_id, ann, BEGAN_MS)

    desk.room.database.write(repaired)


def enter(browser: Chrome, desk: Office, path: str = "/") -> None:
    """Open a page as Ann, who has signed in."""
    browser.get(f"{desk.served.url}/sign-in")
    for name, value in desk.ann.cookies.items():
        browser.add_cookie({"name": name, "value": value})
    browser.get(f"{desk.served.url}{path}")


def ordinary_pages(desk: Office) -> list[str]:
    """Every page that shows flags, with what is hard to show, and some others."""
    row = desk.room.row("copy-0")
    story = f"/stories/{row.story_id}"
    names = ("copy-0", "zh-b", "ar-b", "untitled-b", "long-b", "mega-b", f"evil-b{HOSTILE}", "left-b", "near-b")
    flags = [f"/flags/{desk.room.row(name).flag_id}" for name in names]
    lists = ["/", "/?source=post&order=newest", "/?source=nobody", f"/?q={'w' * 200}", "/?state=wrong", "/stories"]
    lists += ["/sources", "/me", "/thresholds", "/reasons", "/webhooks", "/webhooks/1", "/webhooks/1/remove"]
    lists += [f"/decisions?by={grouping}" for grouping in ("day", "source", "reason")]
    lists += ["/standing"]
    lists += [f"/standing/mute?{urlencode({'source': HOSTILE, 'original_source': HOSTILE})}"]
    lists += ["/banks", "/banks/spam?piece=i", f"/banks/{'x' * 64}", "/banks/spam/remove"]
    lists += [f"/banks/spam/items/{name}" for name in ("evil", "i" * 64, "arabic")]
    lists += ["/banks/spam/items/evil/matches", f"{NOTICE_PATH}/matches", f"{NOTICE_PATH}/release"]
    known = ("nobody", f"copy{HOSTILE}", f"evil{HOSTILE}", "long" * 60)
    lists += [f"/look-up?{urlencode({'id': name})}" for name in known]
    lists += [f"/flags/{desk.room.row(name).flag_id}/split" for name in ("copy-0", f"evil-b{HOSTILE}")]
    lists += [f"{story}/merge?{urlencode({'other': name})}" for name in (f"evil-a{HOSTILE}", "long-b")]
    lists.append(f"/stories/{desk.room.row('ar-b').story_id}")
    return [*lists, *flags, story, f"{story}/decide?decision=wrong", "/flags/4711"]


def test_times_are_those_of_the_reader(browser: Chrome, desk: Office) -> None:
    """As a clock in Shanghai shows them, in Chinese, on a phone."""
    desk.ann.send("/me/language", language="zh")
    with on_a_phone(browser), in_shanghai(browser):
        enter(browser, desk)
        check_times(browser)


@contextmanager
def in_shanghai(browser: Chrome) -> Iterator[None]:
    """In a time zone that is not that of the server."""
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Shanghai"})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def check_times(browser: Chrome) -> None:
    """See that a time is that of the reader, has its age by the server's clock, and grows older."""
    time = browser.find_element(By.CSS_SELECTOR, "ol.queue time")
    assert time.text == "2025年11月24日 23:10:00 GMT+8（50分钟前）"
    assert time.get_attribute("title") == "2025年11月24日 15:10:00 UTC"
    later = "const now = Date.now; Date.now = () => now() + 20 * 60000; document.dispatchEvent(new Event(arguments[0]))"
    browser.execute_script(later, "visibilitychange")
    assert time.text.endswith("（1小时前）")


def test_the_whole_way_by_single_keys(browser: Chrome, desk: Office) -> None:
    """J chooses, Enter opens, W, U and S decide, N goes on, / searches, ? tells of all; a note does not."""
    enter(browser, desk)
    press(browser, "j", "j", "k", Keys.ENTER)
    wait_for(browser, lambda: shown(browser) == "Ferry landing 0")
    browser.find_element(By.ID, "why").send_keys("wsr")
    ActionChains(browser).key_down(Keys.SHIFT).send_keys(Keys.TAB).perform()
    press(browser, "t", Keys.TAB)
    ActionChains(browser).key_up(Keys.SHIFT).perform()
    press(browser, "w")
    wait_for(browser, lambda: desk.room.state("copy-0") == "wrong" and shown(browser) == "Ferry landing 1")
    press(browser, "u")
    wait_for(browser, lambda: desk.room.state("copy-0") == "open" and shown(browser) == "Ferry landing 0")
    assert "Timetable\nwsr" in browser.find_element(By.CSS_SELECTOR, ".history").text
    press(browser, "w")
    wait_for(browser, lambda: desk.room.state("copy-0") == "wrong" and shown(browser) == "Ferry landing 1")
    press(browser, "s")
    wait_for(browser, lambda: desk.room.state("copy-1") == "skipped" and shown(browser) == "Ferry landing 2")
    press(browser, "n")
    wait_for(browser, lambda: shown(browser) == "Ferry landing 3")
    check_given_back(browser, desk)
    press(browser, "?")
    assert browser.find_element(By.CSS_SELECTOR, "#keys dl").is_displayed()
    press(browser, "q")
    wait_for(browser, lambda: browser.find_element(By.CSS_SELECTOR, "ol.queue"))
    press(browser, "/", "copy-3", Keys.ENTER)
    wait_for(
        browser, lambda: [a.text for a in browser.find_elements(By.CSS_SELECTOR, "ol.queue h2")] == ["Ferry landing 3"]
    )


def test_who_has_a_flag_open_is_said_within_its_row(browser: Chrome, desk: Office) -> None:
    """Between two rows it would belong to neither."""
    flag_id = desk.room.row("copy-1").flag_id
    desk.colleague("Cy").get(f"/flags/{flag_id}")
    enter(browser, desk)
    tag = browser.find_element(By.CSS_SELECTOR, ".open-by")
    row = tag.find_element(By.XPATH, "ancestor::li")
    assert row.find_elements(By.ID, f"flag-{flag_id}")
    assert row.rect["y"] < tag.rect["y"]
    assert tag.rect["y"] + tag.rect["height"] < row.rect["y"] + row.rect["height"]
    overlap = (
        "const text = document.createRange(); text.selectNodeContents(arguments[0]); "
        "return arguments[1].getBoundingClientRect().bottom - text.getBoundingClientRect().top"
    )
    # The line of a title begins some pixels above its letters.
    assert browser.execute_script(overlap, row.find_element(By.CSS_SELECTOR, "h2 bdi"), tag) < 5


def check_given_back(browser: Chrome, desk: Office) -> None:
    """See that nobody has a flag any more that was left through the navigation, and that coming back opens it again."""
    flag_id = desk.room.row("copy-3").flag_id

    def names() -> tuple[str, ...]:
        others = partial(claims.open_elsewhere, flag_ids=[flag_id], person_id=0, now_ms=desk.served.clock())
        return desk.served.database.write(others).get(flag_id, ())

    assert names() == ("Ann",)
    browser.find_element(By.CSS_SELECTOR, 'nav a[href="/stories"]').click()
    wait_for(browser, lambda: names() == ())
    browser.back()
    wait_for(browser, lambda: names() == ("Ann",))
    page, kept = browser.current_url, browser.current_window_handle
    browser.find_element(By.CSS_SELECTOR, 'nav a[href="/stories"]').click()
    wait_for(browser, lambda: names() == ())
    browser.switch_to.new_window("tab")
    browser.get(page)
    wait_for(browser, lambda: names() == ("Ann",))
    browser.close()
    browser.switch_to.window(kept)
    wait_for(browser, lambda: names() == ())
    browser.get(page)


def test_a_chosen_reason_gives_the_keys_back(browser: Chrome, desk: Office) -> None:
    """Otherwise W would choose the next reason that begins with it instead of deciding."""
    enter(browser, desk, f"/flags/{desk.room.row('copy-0').flag_id}")
    reasons = browser.find_element(By.ID, "reason")
    reasons.click()
    press(browser, Keys.DOWN, Keys.ENTER)
    wait_for(browser, lambda: browser.switch_to.active_element != reasons)
    assert Select(reasons).first_selected_option.text == "Timetable"
    press(browser, "w")
    wait_for(browser, lambda: desk.room.state("copy-0") == "wrong")
    assert reason_of(desk, "copy-0") == "Timetable"


def reason_of(desk: Office, name: str) -> str:
    """The reason of the latest decision about a flag."""
    with desk.served.database.read_connection() as connection:
        entries = discussion.history(connection, desk.room.row(name).flag_id)
    return next(entry.reason for entry in reversed(entries) if entry.reason)


def test_single_keys_can_be_turned_off(browser: Chrome, desk: Office) -> None:
    """Somebody who dictates, or whose hand slips, decides nothing by accident; the browser remembers it."""
    enter(browser, desk, f"/flags/{desk.room.row('copy-0').flag_id}")
    try:
        browser.find_element(By.CSS_SELECTOR, "#keys summary").click()
        browser.find_element(By.ID, "keys-on").click()
        browser.refresh()
        press(browser, "w")
        assert browser.find_elements(By.CSS_SELECTOR, ".decide kbd") == []
        assert desk.room.state("copy-0") == "open"
    finally:
        browser.execute_script("localStorage.clear()")


def test_many_at_once(browser: Chrome, desk: Office) -> None:
    """From a flood to its story, to a page that asks, and back with a line that offers to undo it."""
    enter(browser, desk, "/stories")
    browser.find_element(By.CSS_SELECTOR, ".floods a").click()
    button(browser, "decision", "wrong").click()
    wait_for(browser, lambda: browser.find_element(By.CSS_SELECTOR, ".confirm button"))
    browser.find_element(By.CSS_SELECTOR, ".confirm button").click()
    wait_for(browser, lambda: f"{COPIES} flags decided: wrong." in said(browser))
    assert [desk.room.state(f"copy-{n}") for n in range(COPIES)] == ["wrong"] * COPIES
    browser.find_element(By.CSS_SELECTOR, ".decided button").click()
    wait_for(browser, lambda: "Undone" in said(browser))
    assert [desk.room.state(f"copy-{n}") for n in range(COPIES)] == ["open"] * COPIES
    select_and_decide(browser, desk)
    assert complaints(browser) == []


def select_and_decide(browser: Chrome, desk: Office) -> None:
    """Select by key, by a range and all; nothing is decided while nothing is selected; one key takes all back."""
    desk.served.clock.pass_s(1)
    browser.get(f"{desk.served.url}/?source=post")
    press(browser, "j", "w", "x", "j", "x", "x")
    assert [pick.is_selected() for pick in picks(browser)] == [True, False, False, False]
    last = picks(browser)[2]
    ActionChains(browser).key_down(Keys.SHIFT).click(last).key_up(Keys.SHIFT).perform()
    assert "Selected: 3" in browser.find_element(By.ID, "selected").text
    press(browser, "w")
    wait_for(browser, lambda: "3 flags decided: wrong." in said(browser))
    assert [desk.room.state(f"copy-{n}") for n in range(COPIES)] == ["wrong"] * 3 + ["open"]
    press(browser, "u")
    wait_for(browser, lambda: "Undone" in said(browser))
    desk.served.clock.pass_s(1)
    browser.find_element(By.ID, "select-all").click()
    press(browser, "s")
    wait_for(browser, lambda: "4 flags skipped." in said(browser))
    assert [desk.room.state(f"copy-{n}") for n in range(COPIES)] == ["skipped"] * COPIES


def test_a_story_is_decided_for_what_still_comes(browser: Chrome, tmp_path_factory: pytest.TempPathFactory) -> None:
    """With thirty copies, by one click; the next three follow without any, and the page counts them, on a phone too."""
    with office(tmp_path_factory.mktemp("office")) as desk:
        events = drawn_wave(desk, 33)
        intake = intake_of(desk)
        intake.take_in(events[:30], intake.proceed)
        path = f"/stories/{desk.room.row('wave-0').story_id}"
        enter(browser, desk, path)
        Select(browser.find_element(By.ID, "lasts")).select_by_value("604800")
        browser.find_element(By.ID, "note").send_keys("one agency")
        browser.find_element(By.CSS_SELECTOR, f'form[action="{path}/standing"] button').click()
        wait_for(browser, lambda: "0 copies so far." in browser.find_element(By.TAG_NAME, "main").text)
        intake.take_in(events[30:], intake.proceed)
        assert [desk.room.state(f"wave-{number}") for number in (29, 30, 31, 32)] == ["open", *["right"] * 3]
        browser.refresh()
        assert "3 copies so far." in browser.find_element(By.TAG_NAME, "main").text
        for scheme in ("light", "dark"):
            with on_a_phone(browser, scheme=scheme):
                browser.refresh()
                assert browser.execute_script("return document.documentElement.scrollWidth") <= PHONE["width"]
                assert axe(browser) == []
        browser.get(f"{desk.served.url}/?state=right")
        assert browser.find_element(By.TAG_NAME, "main").text.count("because Ann decided about further copies") == 3
        browser.get(f"{desk.served.url}{path}")
        browser.find_element(By.CSS_SELECTOR, 'form[action="/standing/1/end"] button').click()
        wait_for(browser, lambda: "3 of its decisions were taken back" in browser.find_element(By.ID, "main").text)
        assert desk.room.state("wave-32") == "open"


def drawn_wave(desk: Office, copies: int) -> list[Verdict]:
    """The events of copies of one article, whose texts the store has."""
    original = article("wave", "The ferry landing", "The council voted.", source="wire")
    views = [article(f"wave-{n}", f"Ferry {n}", "The council voted.", source="post") for n in range(copies)]
    desk.room.hold(original, *views)
    return [desk.room.event(view, original, minute=number) for number, view in enumerate(views)]


def intake_of(desk: Office) -> Intake:
    """The intake of a console."""
    parts = IntakeParts(desk.served.database, ConsoleSection(), desk.served.clock, Hooks(), lambda: None)
    return Intake(parts, threading.Event())


def test_an_open_queue_learns_what_changed_and_moves_nothing(
    browser: Chrome, desk: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that others decided are marked, new flags are announced, and the end of a session is."""
    monkeypatch.setattr(queue_pages, "CHANGES_EVERY_MS", 100)
    with on_a_phone(browser):
        enter(browser, desk)
        before = places(browser)
        assert browser.title == "(14) Queue · dupwatch"
        pick = picks(browser)[2]
        pick.click()
        decide(desk.colleague(), desk.room.row("copy-1").flag_id, "wrong")
        desk.room.flag(article("new", "Just in", "x y"), article("wire-1", "First", "x y"), 0.99, minute=299)
        news = browser.find_element(By.CSS_SELECTOR, ".news")
        wait_for(browser, lambda: news.text == "1 new flag: show")
        wait_for(browser, lambda: browser.find_element(By.CSS_SELECTOR, ".settled").text.split() == ["wrong", "Bob"])
        assert places(browser) == before
        assert pick.is_selected()
        assert browser.title == "(14) Queue · dupwatch"
        assert axe(browser) == []
        check_that_nothing_is_asked_unseen(browser)
        news.find_element(By.CSS_SELECTOR, "a").click()
        wait_for(browser, lambda: browser.find_element(By.CSS_SELECTOR, "ol.queue h2").text == "Just in")
        desk.ann.send("/sign-out")
        news = browser.find_element(By.CSS_SELECTOR, ".news")
        wait_for(browser, lambda: news.text == "Your session has ended. Reload the page to sign in.")
    assert complaints(browser) == []


def check_that_nothing_is_asked_unseen(browser: Chrome) -> None:
    """See that a hidden page asks nothing for some rounds, and goes on once it is seen again."""
    script = """
        const [done] = arguments, ask = window.fetch;
        let asked = 0;
        Object.defineProperty(document, "hidden", { value: true, configurable: true });
        window.fetch = (...request) => { asked += 1; return ask(...request); };
        setTimeout(() => {
          const unseen = asked;
          delete document.hidden;
          document.dispatchEvent(new Event("visibilitychange"));
          const seen = setInterval(() => {
            if (asked === unseen) return;
            clearInterval(seen);
            window.fetch = ask;
            done(unseen);
          }, 20);
        }, 400);
    """
    assert browser.execute_async_script(script) == 0


def places(browser: Chrome) -> list[float]:
    """Where each row of a list begins and ends on the page."""
    script = "return [...document.querySelectorAll('ol.queue li')].flatMap((row) => [row.offsetTop, row.offsetHeight])"
    found: list[float] = browser.execute_script(script)
    return found


@pytest.mark.parametrize(("language", "scheme"), LOOKS)
def test_what_repeats_a_retracted_article_or_an_item_is_decided_on_a_phone(
    browser: Chrome, desk: Office, language: str, scheme: str
) -> None:
    """Without scripts and sideways scrolling, with hostile titles as text; *wrong* leads to the item and its page."""
    desk.ann.send("/me/language", language=language)
    room = desk.room
    gone = article(f"gone{HOSTILE}", HOSTILE, HOSTILE)
    again = room.repeat_of_ended(article(f"again{HOSTILE}", HOSTILE, f"{HOSTILE} {'w' * 900}"), gone)
    items = [BankMention(bank="spam", item=name, action="deny", form="part", similarity=0.9) for name in ("evil", LOST)]
    match = room.bank_match(article(f"match{HOSTILE}", HOSTILE, HOSTILE), *items)
    enter(browser, desk)
    with on_a_phone(browser, scheme=scheme), without_scripts(browser):
        for flag, kind, buttons in ((again, "ended_before", 1), (match, "bank_match", 2)):
            paths = [f"/?kind={kind}", f"/flags/{flag.flag_id}", f"/flags/{flag.flag_id}?item=spam/{LOST}"]
            for path in paths:
                browser.get(f"{desk.served.url}{path}")
                size = browser.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
                assert size["width"] <= 360, path
            browser.get(f"{desk.served.url}/?kind={kind}")
            browser.find_element(By.CSS_SELECTOR, "ol.queue a").click()
            button(browser, "decision", "wrong").click()
            wait_for(browser, lambda: browser.find_elements(By.CSS_SELECTOR, ".decided a"))
            assert len(browser.find_elements(By.CSS_SELECTOR, ".decided a")) == buttons
        assert (room.state(again.article_id), room.state(match.article_id)) == ("wrong", "wrong")
        browser.find_elements(By.CSS_SELECTOR, ".decided a")[1].click()
        wait_for(browser, lambda: browser.current_url.endswith(f"/flags/{match.flag_id}#item"))
        browser.find_element(By.CSS_SELECTOR, "#item .about a").click()
        wait_for(browser, lambda: browser.current_url.endswith("/banks/spam/items/evil"))
    browser.get(f"{desk.served.url}/flags/{match.flag_id}")
    assert browser.execute_script("return window.owned") is None


def test_a_missed_copy_is_looked_up_and_reported(browser: Chrome, desk: Office) -> None:
    """A text is tried, an article looked up, its copy reported, and that undone: on a phone, and without scripts."""
    enter(browser, desk)
    found = {}

    def looked_at(name: str) -> None:
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 360, name
        if violations := axe(browser):
            found[name] = violations

    def sent(selector: str, arrived: str) -> None:
        browser.find_element(By.CSS_SELECTOR, selector).click()
        wait_for(browser, lambda: browser.find_element(By.CSS_SELECTOR, arrived))

    with on_a_phone(browser):
        browser.get(f"{desk.served.url}/look-up/text")
        browser.find_element(By.ID, "text").send_keys(edited(NOTICE, 14))
        sent(".stacked button", "#outcome")
        assert "would be flagged" in browser.find_element(By.ID, "outcome").text
        looked_at("tried")
        with without_scripts(browser):
            browser.get(f"{desk.served.url}/look-up?id=missed")
            sent('a[href^="/look-up/report?"]', "#other")
            browser.find_element(By.ID, "other").send_keys(f"kept{HOSTILE}")
            sent(".stacked button", 'form[action="/reports"]')
        assert browser.find_elements(By.CSS_SELECTOR, ".side ins")
        looked_at("compared")
        sent('form[action="/reports"] button', ".decided button")
        assert "Reported as a missed copy by Ann" in said(browser)
        looked_at("reported")
        press(browser, "u")
        wait_for(browser, lambda: "Undone" in said(browser))
        browser.get(f"{desk.served.url}/look-up/report")
        looked_at("form")
    assert found == {}, json.dumps(found, indent=1)
    assert complaints(browser) == []


def test_a_story_prefers_the_source_of_highest_rank(browser: Chrome, desk: Office) -> None:
    """An admin ranks a source by hand; its copy stands for the story once it joins, and until its rank is removed."""
    story = f"{desk.served.url}/stories/{desk.room.row('copy-0').story_id}"
    enter(browser, desk, "/sources")

    def preferred() -> str:
        browser.get(story)
        return browser.find_element(By.CSS_SELECTOR, ".preferred").text

    browser.find_element(By.ID, "source").send_keys("xinhua")
    browser.find_element(By.CSS_SELECTOR, 'form[action="/sources/ranks"] button').click()
    wait_for(browser, lambda: "Rank set." in browser.find_element(By.CSS_SELECTOR, ".said").text)
    assert browser.find_element(By.ID, "ranked").text.split()[:5] == ["10", "xinhua", "set", "by", "Ann,"]
    assert preferred() == "Preferred: the original · wire · also in 1 other source"
    original = article("original", "Ferry landing", "The council voted on Tuesday.", source="wire")
    desk.room.flag(article("official", "From the agency", "The council voted.", source="xinhua"), original, minute=260)
    assert preferred() == "Preferred: From the agency · xinhua · also in 2 other sources"
    browser.find_element(By.CSS_SELECTOR, ".preferred a").click()
    wait_for(browser, lambda: "From the agency" in shown(browser))
    browser.get(f"{desk.served.url}/sources")
    browser.find_element(By.CSS_SELECTOR, "#ranked button[value=remove]").click()
    wait_for(browser, lambda: "Rank removed." in browser.find_element(By.CSS_SELECTOR, ".said").text)
    assert preferred() == "Preferred: the original · wire · also in 2 other sources"
    assert complaints(browser) == []


def test_the_time_to_undo_runs_out_before_ones_eyes(browser: Chrome, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The button counts the seconds, and in the end says that it is final."""
    with office(tmp_path_factory.mktemp("soon"), undo_s=8) as desk:
        fill(desk)
        enter(browser, desk)
        browser.find_element(By.CSS_SELECTOR, "ol.queue a").click()
        button(browser, "decision", "right").click()
        wait_for(browser, lambda: " s" in browser.find_element(By.CSS_SELECTOR, ".decided button").text)
        wait_for(browser, lambda: "Final now" in said(browser))
        assert browser.find_elements(By.CSS_SELECTOR, ".decided button") == []


def test_names_of_rows_stay_in_sight_on_a_phone(browser: Chrome, desk: Office) -> None:
    """The table of many sources scrolls sideways by itself, and its first column stays."""
    for n in range(10):
        original = article(f"of-{n}", "A", "x", source="a" if n % 2 else "b")
        desk.room.flag(article(f"from-{n}", "B", "x", source=f"ab{n}"), original, minute=250)
        desk.room.flag(article(f"again-{n}", "B", "x", source="a"), article(f"from-{n}", "B", "x"), minute=250,
                       original_source=f"ab{n}")  # fmt: skip
    with on_a_phone(browser):
        enter(browser, desk, "/sources")
        scrolled = (
            "const s = document.querySelector('.sheet'), name = s.querySelector('tbody th');"
            "const at = () => name.getBoundingClientRect().left, before = at(); s.scrollLeft = 100;"
            "return [s.scrollWidth > s.clientWidth, s.scrollLeft, at() - before]"
        )
        assert browser.execute_script(scrolled) == [True, 100, 0]


def test_a_flag_is_read_on_a_phone(browser: Chrome, desk: Office) -> None:
    """The bar of the decision leaves room for the texts, leads from difference to difference, and has no keys."""
    enter(browser, desk)
    with on_a_phone(browser):
        browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
        try:
            for language, name in product(("en", "zh"), ("copy-0", "near-b")):
                desk.ann.send("/me/language", language=language)
                browser.get(f"{desk.served.url}/flags/{desk.room.row(name).flag_id}")
                assert height(browser, ".decide") <= 100
                assert height(browser, ".top nav") <= 45
                assert browser.execute_script("return document.querySelector('.top nav a').offsetTop") < 60
                assert not any(each.is_displayed() for each in browser.find_elements(By.CSS_SELECTOR, "kbd, #keys"))
        finally:
            browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
        browser.get(f"{desk.served.url}/flags/{desk.room.row('copy-0').flag_id}")
        link = browser.find_element(By.CSS_SELECTOR, "[data-next-difference]")
        for expected in ("Friday", "Tuesday", "Friday"):
            link.click()
            assert browser.switch_to.active_element.text == expected
            assert seen(browser, browser.switch_to.active_element)
        press(browser, "d")
        assert browser.switch_to.active_element.text == "Tuesday"
        with without_scripts(browser):
            browser.refresh()
            browser.find_element(By.CSS_SELECTOR, "[data-next-difference]").click()
            wait_for(browser, lambda: seen(browser, browser.find_element(By.ID, "difference")))
        for path, section in (("/audit", "/audit"), ("/banks/spam", "/banks"), ("/look-up/report", "/look-up")):
            browser.get(f"{desk.served.url}{path}")
            here = browser.find_element(By.CSS_SELECTOR, ".top nav [aria-current]")
            assert (here.get_dom_attribute("href"), seen(browser, here)) == (section, True)
        browser.get(f"{desk.served.url}/")
        picks(browser)[0].click()
        assert height(browser, ".decide") <= 100


def height(browser: Chrome, selector: str) -> float:
    """How high an element is."""
    return float(browser.find_element(By.CSS_SELECTOR, selector).rect["height"])


def seen(browser: Chrome, element: WebElement) -> bool:
    """Whether an element is in view, with nothing above it."""
    script = (
        "const box = arguments[0].getBoundingClientRect();"
        "return arguments[0].contains(document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2))"
    )
    return bool(browser.execute_script(script, element))


@pytest.mark.parametrize(("language", "scheme"), LOOKS)
def test_every_page_can_be_read_by_all(browser: Chrome, desk: Office, language: str, scheme: str) -> None:
    """On a phone, page by page: hostile articles are text, nothing scrolls sideways, and axe finds nothing.

    Nothing of an article runs or is loaded. axe knows WCAG 2.1 A and AA and good practice: names, roles, contrast,
    order of headings, language. Each run looks at half of the pages.
    """
    desk.ann.send("/me/language", language=language)
    enter(browser, desk)
    found = {}
    unwanted = "return document.querySelectorAll('main script, img, iframe, base, object, embed').length"
    with on_a_phone(browser, scheme=scheme):
        for path in drawn([*ordinary_pages(desk), "decided"], 2):
            if path == "decided":
                browser.get(f"{desk.served.url}/")
                browser.find_element(By.CSS_SELECTOR, "ol.queue a").click()
                button(browser, "decision", "wrong").click()
                wait_for(browser, lambda: said(browser))
            else:
                browser.get(f"{desk.served.url}{path}")
            assert browser.execute_script("return window.owned") is None, path
            assert browser.execute_script(unwanted) == 0, path
            assert browser.execute_script("return document.documentElement.scrollWidth") <= PHONE["width"], path
            if violations := axe(browser):
                found[path] = violations
    assert found == {}, json.dumps(found, indent=1)
    assert complaints(browser) == []


@pytest.mark.parametrize(("language", "scheme"), LOOKS)
def test_what_reviews_teach_can_be_read_by_all(browser: Chrome, desk: Office, language: str, scheme: str) -> None:
    """With and without recall, of all sources and of one with a hostile name: for a screen reader, and on a phone."""
    desk.ann.send("/me/language", language=language)
    enter(browser, desk)
    found = {}
    review(desk, source="press")
    for source in ("", HOSTILE):
        if source:
            review(desk, 0.72, near_misses=80, source=HOSTILE)
        whole_figures(desk)
        paths = ["/thresholds", "/thresholds?threshold=0.9&every=1"]
        paths += [f"/thresholds?{urlencode({'source': source})}"] if source else []
        with on_a_phone(browser, scheme=scheme):
            for path in paths:
                browser.get(f"{desk.served.url}{path}")
                assert browser.find_elements(By.CSS_SELECTOR, ".curve polyline.precision"), path
                assert len(browser.find_elements(By.CSS_SELECTOR, ".curve polyline.recall")) == bool(source)
                assert browser.execute_script("return document.documentElement.scrollWidth") <= 360, path
                assert browser.execute_script("return window.owned") is None
                violations = axe(browser)
                if violations:
                    found[source, path] = violations
    assert found == {}, found
    assert complaints(browser) == []


def test_another_threshold_is_chosen_without_scripts(browser: Chrome, desk: Office) -> None:
    """And the page says what it would change, and the setting for it."""
    review(desk, near_misses=80)
    whole_figures(desk)
    enter(browser, desk, "/thresholds")
    with without_scripts(browser):
        browser.get(f"{desk.served.url}/thresholds")
        Select(browser.find_element(By.ID, "threshold")).select_by_visible_text("0.70")
        browser.find_element(By.CSS_SELECTOR, ".tools button").click()
        wait_for(browser, lambda: "similarity_min = 0.7" in browser.find_element(By.CSS_SELECTOR, "pre").text)
