"""A person changes their language and their password."""

from pathlib import Path

import pytest

from tests.unit.console.serving import PASSWORD, Served, served

NEW = "a much better password"


def test_the_language_is_kept_with_the_person(console: Served) -> None:
    """In every browser, whatever that one prefers, until they leave it to the browser again."""
    browser = console.signed_in("Ann")
    assert '<html lang="en" ' in browser.get("/me").text
    assert browser.send("/me/language", language="zh").status == 303
    page = browser.get("/me?done=language", accept_language="en")
    assert '<html lang="zh-Hans" ' in page.text
    assert "语言已更改。" in page.shown
    assert browser.send("/me/language", language="").status == 303
    assert "Page language" in browser.get("/me", accept_language="en").shown
    assert "页面语言" in browser.get("/me", accept_language="zh-CN").shown
    assert browser.send("/me/language", language="fr").status == 400


def test_a_new_password_ends_all_other_sessions(console: Served) -> None:
    """This browser goes on, with another secret."""
    browser, other = console.signed_in("Ann"), console.browser()
    other.sign_in("Ann")
    before = dict(browser.cookies)
    answer = browser.send("/me/password", old=PASSWORD, new=NEW, again=NEW)
    assert (answer.status, answer.header("location")) == (303, "/me?done=password")
    assert "Password changed" in browser.get("/me?done=password").shown
    assert browser.cookies[console.cookie] != before[console.cookie]
    assert other.get("/me").status == 303
    browser.cookies = before
    assert browser.get("/me").status == 303
    assert console.browser().sign_in("Ann", PASSWORD).status == 403
    assert console.browser().sign_in("Ann", NEW).status == 303


@pytest.mark.parametrize(
    ("form", "status", "said"),
    [
        ({"old": "wrong", "new": NEW, "again": NEW}, 403, "current password is wrong"),
        ({"old": PASSWORD, "new": NEW, "again": NEW + "x"}, 400, "The two new passwords differ"),
        ({"old": PASSWORD, "new": "short", "again": "short"}, 400, "too short or too long"),
        ({"old": PASSWORD, "new": "x" * 1_001, "again": "x" * 1_001}, 400, "too short or too long"),
        ({"old": PASSWORD, "new": "ANN OF THE NORTH", "again": "ANN OF THE NORTH"}, 400, "must not be your name"),
        ({}, 400, "too short or too long"),
    ],
)
def test_a_password_that_is_not_taken_changes_nothing(
    console: Served, form: dict[str, str], status: int, said: str
) -> None:
    """It says why; the old one still counts, and no session ends."""
    browser = console.signed_in("Ann of the North")
    answer = browser.send("/me/password", **form)
    assert answer.status == status
    assert said in answer.shown
    assert browser.get("/me").status == 200
    assert console.browser().sign_in("Ann of the North").status == 303


def test_whoever_finds_an_open_browser_cannot_guess_on(tmp_path: Path) -> None:
    """Wrong passwords count as attempts to sign in with this name."""
    with served(tmp_path, failures_max=3) as console:
        browser = console.signed_in("Ann")
        statuses = [browser.send("/me/password", old=f"no {n}", new=NEW, again=NEW).status for n in range(3)]
        assert statuses == [403, 403, 403]
        assert browser.send("/me/password", old=PASSWORD, new=NEW, again=NEW).status == 429
        assert console.browser().sign_in("Ann").status == 429


def test_people_of_a_proxy_have_no_password_here(tmp_path: Path) -> None:
    """So nobody asks them for one, and none can be set."""
    with served(tmp_path, proxy_addresses=("127.0.0.1",), proxy_header="X-User") as console:
        browser = console.browser()
        page = browser.get("/me", x_user="Ann")
        assert "New password" not in page.shown
        form = {"token": page.token, "old": "", "new": NEW, "again": NEW}
        assert browser.post("/me/password", form, x_user="Ann").status == 403
        assert console.browser().sign_in("Ann", NEW).status == 403
