"""Signing in and out: who gets a session, when it ends, and how fast somebody may guess."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from consumer.console.guessing import KNOWN_ADDRESS_MS, NAME_LIMIT_FACTOR
from consumer.reviews import audit, passwords, people
from consumer.reviews.attempts import FORGET_AFTER_MS
from consumer.reviews.audit import AuditEntry, AuditFilters
from consumer.reviews.database import open_database
from tests.unit.console.serving import PASSWORD, Answer, Browser, Served, served
from tests.unit.reviews.made import at_once


def entries(console: Served, action: str) -> list[AuditEntry]:
    """Return what the audit log has of an action, the latest first."""
    with console.database.read_connection() as connection:
        return list(audit.search(connection, AuditFilters(action=action), None, 1_000).rows)


def is_in(browser: Browser) -> bool:
    """Return whether somebody is signed in."""
    return browser.get("/me").status == 200


def cookie(answer: Answer, name: str) -> str:
    """Return the line that sets a cookie."""
    return next(line for line in answer.all_headers("set-cookie") if line.startswith(f"{name}="))


def test_a_name_and_a_password_begin_a_session(console: Served) -> None:
    """It leads to where the person wanted to go, and is in the audit log with name and address."""
    console.add("李娜")
    browser = console.browser()
    sent = browser.get("/me?done=role")
    assert sent.header("location") == "/sign-in?back=%2Fme%3Fdone%3Drole"
    form = browser.get(sent.header("location"))
    assert 'value="/me?done=role"' in form.text
    answer = browser.post(
        "/sign-in", {"token": form.token, "back": "/me?done=role", "name": " 李娜 ", "password": PASSWORD}
    )
    assert (answer.status, answer.header("location")) == (303, "/me?done=role")
    assert "李娜" in browser.get("/me").shown
    (entry,) = entries(console, "session.begin")
    assert (entry.person, entry.address, entry.at_ms) == ("李娜", "127.0.0.1", console.clock())


def test_the_form_does_not_fill_in_the_name_of_whoever_is_signed_in(console: Served) -> None:
    """It would be markup, and somebody else may want to sign in."""
    answer = console.signed_in("Ann").get("/sign-in")
    assert answer.status == 200
    assert "bdi&gt;" not in answer.text


@pytest.mark.parametrize(
    "back",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example/",
        "/\t/evil.example",
        "/me\r\nSet-Cookie: a=b",
        "javascript:alert(1)",
        "",
        "me",
        "/" + "a" * 2_001,
    ],
)
def test_signing_in_leads_to_this_console_only(console: Served, back: str) -> None:
    """A link to the sign-in page may not name another site to go on to."""
    console.add("Ann")
    answer = console.browser().sign_in("Ann", back=back)
    assert (answer.status, answer.header("location")) == (303, "/")
    assert "a" not in {line.partition("=")[0] for line in answer.all_headers("set-cookie")}


@pytest.mark.parametrize(
    ("name", "password"),
    [("Ann", "wrong"), ("Nobody", PASSWORD), ("Bob", PASSWORD), ("Ann", ""), ("", ""), ("Ann", PASSWORD + "x" * 1_000)],
)
def test_whoever_fails_learns_nothing(console: Served, name: str, password: str) -> None:
    """One sentence for a wrong password, a name that nobody has, and an account that is disabled."""
    console.add("Ann")
    bob = console.add("Bob")
    console.database.write(lambda c: people.disable(c, bob.person_id, console.clock()))
    browser = console.browser()
    answer = browser.sign_in(name, password)
    assert answer.status == 403
    assert "The name or the password is wrong." in answer.shown
    assert not is_in(browser)
    assert console.cookie not in browser.cookies
    (entry,) = entries(console, "session.refused")
    assert (entry.person, entry.subject, entry.address) == ("", name, "127.0.0.1")
    assert password not in {entry.subject, entry.why} or not password


def test_an_unknown_name_costs_as_much_work_as_a_known_one(console: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the time would tell which names there are: in both cases one password is compared with one hash."""
    console.add("Ann")
    hasher = passwords._HASHER
    compared: list[str] = []

    class Counting:
        def __getattr__(self, name: str) -> object:
            return getattr(hasher, name)

        def verify(self, hashed: str, password: str) -> bool:
            compared.append(hashed)
            return hasher.verify(hashed, password)

    monkeypatch.setattr(passwords, "_HASHER", Counting())
    costs = []
    for name in ("Ann", "Nobody"):
        compared.clear()
        console.browser().sign_in(name, "wrong")
        costs.append([hashed.split("$")[:4] for hashed in compared])
    assert costs[0] == costs[1]
    assert len(costs[0]) == 1


def test_each_sign_in_has_a_secret_of_its_own(console: Served) -> None:
    """What the browser had before does nothing afterwards, whoever has put it there."""
    console.add("Ann")
    browser = console.browser()
    browser.cookies[console.cookie] = "A" * 43
    browser.sign_in("Ann")
    first = browser.cookies[console.cookie]
    assert first != "A" * 43
    browser.sign_in("Ann")
    second = browser.cookies[console.cookie]
    assert second != first
    browser.cookies[console.cookie] = first
    assert not is_in(browser)
    browser.cookies[console.cookie] = second
    assert is_in(browser)


def test_only_a_hash_of_the_secret_is_kept(console: Served, tmp_path: Path) -> None:
    """Whoever reads the database has no session by it."""
    browser = console.signed_in("Ann")
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("console.db*"))
    assert b"Ann" in kept
    assert browser.cookies[console.cookie].encode() not in kept
    assert PASSWORD.encode() not in kept


def test_signing_out_ends_the_session(console: Served) -> None:
    """The cookie goes, does nothing if somebody kept it, and the audit log has it; other sessions stay."""
    browser, other = console.signed_in("Ann"), console.browser()
    other.sign_in("Ann")
    kept = dict(browser.cookies)
    answer = browser.send("/sign-out")
    assert (answer.status, answer.header("location")) == (303, "/sign-in")
    assert console.cookie not in browser.cookies
    browser.cookies = kept
    assert not is_in(browser)
    assert is_in(other)
    assert [entry.person for entry in entries(console, "session.end")] == ["Ann"]


def test_a_session_ends_when_it_is_not_used(tmp_path: Path) -> None:
    """After idle_s; one that is used goes on."""
    with served(tmp_path, idle_s=600.0) as console:
        used, idle = console.signed_in("Ann"), console.signed_in("Wei")
        for _ in range(3):
            console.clock.pass_s(400)
            assert is_in(used)
        assert not is_in(idle)


def test_a_session_ends_at_last(tmp_path: Path) -> None:
    """After session_s, however much it is used."""
    with served(tmp_path, idle_s=600.0, session_s=1_000.0) as console:
        browser = console.signed_in("Ann")
        console.clock.pass_s(500)
        assert is_in(browser)
        console.clock.pass_s(501)
        assert not is_in(browser)


def test_cookies_are_for_this_console_alone(console: Served) -> None:
    """No script reads them, and forms of other sites do not send them."""
    console.add("Ann")
    browser = console.browser()
    line = cookie(browser.get("/sign-in"), f"dupwatch-form-{console.identity}")
    assert {part.strip().lower() for part in line.split(";")[1:]} == {"httponly", "path=/", "samesite=lax"}
    line = cookie(browser.sign_in("Ann"), console.cookie)
    given = {part.strip().lower() for part in line.split(";")[1:]}
    assert given == {"httponly", "path=/", "samesite=lax", "max-age=604800"}


@pytest.mark.parametrize("is_tls", [False, True])
def test_two_consoles_on_a_host_do_not_take_each_others_cookies(tmp_path: Path, *, is_tls: bool) -> None:
    """A browser sends the cookies of a host to all its ports; whoever signs in to one stays signed in to the other."""
    folders = [tmp_path / name for name in "ab"]
    with ExitStack() as running:
        consoles = []
        for folder in folders:
            folder.mkdir()
            database = open_database(f"sqlite:///{folder / 'console.db'}")
            consoles.append(running.enter_context(served(database, is_tls=is_tls)))
        browsers = [console.browser() for console in consoles]
        browsers[1].cookies = browsers[0].cookies
        for console, browser in zip(consoles, browsers, strict=True):
            console.add("Ann")
            form = {"token": browser.get("/sign-in").token, "name": "Ann", "password": PASSWORD}
            origin = browser.url.replace("http:", "https:") if is_tls else browser.url
            assert browser.post("/sign-in", form, origin=origin).status == 303
        assert all(is_in(browser) for browser in browsers)
        token = browsers[1].get("/me").token
        origin = browsers[1].url.replace("http:", "https:") if is_tls else browsers[1].url
        assert browsers[1].post("/sign-out", {"token": token}, origin=origin).status == 303
        assert [is_in(browser) for browser in browsers] == [True, False]


def test_consoles_of_one_database_share_a_session(tmp_path: Path) -> None:
    """Whichever of a group a balancer sends somebody to."""
    with served(tmp_path) as first, served(first.database) as second:
        browser, other = first.signed_in("Ann"), second.browser()
        other.cookies = browser.cookies
        assert is_in(other)


def test_over_tls_no_other_host_can_set_the_cookies(tmp_path: Path) -> None:
    """They are sent over TLS only, have the prefix that makes browsers strict, and http pages are another origin."""
    with served(tmp_path, is_tls=True) as console:
        console.add("Ann")
        browser = console.browser()
        first = browser.get("/sign-in")
        (line,) = first.all_headers("set-cookie")
        assert line.startswith(f"__Host-dupwatch-form-{console.identity}=")
        form = {"token": first.token, "name": "Ann", "password": PASSWORD}
        assert browser.post("/sign-in", form, origin=browser.url).status == 403
        answer = browser.post("/sign-in", form, origin=browser.url.replace("http:", "https:"))
        assert answer.status == 303
        (line,) = answer.all_headers("set-cookie")
        given = {part.strip().lower() for part in line.split(";")[1:]}
        assert line.startswith(f"__Host-dupwatch-{console.identity}=")
        assert given == {"httponly", "path=/", "samesite=lax", "secure", "max-age=604800"}


def test_guessing_is_slowed_by_name(tmp_path: Path) -> None:
    """From however many addresses: even the right password has to wait then; other names do not."""
    with served(tmp_path, failures_max=2, proxy_addresses=("127.0.0.1",), proxy_header="X-User") as console:
        console.add("Ann")
        console.add("Wei")
        for guess in range(2 * NAME_LIMIT_FACTOR):
            assert guessed(console, "Ann", f"10.0.0.{guess}").status == 403
        answer = guessed(console, "Ann", "10.0.0.99", PASSWORD)
        assert answer.status == 429
        assert "Too many failed attempts" in answer.shown
        assert 0 < int(answer.header("retry-after")) <= 900
        assert len(entries(console, "session.refused")) == 2 * NAME_LIMIT_FACTOR
        assert guessed(console, "Wei", "10.0.0.99", PASSWORD).status == 303
        console.clock.pass_s(int(answer.header("retry-after")))
        assert guessed(console, "Ann", "10.0.0.99", PASSWORD).status == 303


def test_nobody_is_kept_out_by_others_who_fail_with_their_name(tmp_path: Path) -> None:
    """From where somebody has signed in lately they sign in as before, and mistype as before; strangers wait."""
    with served(tmp_path, failures_max=2, proxy_addresses=("127.0.0.1",), proxy_header="X-User") as console:
        console.add("Ann")
        assert guessed(console, "Ann", "10.0.1.1", PASSWORD).status == 303
        for guess in range(2 * NAME_LIMIT_FACTOR):
            assert guessed(console, "Ann", f"10.0.0.{guess}").status == 403
        assert guessed(console, "Ann", "10.0.1.2", PASSWORD).status == 429
        assert guessed(console, "Ann", "10.0.1.1").status == 403
        assert guessed(console, "Ann", "10.0.1.1", PASSWORD).status == 303
        assert guessed(console, "Ann", "10.0.1.2", PASSWORD).status == 303
        # Whoever is at the same address guesses no faster than at another one.
        assert guessed(console, "Ann", "10.0.1.1").status == 403
        assert guessed(console, "Ann", "10.0.1.1").status == 429


def test_behind_a_proxy_that_signs_nobody_in_each_client_has_an_address(tmp_path: Path) -> None:
    """Who fails behind it slows down nobody else; a name in some header is nobody's."""
    with served(tmp_path, failures_max=2, proxy_addresses=("127.0.0.1",)) as console:
        console.add("Ann")
        assert [guessed(console, "Ann", "10.0.0.1").status for _ in range(3)] == [403, 403, 429]
        assert guessed(console, "Ann", "10.0.1.1", PASSWORD).status == 303
        named = console.browser().get("/", x_user="Ann", x_forwarded_for="10.0.1.1")
        assert named.status == 303
        assert named.header("location").startswith("/sign-in")


def test_an_address_is_known_for_a_month(tmp_path: Path) -> None:
    """Then it is one like any other."""
    with served(tmp_path, failures_max=2, proxy_addresses=("127.0.0.1",), proxy_header="X-User") as console:
        console.add("Ann")
        for later_s, status in ((KNOWN_ADDRESS_MS / 1_000, 303), (KNOWN_ADDRESS_MS / 1_000 + 1, 429)):
            assert guessed(console, "Ann", "10.0.1.1", PASSWORD).status == 303
            console.clock.pass_s(later_s)
            for guess in range(2 * NAME_LIMIT_FACTOR):
                guessed(console, "Ann", f"10.0.0.{guess}")
            assert guessed(console, "Ann", "10.0.1.1", PASSWORD).status == status
            console.clock.pass_s(2 * FORGET_AFTER_MS / 1_000)


def test_guessing_is_slowed_by_address(tmp_path: Path) -> None:
    """Whoever tries one password with many names waits as well; somebody at another address does not."""
    with served(tmp_path, failures_max=3, proxy_addresses=("127.0.0.1",), proxy_header="X-User") as console:
        console.add("Ann")
        for guess in range(3):
            assert guessed(console, f"name-{guess}", "10.0.0.1").status == 403
        assert guessed(console, "Ann", "10.0.0.1", PASSWORD).status == 429
        assert guessed(console, "Ann", "10.0.0.2", PASSWORD).status == 303


def test_an_own_account_does_not_help_to_guess(tmp_path: Path) -> None:
    """Signing in between guesses does not forgive them to the address."""
    with served(tmp_path, failures_max=3) as console:
        console.add("Ann")
        for guess in range(3):
            assert console.browser().sign_in(f"name-{guess}", "wrong").status == 403
            if guess < 2:
                assert console.browser().sign_in("Ann").status == 303
        assert console.browser().sign_in("Ann").status == 429


def test_a_sign_in_forgives_the_name(tmp_path: Path) -> None:
    """Somebody who mistypes now and then, wherever they are, never waits."""
    with served(tmp_path, failures_max=2, proxy_addresses=("127.0.0.1",), proxy_header="X-User") as console:
        console.add("Ann")
        for number in range(2 * NAME_LIMIT_FACTOR + 1):
            assert guessed(console, "Ann", f"10.0.1.{number}").status == 403
            assert guessed(console, "Ann", f"10.0.2.{number}", PASSWORD).status == 303


def test_signing_in_right_adds_nothing_to_what_waits(tmp_path: Path) -> None:
    """However often, and beside somebody who guesses at the same address."""
    with served(tmp_path, failures_max=3) as console:
        console.add("Ann")
        for _ in range(5):
            assert console.browser().sign_in("Ann").status == 303
        for _ in range(3):
            assert console.browser().sign_in("Wei", "wrong").status == 403
        for _ in range(3):
            console.clock.pass_s(1)
            assert console.browser().sign_in("Ann").status == 303


@pytest.mark.parametrize("threads", [2, 12])
def test_guessing_at_once_is_no_way_around(tmp_path: Path, threads: int) -> None:
    """Of many guesses at the same time as many are compared as one after the other, and no more."""
    with served(tmp_path, failures_max=3, threads=threads) as console:
        console.add("Ann")
        token = (asked := console.browser()).get("/sign-in").token

        def guess() -> int:
            form = {"token": token, "name": "Ann", "password": "wrong"}
            browser = console.browser()
            browser.cookies = dict(asked.cookies)
            return browser.post("/sign-in", form).status

        statuses = at_once([guess] * 12)
        assert (statuses.count(403), statuses.count(429)) == (3, 9)
        assert len(entries(console, "session.refused")) == 3


def guessed(console: Served, name: str, address: str, password: str = "wrong") -> Answer:
    """Sign in from an address, through a proxy that signs nobody in."""
    browser = console.browser()
    token = browser.get("/sign-in").token
    form = {"token": token, "name": name, "password": password}
    return browser.post("/sign-in", form, x_forwarded_for=address)
