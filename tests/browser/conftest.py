"""A real browser, driven by selenium."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from deploy.local.packages import COMMANDS, MissingTools, check

_NEEDED = {name: COMMANDS[name] for name in ("chromium", "chromedriver")}
_QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--window-size=1280,1000",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Chromium with a profile of its own, which keeps what pages write to the console."""
    try:
        check(_NEEDED)
    except MissingTools as error:
        if os.environ.get("CI", "").lower() in {"", "0", "false"}:
            pytest.skip(str(error))
        pytest.fail(str(error), pytrace=False)
    profile: Path = tmp_path_factory.mktemp("profile")
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in (*_QUIET, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options, Service(shutil.which("chromedriver")))
    try:
        driver.set_page_load_timeout(120)
        yield driver
    finally:
        driver.quit()
