"""A real browser, driven by selenium."""

import os
from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome

from deploy.local.packages import COMMANDS, MissingTools, check
from tests.browser.driving import chromium
from tests.unit.console.conftest import cheap_passwords
from tests.unit.reviews.conftest import statements

__all__ = ["browser", "cheap_passwords", "statements"]

_NEEDED = {name: COMMANDS[name] for name in ("chromium", "chromedriver")}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Chromium with a profile of its own, which keeps what pages write to the console."""
    try:
        check(_NEEDED)
    except MissingTools as error:
        if os.environ.get("CI", "").lower() in {"", "0", "false"}:
            pytest.skip(str(error))
        pytest.fail(str(error), pytrace=False)
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver
