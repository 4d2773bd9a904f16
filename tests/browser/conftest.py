"""A real browser, driven by selenium."""

import os
from collections.abc import Iterator

import pytest
from argon2 import PasswordHasher
from selenium.webdriver import Chrome

from consumer.reviews import passwords
from deploy.local.packages import COMMANDS, MissingTools, check
from tests.browser.driving import chromium
from tests.unit.reviews.conftest import statements

__all__ = ["browser", "statements"]

_NEEDED = {name: COMMANDS[name] for name in ("chromium", "chromedriver")}


@pytest.fixture(scope="module", autouse=True)
def _cheap_passwords() -> Iterator[None]:
    """Hash with the same algorithm and the least work: every test signs in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_HASHER", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        yield


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
