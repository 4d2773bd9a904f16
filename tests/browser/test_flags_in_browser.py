"""The page of flags of a running consumer in Chromium: what a moderator sees, and what an article cannot do."""

import json
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.command import Command
from selenium.webdriver.remote.webelement import WebElement

from tests.cli.command import start, text, wait_for, write_lines

pytestmark = pytest.mark.servers

END_S = 30
OWN = "window.owned = (window.owned || 0) + 1"
HOSTILE = (
    f'"\'></title></style></bdi></h2><script>{OWN}</script><img src=x onerror="{OWN}"><svg/onload={OWN}>'
    f'<a href="javascript:{OWN}">x</a><iframe srcdoc="<script>parent.owned=1</script>"></iframe>'
    '<meta http-equiv=refresh content="0;url=https://evil.example/"><base href=//evil.example/>&lt;script&gt;'
)
OVERRIDE = "\u202egnp.exe\u202c"
ENGLISH = "The harbour council voted on Tuesday to rebuild the eastern ferry landing after the storm of last winter. "
CHINESE = (
    "港口委员会星期二决定重建去年冬天暴风雨中损坏的东部轮渡码头，工程三月开始，费用一千四百万元，乘客改乘公共汽车。"
)


class Shown(NamedTuple):
    """A consumer that has judged all articles, and the URL of its pages."""

    url: str
    flags: list[dict[str, Any]]


def feed() -> list[dict[str, Any]]:
    """Three articles, one of them hostile, each followed by its duplicate."""
    kinds = {
        "plain": {"title": "Ferry landing", "body": ENGLISH + text(1), "url": "https://wire.example/a?x=1&y=2"},
        "zh": {"title": "重建码头", "body": CHINESE * 2, "lang": "zh", "source": "新闻"},
        f"evil{HOSTILE}": {
            "title": f"{HOSTILE} {OVERRIDE}", "body": f"{ENGLISH} {HOSTILE} {OVERRIDE} {text(2)}",
            "source": f"<b onclick={OWN}>", "url": "javascript:window.owned=1//https://x.example/",
            "lang": f'en" onclick="{OWN}',
        },
    }  # fmt: skip
    return [{"id": f"{name}-{number}"[-400:], **kind} for name, kind in kinds.items() for number in (1, 2)]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """The demo: the real consumer on a mock cluster."""
    path: Path = write_lines(tmp_path_factory.mktemp("feed") / "feed.jsonl", feed())
    process = start("demo", "--forever", "--rate", "1000", "--feed", path, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        line = next(line.decode() for line in process.stderr if line.startswith(b"Latest flags"))
        url = line.split()[-1].rstrip("/")
        wait_for(lambda: len(flags(url)) == 3, END_S)
        yield Shown(url, flags(url))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=END_S)


def flags(url: str) -> list[dict[str, Any]]:
    """The flags as JSON."""
    with urllib.request.urlopen(f"{url}/flags.json", timeout=10) as answer:
        flags: list[dict[str, Any]] = json.load(answer)["flags"]
        return flags


def card(browser: Chrome, name: str) -> WebElement:
    """The flag of the article whose id begins so."""
    return next(
        element
        for element in browser.find_elements(By.CSS_SELECTOR, "article.flag")
        if element.find_element(By.CSS_SELECTOR, ".id").text.startswith(name)
    )


def complaints(browser: Chrome) -> list[str]:
    """What was written to the console."""
    entries: list[dict[str, Any]] = browser.execute(Command.GET_LOG, {"type": "browser"})["value"]
    return [entry["message"] for entry in entries]


def test_a_moderator_sees_what_repeats_what(browser: Chrome, shown: Shown) -> None:
    """Both articles side by side with texts, similarity, distance, link and marked keywords; the console is silent."""
    browser.get(f"{shown.url}/")
    assert len(browser.find_elements(By.CSS_SELECTOR, "article.flag")) == 3
    plain = card(browser, "plain-2")
    sides = plain.find_elements(By.CSS_SELECTOR, ".side")
    assert [side.find_element(By.CSS_SELECTOR, ".id").text for side in sides] == ["plain-2", "plain-1"]
    assert sides[0].location["y"] == sides[1].location["y"]
    assert sides[0].location["x"] < sides[1].location["x"]
    assert all("rebuild the eastern ferry landing" in side.text for side in sides)
    assert "similarity 1.00" in plain.text
    assert "distance 0 bits" in plain.text
    hrefs = [element.get_attribute("href") for element in plain.find_elements(By.CSS_SELECTOR, ".side a")]
    assert hrefs == ["https://wire.example/a?x=1&y=2"] * 2
    (flag,) = [flag for flag in shown.flags if flag["id"] == "plain-2"]
    marks = {element.text.casefold() for element in sides[1].find_elements(By.TAG_NAME, "mark")}
    assert marks
    assert marks <= set(flag["shared_keywords"])
    # The style sheet is let in by its digest: without it a mark would have the browser's yellow.
    mark = sides[0].find_element(By.TAG_NAME, "mark")
    assert mark.value_of_css_property("border-radius") == "3px"
    assert complaints(browser) == []


def test_chinese_is_marked_and_named_as_such(browser: Chrome, shown: Shown) -> None:
    """Words are marked in text without spaces, and the language attribute is set."""
    browser.get(f"{shown.url}/")
    chinese = card(browser, "zh-2")
    assert chinese.find_element(By.CSS_SELECTOR, ".side .text").get_attribute("lang") == "zh"
    assert {"重建", "轮渡"} <= {element.text for element in chinese.find_elements(By.CSS_SELECTOR, ".side mark")}


@pytest.mark.parametrize("whole", [False, True])
def test_a_hostile_article_is_text(browser: Chrome, shown: Shown, whole: bool) -> None:  # noqa: FBT001  # two pages
    """Scripts, handlers, frames and addresses are shown as text; nothing runs, and no text changes direction."""
    (flag,) = [flag for flag in shown.flags if "evil" in flag["duplicate_of"] or "script" in flag["duplicate_of"]]
    browser.get(f"{shown.url}{flag['href'] if whole else '/'}")
    time.sleep(0.3)
    assert browser.current_url.startswith(shown.url)
    assert browser.execute_script("return window.owned") is None
    assert browser.execute_script("return document.querySelectorAll('script,img,svg,iframe,base,form').length") == 0
    handlers = "return [...document.querySelectorAll('*')].some(e => [...e.attributes].some(a => /^on/i.test(a.name)))"
    assert browser.execute_script(handlers) is False
    schemes = "return [...new Set([...document.querySelectorAll('a[href]')].map(a => new URL(a.href).protocol))]"
    assert set(browser.execute_script(schemes)) <= {"http:", "https:"}
    seen = browser.find_element(By.TAG_NAME, "body").text
    assert f"<script>{OWN}</script>" in seen
    assert f'onerror="{OWN}"' in seen
    assert "\u202e" not in browser.page_source
    assert complaints(browser) == []


def test_titles_do_not_turn_what_stands_beside_them(browser: Chrome, shown: Shown) -> None:
    """Each is isolated, with a direction of its own."""
    browser.get(f"{shown.url}/")
    for selector in ("h2 > *", ".about > .id"):
        found = browser.find_elements(By.CSS_SELECTOR, selector)
        assert len(found) == 2 * len(shown.flags)
        assert {element.value_of_css_property("unicode-bidi") for element in found} == {"isolate"}


def test_the_policy_would_stop_what_slips_through(browser: Chrome, shown: Shown) -> None:
    """A script put into the page by force is not run."""
    browser.get(f"{shown.url}/")
    inject = "const s = document.createElement('script'); s.textContent = 'window.owned = 1'; document.body.append(s);"
    browser.execute_script(inject)
    assert browser.execute_script("return window.owned") is None
    assert any("Content Security Policy" in complaint for complaint in complaints(browser))
    with urllib.request.urlopen(f"{shown.url}/", timeout=10) as answer:
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'sha256-")


def test_it_is_read_on_a_phone_and_in_the_dark(browser: Chrome, shown: Shown) -> None:
    """On a narrow screen the articles are stacked and nothing is cut off; dark mode follows the system."""
    size = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.get(f"{shown.url}/")
        light = browser.find_element(By.TAG_NAME, "body").value_of_css_property("background-color")
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
        assert browser.find_element(By.TAG_NAME, "body").value_of_css_property("background-color") != light
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
        sides = card(browser, "plain-2").find_elements(By.CSS_SELECTOR, ".side")
        assert sides[1].location["y"] > sides[0].location["y"]
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_one_flag_has_a_page_of_its_own(browser: Chrome, shown: Shown) -> None:
    """A click opens both full texts, another one goes back."""
    browser.get(f"{shown.url}/")
    card(browser, "plain-2").find_element(By.LINK_TEXT, "Show full texts").click()
    assert "/flags/" in browser.current_url
    assert text(1)[-20:] in browser.find_element(By.CSS_SELECTOR, ".side .text").text
    browser.find_element(By.LINK_TEXT, "All flags").click()
    assert browser.current_url == f"{shown.url}/"
