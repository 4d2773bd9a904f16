"""What no browser of a moderator sends, and what happens when a part is away: always a page, always protected."""

import logging
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from consumer.console import app as app_module
from consumer.console.answering import OpenRoute, Route
from consumer.console.app import ROUTES, SECURITY_HEADERS
from consumer.console.rendering import CSS, POLICY, SCRIPT
from consumer.console.visit import FIELDS_MAX, FORM_BYTES_MAX, Visit
from consumer.console.visit import Answer as Answered
from consumer.model.errors import StoreMismatch
from consumer.reviews.database import Database, DatabaseUnavailable
from consumer.reviews.paging import BadCursor
from storage.errors import StoreUnavailable
from tests.unit.console.desks import office
from tests.unit.console.serving import Answer, Served, metrics, served

FORM = "application/x-www-form-urlencoded"


def check_protected(answer: Answer) -> None:
    """An answer has all headers that protect, once each."""
    for name, value in SECURITY_HEADERS.items():
        assert answer.all_headers(name) == [value], name
    assert len(answer.all_headers("x-request-id")) == 1
    assert answer.header("server") == ""


def is_page(answer: Answer) -> bool:
    """Return whether it is one of our pages, whole, and says under which id to ask."""
    request_id = answer.header("x-request-id")
    return (
        answer.text.startswith("<!doctype html>")
        and answer.text.rstrip().endswith("</html>")
        and (request_id in answer.shown)
    )


def limits_met(console: Served, name: str) -> float:
    """Return how often a limit was met."""
    return console.registry.get_sample_value("dupwatch_limits_met_total", {"limit": name}) or 0.0


@pytest.fixture(autouse=True)
def _metrics_begin_at_zero() -> None:
    """Count for each test alone."""
    metrics.cache_clear()


@pytest.fixture
def with_route(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Visit], Answered]], None]:
    """Adds a route /test to the consoles that are made afterwards."""

    def add(answer: Callable[[Visit], Answered]) -> None:
        routes: list[Route | OpenRoute] = [OpenRoute("GET", "/test", answer), OpenRoute("POST", "/test", answer)]
        monkeypatch.setattr(app_module, "ROUTES", (*ROUTES, *routes))

    return add


def test_every_answer_has_the_headers_that_protect(console: Served) -> None:
    """Pages, redirects, errors of every kind, and probes."""
    browser = console.signed_in("Wei", "admin")
    stranger = console.browser()
    answers = [
        browser.get("/me"),
        browser.get("/people"),
        browser.get("/audit.csv"),
        browser.post("/me/language", {}),
        browser.send("/me/language", language="en"),
        stranger.get("/me"),
        stranger.get("/sign-in"),
        stranger.get("/nowhere"),
        stranger.get("/me", host="evil.example"),
        stranger.ask("PUT", "/me"),
        stranger.ask("POST", "/sign-in", b"", origin=stranger.url),
        stranger.ask("POST", "/sign-in", b"x" * (FORM_BYTES_MAX + 1), origin=stranger.url, content_type=FORM),
        stranger.get("/me?a=" + "b" * 33_000),
        stranger.get("/healthz"),
        stranger.get("/readyz"),
        stranger.get("/metrics"),
        stranger.get("/icon.svg"),
    ]
    statuses = [200, 200, 200, 403, 303, 303, 200, 404, 421, 405, 415, 413, 431, 200, 200, 200, 200]
    assert [answer.status for answer in answers] == statuses
    for answer in answers:
        check_protected(answer)


def test_the_policy_allows_what_pages_have_and_nothing_else(console: Served) -> None:
    """The digests are of exactly what stands in the page, which has no other style, script or handler."""
    answer = console.browser().get("/sign-in")
    page, policy = answer.text, answer.header("content-security-policy")
    for begin, end, part in (
        ("<style>", "</style>", ".field{"),
        ('<script type="module">', "</script>", "addEventListener"),
    ):
        inside = page.partition(begin)[2].partition(end)[0]
        assert part in inside
        assert f"'sha256-{b64encode(sha256(inside.encode()).digest()).decode()}'" in policy
    assert page.count("<style") == page.count(f"<style>{CSS}</style>") == 1
    assert page.count("<script") == page.count(f'<script type="module">{SCRIPT}</script>') == 1
    assert " style=" not in page
    assert " on" not in page.partition("</head>")[2].replace(" on ", "")
    assert 'rel="icon" href="/icon.svg"' in page
    assert "img-src 'self'" in policy
    icon = console.browser().get("/icon.svg")
    assert (icon.header("content-type"), icon.text[:4]) == ("image/svg+xml", "<svg")
    assert "unsafe" not in POLICY
    assert POLICY.startswith("default-src 'none'; ")


def test_probes_need_nobody(tmp_path: Path) -> None:
    """What is not ready says why; the metrics count what was answered."""
    reasons: list[str] = []
    with served(tmp_path, unready_reasons=lambda: reasons) as console:
        browser = console.browser()
        assert browser.get("/healthz").text == "ok\n"
        assert (browser.get("/readyz").status, browser.get("/readyz").text) == (200, '{"ready":true,"reasons":[]}')
        reasons.append("database: away")
        assert browser.get("/readyz").status == 503
        assert "database: away" in browser.get("/readyz").text
        assert browser.ask("POST", "/metrics").status == 405
        browser.get("/me")
        counted = 'dupwatch_console_requests_total{method="GET",route="/me",status="303"} 1.0'
        assert counted in browser.get("/metrics").text


def test_head_is_as_get_without_the_page(console: Served) -> None:
    """For pages, redirects and exports."""
    browser = console.signed_in("Wei", "admin")
    for path, status in (("/me", 200), ("/audit.csv", 200), ("/nowhere", 404), ("/healthz", 200)):
        answer = browser.ask("HEAD", path)
        assert (answer.status, answer.data) == (status, b"")
        check_protected(answer)
    assert console.browser().ask("HEAD", "/me").status == 303


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/me", "GET, HEAD"),
        ("DELETE", "/people/1/role", "POST"),
        ("GET", "/sign-out", "POST"),
        ("HEAD", "/sign-out", "POST"),
        ("BREW", "/sign-in", "GET, POST, HEAD"),
        ("OPTIONS", "/me/password", "POST"),
    ],
)
def test_a_method_that_a_path_does_not_have(console: Served, method: str, path: str, allowed: str) -> None:
    """It says which there are."""
    answer = console.browser().ask(method, path)
    assert (answer.status, answer.header("allow")) == (405, allowed)


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/me/",
        "//me",
        "/people/x/role",
        "/people/-1/role",
        "/people/9223372036854775808/role",
        "/people/" + "9" * 5_000 + "/role",
        "/%00",
        "/%ff%fe",
        "/../etc/passwd",
        "/static/console.css",
    ],
)
def test_a_path_that_leads_nowhere(console: Served, path: str) -> None:
    """Whatever is in it, it is not found, and no defect."""
    answer = console.signed_in("Wei", "admin").get(path)
    assert answer.status == 404
    assert is_page(answer)


@pytest.mark.parametrize("query", ["a=%ff", "a=%00", "a=%ed%a0%80", "&".join(["a=1"] * (FIELDS_MAX + 1)), "a=\xff"])
def test_a_query_that_is_no_text(console: Served, query: str) -> None:
    """It is refused before it can reach the database."""
    with console.connect() as connection:
        connection.sendall(
            f"GET /sign-in?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode("latin-1")
        )
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 400")


def test_what_cannot_be_read_keeps_the_navigation(tmp_path: Path) -> None:
    """Of somebody who is signed in, in their language; a form as well as a query."""
    with office(tmp_path) as desk:
        desk.ann.send("/me/language", language="zh")
        token = desk.ann.get("/me").token
        for answer in (desk.ann.get("/?source=%ff"), desk.ann.post("/flags/1/note", {"token": token, "text": "a\0"})):
            assert answer.status == 400
            assert "NUL" in answer.shown
            assert "队列 报道 来源" in answer.shown
            assert "退出登录" in answer.shown


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"name=%ff", FORM, 400),
        (b"name=\xff", FORM, 400),
        (b"name=a%00b", FORM, 400),
        (b"a&" * (FIELDS_MAX + 1), FORM, 400),
        (b"name=a", "text/plain", 415),
        (b"name=a", "multipart/form-data; boundary=x", 415),
        (b'{"name": "a"}', "application/json", 415),
        (b"name=a", None, 415),
        (b"name=" + b"a" * FORM_BYTES_MAX, FORM, 413),
        (b"", FORM, 403),
        (b"&&=&=&;", FORM, 403),
        (b"name=a", FORM.upper() + "; charset=utf-8", 403),
    ],
    ids=range(12),
)
def test_a_form_that_no_browser_sends(console: Served, body: bytes, content_type: str | None, status: int) -> None:
    """It is refused with a page, and the next request is answered."""
    browser = console.browser()
    answer = browser.ask("POST", "/sign-in", body, content_type=content_type, origin=browser.url)
    assert answer.status == status, answer.shown
    assert is_page(answer)
    assert browser.get("/sign-in").status == 200


def test_a_form_without_end_is_cut_off(console: Served) -> None:
    """It is not read on beyond the limit, whose name is counted."""
    sent = 0

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield b"a" * 8_192

    browser = console.browser()
    try:
        answer = browser.ask("POST", "/sign-in", chunks(), content_type=FORM, origin=browser.url)
    except (BrokenPipeError, ConnectionResetError):
        # It was answered and the connection closed, while this end was still sending.
        pass
    else:
        assert answer.status == 413
    assert limits_met(console, "body_bytes_max") == 1
    assert sent * 8_192 < 64 * 1024 * 1024


def test_a_form_that_does_not_arrive_is_given_up(tmp_path: Path) -> None:
    """After receive_s, with a page that says so."""
    with served(tmp_path, receive_s=0.3) as console, console.connect() as connection:
        head = f"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: {console.url}\r\nContent-Type: {FORM}\r\n"
        connection.sendall(f"{head}Sec-Fetch-Site: same-origin\r\nContent-Length: 100\r\n\r\nname=".encode())
        began_s = time.monotonic()
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
        assert time.monotonic() - began_s < 60
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"did not arrive within 0.3 s" in answer
        assert limits_met(console, "receive_s") == 1


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:1", 200), ("localhost", 200), ("[::1]:80", 200), ("moderators.example", 200), ("evil.example", 421)],
)
def test_host_names(tmp_path: Path, host: str, status: int) -> None:
    """A page of another site cannot point its own name here and read this console."""
    with served(tmp_path, names=("moderators.example",)) as console:
        answer = console.browser().get("/sign-in", host=host)
        assert answer.status == status
        assert (status == 200) == ("Password" in answer.shown)


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (DatabaseUnavailable("gone"), 503, "The console's database does not answer."),
        (StoreUnavailable("gone"), 503, "The store does not answer."),
        (StoreMismatch("gone"), 503, "The store cannot be used."),
        (BadCursor("gone"), 400, "This page of the list does not exist."),
        (KeyError("inside"), 500, "The console failed."),
        (AssertionError("inside"), 500, "The console failed."),
    ],
    ids=repr,
)
def test_what_goes_wrong_is_a_page(
    tmp_path: Path,
    with_route: Callable[[Callable[[Visit], Answered]], None],
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    status: int,
    said: str,
) -> None:
    """It says what to do and never what was inside; the log has the id that the page has, and where it happened."""

    def fail(visit: Visit) -> Answered:
        raise error

    with_route(fail)
    with served(tmp_path) as console, caplog.at_level(logging.DEBUG, "dupwatch"):
        answer = console.browser().get("/test")
    assert answer.status == status
    assert is_page(answer)
    assert said in answer.shown
    assert "inside" not in answer.shown
    assert "gone" not in answer.text
    assert (answer.header("retry-after") == "5") == (status == 503)
    check_protected(answer)
    logged = [record for record in caplog.records if getattr(record, "request_id", "") == answer.header("x-request-id")]
    assert any(record.exc_info for record in logged) == (status == 500)
    assert any("gone" in record.getMessage() for record in logged) == (status == 503)


def test_the_database_may_be_away_before_anybody_is_known(console: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then a session cannot be looked up; nobody is signed out by it."""
    browser = console.signed_in("Ann")

    def away(self: Database, work: object) -> None:
        raise DatabaseUnavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "write", away)
        patch.setattr(Database, "read_connection", lambda self: away(self, None))
        answer = browser.get("/me")
        assert (answer.status, answer.header("retry-after")) == (503, "5")
        assert "The console's database does not answer." in answer.shown
        check_protected(answer)
    assert browser.get("/me").status == 200


def test_a_request_that_finds_no_thread_may_come_again(
    tmp_path: Path, with_route: Callable[[Callable[[Visit], Answered]], None]
) -> None:
    """Beyond requests_max; the limit is counted, and probes are answered all the same."""
    begun, end = threading.Event(), threading.Event()

    def wait(visit: Visit) -> Answered:
        begun.set()
        assert end.wait(60)
        return visit.page("error.html", title="", message="", offers_sign_in=False)

    with_route(wait)
    with served(tmp_path, threads=1, requests_max=1) as console:
        waiting = threading.Thread(target=console.browser().get, args=["/test"])
        waiting.start()
        try:
            assert begun.wait(60)
            answer = console.browser().get("/sign-in")
            assert (answer.status, answer.header("retry-after")) == (503, "1")
            assert "The console is too busy" in answer.shown
            assert limits_met(console, "requests_max") == 1
            assert console.browser().get("/healthz").status == 200
        finally:
            end.set()
            waiting.join()
        assert console.browser().get("/sign-in").status == 200


def test_a_page_that_is_being_made_keeps_its_connection(
    tmp_path: Path, with_route: Callable[[Callable[[Visit], Answered]], None]
) -> None:
    """Others that open more than connections_max and send nothing do not cut it."""
    begun, end = threading.Event(), threading.Event()

    def wait(visit: Visit) -> Answered:
        begun.set()
        assert end.wait(60)
        return visit.page("error.html", title="made", message="", offers_sign_in=False)

    with_route(wait)
    with served(tmp_path, connections_max=3, requests_max=2) as console:
        answers: list[Answer] = []
        waiting = threading.Thread(target=lambda: answers.append(console.browser().get("/test")))
        waiting.start()
        idle = []
        try:
            assert begun.wait(60)
            idle = [console.connect() for _ in range(6)]
            # The first of them was closed in favour of later ones.
            assert idle[0].recv(1) == b""
        finally:
            end.set()
            waiting.join()
            for connection in idle:
                connection.close()
        assert "made" in answers[0].shown


@pytest.mark.parametrize(("method", "said"), [("GET", "Try again"), ("POST", "may still take effect")])
def test_what_takes_too_long_is_given_up(
    tmp_path: Path, with_route: Callable[[Callable[[Visit], Answered]], None], method: str, said: str
) -> None:
    """After answer_s; of a form it is said that it may still have its effect."""
    end = threading.Event()

    def wait(visit: Visit) -> Answered:
        assert end.wait(60)
        return visit.page("error.html", title="", message="", offers_sign_in=False)

    with_route(wait)
    with served(tmp_path, answer_s=0.3) as console:
        browser = console.browser()
        try:
            answer = browser.get("/test") if method == "GET" else browser.send("/test", "/sign-in")
        finally:
            end.set()
        assert (answer.status, answer.header("retry-after")) == (503, "1")
        assert said in answer.shown
        assert limits_met(console, "answer_s") == 1


def test_the_id_of_a_request_may_come_from_a_proxy(console: Served) -> None:
    """Where it is sane."""
    assert console.browser().get("/nowhere", x_request_id="abc-1").header("x-request-id") == "abc-1"
    assert "<b>" not in console.browser().get("/nowhere", x_request_id="<b>").text
    assert console.browser().get("/nowhere", x_request_id="a b").header("x-request-id") != "a b"


def test_all_routes_are_counted_by_name(console: Served) -> None:
    """None is lumped together as "other"; the label has no ids."""
    series = next(family for family in console.registry.collect() if family.name == "dupwatch_console_requests")
    known = {sample.labels["route"] for sample in series.samples}
    assert {route.path for route in ROUTES} <= known


def test_pipelined_requests_get_one_answer(console: Served) -> None:
    """One request may wait for it; a connection with more is closed, and counted."""
    probe = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for sent, answers in ((probe + probe.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), 2), (probe * 200, 1)):
        with console.connect() as connection:
            connection.sendall(sent)
            data = b"".join(iter(lambda: connection.recv(65_536), b""))
        assert data.count(b"HTTP/1.1 200 OK") == answers
    assert limits_met(console, "waiting_max") == 1
