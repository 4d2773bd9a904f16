"""The way of a moderator through a console: from the flags that arrive to decisions and a report.

It is the same whatever the console stands on, and however the moderator goes: see ``Manner``.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from tests.browser.driving import axe, complaints, on_a_phone, press, tab_to, wait_for, without_scripts
from tests.cli.command import text
from tests.written_prose import prose

Language = Literal["en", "zh"]
PERSON: Final = "Ann"
REASON: Final = "Timetable"
AT_ONCE: Final = 20


class Stack(NamedTuple):
    """A running console whose queue is empty, the password of Ann, and what has articles judged.

    The console has one reason to choose from: ``REASON``.
    """

    url: str
    password: str
    judge: Callable[[Sequence[dict[str, str]]], None]


class Manner(NamedTuple):
    """How somebody goes: with which language, screen and settings of the browser, and with which hand."""

    language: Language
    is_narrow: bool
    has_scripts: bool
    has_pointer: bool

    def __str__(self) -> str:
        width = "360px" if self.is_narrow else "1280px"
        scripts = "scripts" if self.has_scripts else "no-scripts"
        return f"{self.language}-{width}-{scripts}-{'pointer' if self.has_pointer else 'keyboard'}"


class Words(NamedTuple):
    """What a moderator searches for, what the articles differ in, and what pages say."""

    sought: str
    earlier: str
    later: str
    signed_in: str
    wrong: str
    undone: str
    many_right: str
    reported: str


WORDS: Final = MappingProxyType(
    {
        "en": Words(
            sought="lighthouse",
            earlier="Tuesday",
            later="Friday",
            signed_in="Queue",
            wrong="Decided: wrong.",
            undone="Undone: it is open again.",
            many_right=f"{AT_ONCE} flags decided: right.",
            reported=f"Reported as a missed copy by {PERSON}",
        ),
        "zh": Words(
            sought="灯塔",
            earlier="二",
            later="五",
            signed_in="队列",
            wrong="已判定：误判。",
            undone="已撤销，重新回到待处理。",
            many_right=f"已判定 {AT_ONCE} 个标记：正确",
            reported=f"由 {PERSON} 于",
        ),
    }
)
_OPENING: Final = {"en": ("The lighthouse opens on Tuesday. ", "The lighthouse opens on Friday. "),
                   "zh": ("灯塔星期二开放。", "灯塔星期五开放。")}  # fmt: skip


def articles(language: Language) -> list[dict[str, str]]:
    """Return a copy in which one word is another, twenty exact copies, and a pair that is not near enough."""
    first, second = ("".join([opening, *prose(language, "island", 500)]) for opening in _OPENING[language])
    kitchen = "".join(prose(language, "kitchen", 500))
    bodies = {"first": first, "copy": second, "recipe": kitchen}
    bodies |= {f"recipe-{number}": kitchen for number in range(AT_ONCE)}
    bodies |= {"known": text(1, 60), "missed": f"{text(1, 30)} {text(2, 30)}"}
    return [
        {"id": name, "title": name.capitalize(), "body": body, "source": "wire", "lang": language}
        for name, body in bodies.items()
    ]


def walk(browser: Chrome, stack: Stack, manner: Manner) -> None:
    """Sign in, have articles judged, decide, undo, decide again, decide about twenty, repair a story, report a copy.

    Fails where a step has not the effect that the page should show, where the browser complains, and where one of the
    pages of each step is wider than the screen or axe-core finds anything on it. That takes long;
    ``test_console_in_browser.py`` does it with all pages.
    """
    with _going(browser, manner):
        moderator = _Moderator(browser, stack.url, manner)
        moderator.sign_in(stack.password)
        stack.judge(articles(manner.language))
        moderator.find_the_flag()
        moderator.decide_undo_and_decide_again()
        moderator.decide_about_many()
        moderator.split_a_story_and_merge_it_again()
        moderator.report_a_missed_copy()
        moderator.check_the_end()
    complained = complaints(browser)
    assert complained == [], complained


@contextmanager
def _going(browser: Chrome, manner: Manner) -> Iterator[None]:
    """Set up the browser, and undo that afterwards."""
    agent = browser.execute_script("return navigator.userAgent")
    asks = {"userAgent": agent, "acceptLanguage": manner.language}
    browser.delete_all_cookies()
    browser.execute_cdp_cmd("Emulation.setUserAgentOverride", asks)
    try:
        with ExitStack() as settings:
            if manner.is_narrow:
                settings.enter_context(on_a_phone(browser))
            if not manner.has_scripts:
                settings.enter_context(without_scripts(browser))
            yield
    finally:
        browser.execute_cdp_cmd("Emulation.setUserAgentOverride", asks | {"acceptLanguage": "en"})
        # An open queue would go on asking a console that has ended, and complain in the next test.
        browser.get("about:blank")


@dataclass(frozen=True, slots=True)
class _Moderator:
    """Ann, who looks closely at some of the pages that she comes to."""

    browser: Chrome
    url: str
    manner: Manner

    def sign_in(self, password: str) -> None:
        """Give name and password."""
        self.browser.get(f"{self.url}/")
        self._look()
        self._write("#name", PERSON)
        self._write("#password", password, Keys.ENTER)
        self._wait_for_text("h1", self._words.signed_in)

    def find_the_flag(self) -> None:
        """Reload the queue until all flags are there, and then search until their words are indexed."""
        self._reload_until(lambda: self._count("open") == AT_ONCE + 1)
        if self._has_keys:
            press(self.browser, "/")
            press(self.browser, self._words.sought, Keys.ENTER)
        else:
            self._write("#q", self._words.sought, Keys.ENTER)
        wait_for(self.browser, lambda: "q=" in self.browser.current_url)
        self._reload_until(lambda: len(self._all("ol.queue > li")) == 1)
        self._look()
        if self._has_keys:
            press(self.browser, "j", Keys.ENTER)
        else:
            self._use("ol.queue h2 a")
        self._wait_for_text(".side h2", "Copy")
        assert self._words.later in self._one(".side ins").text
        assert self._words.earlier in self._one(".side del").text

    def decide_undo_and_decide_again(self) -> None:
        """Each time with a reason, which the history of the flag keeps."""
        self._decide_wrong()
        self._use(".decided button", key="u")
        self._wait_for_text(".decided", self._words.undone)
        self._wait_for_text(".history .reason", REASON)
        self._look()
        self._decide_wrong()

    def decide_about_many(self) -> None:
        """Select all flags that are left, and decide about them together."""
        self.browser.get(f"{self.url}/")
        assert not self._one("#selection button[value=right]").is_displayed()
        self._select_all()
        assert len(self._all(".pick:checked")) == AT_ONCE
        self._look()
        self._use("#selection button[value=right]", key="r")
        self._wait_for_text(".decided", self._words.many_right)

    def split_a_story_and_merge_it_again(self) -> None:
        """One of the twenty begins a story of its own, which then becomes part of the first one again."""
        self.browser.get(f"{self.url}/stories")
        self._use("#largest ~ ol li:first-child [data-item]")
        self._use("ol.queue li:first-child a[href$='/split']")
        self._look()
        self._use(".confirm form button")
        wait_for(self.browser, lambda: self._one(".split-off"))
        assert len(self._all("ol.queue > li")) == 1
        self._look()
        self._write("#other", "recipe", Keys.ENTER)
        wait_for(self.browser, lambda: self._one("input[name=into]"))
        self._look()
        self._use(".confirm form button")
        wait_for(self.browser, lambda: self._one(".merged"))
        assert str(AT_ONCE) in self._one(".measures b").text
        self._look()

    def report_a_missed_copy(self) -> None:
        """From the page of the article, by the id of the other one."""
        self._use('.top nav a[href="/look-up"]')
        self._write("#id", "missed", Keys.ENTER)
        wait_for(self.browser, lambda: self._one("#verdict"))
        self._use('a[href^="/look-up/report?"]')
        self._write("#other", "known", Keys.ENTER)
        wait_for(self.browser, lambda: self._one('form[action="/reports"]'))
        self._use('form[action="/reports"] button')
        self._wait_for_text(".decided", self._words.reported)
        self._look()

    def check_the_end(self) -> None:
        """See that every flag is where it was put."""
        self.browser.get(f"{self.url}/?state=wrong")
        counts = {state: self._count(state) for state in ("open", "right", "wrong")}
        assert counts == {"open": 0, "right": AT_ONCE, "wrong": 1}

    @property
    def _words(self) -> Words:
        return WORDS[self.manner.language]

    @property
    def _has_keys(self) -> bool:
        """Whether single keys do something."""
        return self.manner.has_scripts and not self.manner.has_pointer

    def _decide_wrong(self) -> None:
        if self.manner.has_pointer:
            Select(self._one("#reason")).select_by_visible_text(REASON)
        else:
            tab_to(self.browser, "#reason")
            press(self.browser, Keys.ARROW_DOWN)
        assert Select(self._one("#reason")).first_selected_option.text == REASON
        # Where a list has the focus, single keys choose from it.
        self._use(".decide button[value=wrong]", is_before=True)
        self._wait_for_text(".decided", self._words.wrong)

    def _select_all(self) -> None:
        """Tick the box for that; without scripts there is none, but one for each flag."""
        if self.manner.has_scripts:
            self._use("#select-all", hit=Keys.SPACE)
            self._wait_for_text("#selected", str(AT_ONCE))
        elif self.manner.has_pointer:
            for pick in self._all(".pick"):
                # At the end of the window it would be under the bar that decides.
                self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", pick)
                pick.click()
        else:
            tab_to(self.browser, ".pick")
            steps = len(self._one("ol.queue > li").find_elements(By.CSS_SELECTOR, "a, input"))
            further = [*[Keys.TAB] * steps, Keys.SPACE] * (AT_ONCE - 1)
            ActionChains(self.browser).send_keys(Keys.SPACE, *further).perform()

    def _use(self, selector: str, *, key: str = "", hit: str = Keys.ENTER, is_before: bool = False) -> None:
        """Click on an element, press its key, or go there with Tab and press Enter or another key."""
        wait_for(self.browser, lambda: self._one(selector))
        if self.manner.has_pointer:
            self._one(selector).click()
        elif key and self._has_keys:
            press(self.browser, key)
        else:
            tab_to(self.browser, selector, is_before=is_before)
            press(self.browser, hit)

    def _write(self, selector: str, *keys: str) -> None:
        wait_for(self.browser, lambda: self._one(selector))
        if self.manner.has_pointer:
            self._one(selector).click()
        else:
            tab_to(self.browser, selector)
        press(self.browser, *keys)

    def _look(self) -> None:
        """Fail where the page is wider than the screen, or axe-core finds something."""
        width = 360 if self.manner.is_narrow else 1280
        assert self.browser.execute_script("return document.documentElement.scrollWidth") <= width
        # axe-core is a script itself; those of the page do not run any more.
        self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        assert axe(self.browser) == [], self.browser.current_url
        off = not self.manner.has_scripts
        self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": off})

    def _count(self, state: str) -> int:
        """Return how many flags the queue says are in this state."""
        return int(self._one(f'[data-live="tab-{state}"]').text)

    def _reload_until(self, holds: Callable[[], Any]) -> None:
        def held() -> bool:
            if holds():
                return True
            self.browser.refresh()
            return False

        wait_for(self.browser, held)

    def _wait_for_text(self, selector: str, expected: str) -> None:
        wait_for(self.browser, lambda: expected in self._one(selector).text)

    def _one(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def _all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)
