"""A webhook in Chromium: an admin creates and tests it, and sees what its receiver gets, also after it was away."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from consumer.console.intake.webhook_sender import WebhookParts, webhook_background
from consumer.model.hooks import Hooks
from consumer.reviews import people
from storage.clock import now_ms
from tests.browser.driving import axe, complaints, on_a_phone, wait_for
from tests.browser.test_console_in_browser import enter
from tests.unit.console.desks import Office, office
from tests.unit.reviews.webhooks_made import happened, tell
from tests.unit.webhooks.receivers import LOCAL, Receiver, courier, serving

pytestmark = pytest.mark.servers


@contextmanager
def sending(folder: Path) -> Iterator[Office]:
    """A console that sends to webhooks on this machine; Ann is an admin. Receivers check when a message was signed."""
    with office(folder, webhooks={"networks": LOCAL, "http": True}) as desk, ExitStack() as running:
        database = desk.served.database
        database.write(lambda c: people.set_role(c, 1, "admin"))
        desk.served.clock.at_ms = now_ms()
        parts = WebhookParts(database, courier(), now_ms, Hooks())
        running.enter_context(webhook_background(parts, threading.Event(), running))
        # Her session of the time before has ended.
        yield replace(desk, ann=desk.served.in_session_of("Ann"))


def write(browser: Chrome, **fields: str) -> None:
    """Fill in fields by their names."""
    for name, value in fields.items():
        field = browser.find_element(By.ID, name)
        field.clear()
        field.send_keys(value)


def press(browser: Chrome, action: str) -> None:
    """Press the button of a form."""
    browser.find_element(By.CSS_SELECTOR, f'form[action="{action}"] button').click()


def test_a_webhook_gets_signed_events(browser: Chrome, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Also after its receiver was away: the same event, then the later ones of its story."""
    receiver = Receiver(0)
    with sending(tmp_path_factory.mktemp("office")) as desk:
        database = desk.served.database
        enter(browser, desk, "/webhooks")
        with serving(receiver):
            write(browser, name="Site", url=receiver.url())
            press(browser, "/webhooks")
            wait_for(browser, lambda: browser.find_element(By.CSS_SELECTOR, ".once"))
            secret = browser.find_element(By.CSS_SELECTOR, ".once").text
            press(browser, "/webhooks/1/test")
            wait_for(browser, lambda: "Accepted: 204." in browser.find_element(By.TAG_NAME, "main").text)
            assert secret not in browser.page_source
            tell(database, happened("first", 1), now_ms=now_ms())
            tested, first = receiver.wait_for(2)
        assert tested.verify(secret)
        assert first.verify(secret) == {"event": 1, "text": "first"}
        tell(database, happened("second", 1), happened("third", 1), now_ms=now_ms())

        def fails() -> bool:
            browser.get(f"{desk.served.url}/webhooks/1")
            return "The connection failed: Connection refused." in browser.find_element(By.TAG_NAME, "main").text

        wait_for(browser, fails)
        assert "2 events" in browser.find_element(By.TAG_NAME, "dl").text
        with on_a_phone(browser):
            assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
            assert axe(browser) == []
        with serving(receiver):
            press(browser, "/webhooks/1/send")
            received = receiver.wait_for(4)
        assert [each.verify(secret) for each in received[2:]] == [
            {"event": 2, "text": "second"},
            {"event": 3, "text": "third"},
        ]
        assert complaints(browser) == []
