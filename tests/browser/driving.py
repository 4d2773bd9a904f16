"""Drives a browser through pages of the console, and reads them as somebody does who looks at them."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import pytest
from selenium.webdriver import ActionChains, Chrome, ChromeOptions, Keys
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.command import Command
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

WAIT_S: Final = 120
TABS_MAX: Final = 60
AXE: Final = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
PHONE: Final = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}

_QUIET: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--window-size=1280,1000",
)  # fmt: skip


@contextmanager
def chromium(profile: Path, *options: str) -> Iterator[Chrome]:
    """Start Chromium with a profile in this folder, and end it. It keeps what pages write to the console."""
    chosen = ChromeOptions()
    chosen.binary_location = shutil.which("chromium") or ""
    for argument in (*_QUIET, *options, f"--user-data-dir={profile}"):
        chosen.add_argument(argument)
    chosen.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(chosen, Service(shutil.which("chromedriver")))
    try:
        driver.set_page_load_timeout(120)
        yield driver
    finally:
        driver.quit()


def press(browser: Chrome, *keys: str) -> None:
    """Press keys, one after the other."""
    for key in keys:
        ActionChains(browser).send_keys(key).perform()


def wait_for(browser: Chrome, found: Callable[[], Any]) -> None:
    """Wait until something is there."""
    WebDriverWait(browser, WAIT_S, ignored_exceptions=[Exception]).until(lambda _: found())


def said(browser: Chrome) -> str:
    """What the line says that tells of a decision."""
    return browser.find_element(By.CSS_SELECTOR, ".decided").text


def shown(browser: Chrome) -> str:
    """The title of the article whose flag is open."""
    return browser.find_element(By.CSS_SELECTOR, ".side h2").text


def button(browser: Chrome, name: str, value: str) -> WebElement:
    """One of the buttons of a decision."""
    return browser.find_element(By.CSS_SELECTOR, f"button[name={name}][value={value}]")


def picks(browser: Chrome) -> list[WebElement]:
    """The boxes that select flags of the queue, the first of them in the middle of the window."""
    found = browser.find_elements(By.CSS_SELECTOR, ".pick")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", found[0])
    return found


def complaints(browser: Chrome) -> list[str]:
    """What was written to the console."""
    entries: list[dict[str, Any]] = browser.execute(Command.GET_LOG, {"type": "browser"})["value"]
    return [entry["message"] for entry in entries if "404 (Not Found)" not in entry["message"]]


@contextmanager
def without_scripts(browser: Chrome) -> Iterator[None]:
    """As for somebody who has turned them off."""
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@contextmanager
def on_a_phone(browser: Chrome, *, scheme: str = "light") -> Iterator[None]:
    """On a screen of 360 pixels, in light or dark."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def tab_to(browser: Chrome, selector: str, *, is_before: bool = False) -> None:
    """Press Tab until an element has the focus, and see that one can tell; with Shift where it ``is_before``."""
    wanted = browser.find_elements(By.CSS_SELECTOR, selector)
    for _ in range(TABS_MAX):
        press(browser, f"{Keys.SHIFT}{Keys.TAB}{Keys.SHIFT}" if is_before else Keys.TAB)
        focused = browser.switch_to.active_element
        if focused in wanted:
            assert focused.value_of_css_property("outline-style") == "solid"
            return
    pytest.fail(f"Tab does not reach {selector}")


def axe(browser: Chrome) -> list[tuple[str, str, list[str]]]:
    """What axe-core finds on a page: the rule, how bad it is, and where."""
    browser.execute_script(AXE)
    # Everything else that axe reports is longer than the page.
    script = """
        const done = arguments[0], failed = (error) => done([{id: String(error), nodes: []}]);
        axe.run({resultTypes: ["violations"]}).then((result) => done(result.violations), failed);
    """
    violations = browser.execute_async_script(script)
    return [
        (each["id"], each.get("impact", ""), [node["html"][:200] for node in each["nodes"][:3]]) for each in violations
    ]
