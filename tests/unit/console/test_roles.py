"""Who may ask for what: every route of the console, for everybody who could ask.

The routes come from the console itself, so that a new one is in the table from the beginning.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from starlette.routing import Route as AnsweredPath
from starlette.routing import Router

from consumer.console import app as app_module
from consumer.console.answering import OpenRoute, Route
from consumer.console.app import ROUTES, by_path
from consumer.console.probes import PATHS
from consumer.reviews import audit, people
from consumer.reviews.audit import AuditFilters
from consumer.web.front import Front
from consumer.web.requests import CONSOLE, ICON_PATH
from tests.unit.console.banks import bank, bank_file, item
from tests.unit.console.serving import Answer, Browser, Served, served

HOUR_MS: Final = 3_600_000
POSTS: Final = [route for route in ROUTES if route.method == "POST"]
PAGES: Final = [route for route in ROUTES if isinstance(route, Route) and route.method == "GET"]
OF_PEOPLE: Final = [route for route in ROUTES if isinstance(route, Route)]
ELSEWHERE: Final[list[dict[str, Any]]] = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:1"},
    {"origin": "file://"},
    {"origin": "http://["},
    {"origin": ""},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},
    {"sec_fetch_site": "cross-site", "origin": None},
    {"origin": None},
]
"""Headers of forms that are not from a page of the console, or do not say so."""


def named(route: Route | OpenRoute) -> str:
    """Return how a test calls a route."""
    return f"{route.method} {route.path}"


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A console in which there are Ann, who reviews, Wei, an admin, and Bob, whose account is disabled; and a bank."""
    folder = tmp_path_factory.mktemp("office")
    with served(folder, banks=bank_file(folder / "banks.jsonl", *(bank("spam"), item("spam", "offer")))) as console:
        console.add("Ann")
        console.add("Wei", "admin")
        bob = console.add("Bob", "admin")
        console.database.write(lambda c: people.disable(c, bob.person_id, console.clock()))
        # Banks are read when a page of them is asked for first.
        wei = console.browser()
        wei.sign_in("Wei")
        assert wei.get("/banks").status == 200
        yield console


def ask(browser: Browser, route: Route | OpenRoute, token: str | None, **headers: str | None) -> Answer:
    """Ask for a route, with what a form would send if it sent nothing else."""
    path = re.sub(r"\{[a-z_]+:int\}", "999999", route.path).replace("{bank}", "spam").replace("{item}", "offer")
    if route.method == "GET":
        return browser.get(path, **headers)
    return browser.post(path, {} if token is None else {"token": token}, **headers)


def entries(office: Served) -> int:
    """Return how many entries the audit log has: everything that changes something adds one."""
    with office.database.read_connection() as connection:
        return len(list(audit.search(connection, AuditFilters(), None, 1_000).rows))


def check_refused(office: Served, browser: Browser, route: Route | OpenRoute, token: str | None, **headers: str) -> str:
    """Ask for what is not allowed; return what the page says."""
    before = entries(office)
    answer = ask(browser, route, token, **headers)
    assert answer.status == 403, answer.shown
    assert entries(office) == before
    return answer.shown


def check_sent_to_sign_in(browser: Browser, route: Route) -> None:
    """Ask for a page without being signed in."""
    answer = ask(browser, route, None)
    assert answer.status == 303
    assert answer.header("location").startswith("/sign-in")
    assert answer.data == b""


def test_all_routes_are_there() -> None:
    """Or the table would be empty; no path has two answers."""
    assert {"GET /people", "POST /sign-in", "POST /sign-out", "GET /audit.csv"} <= {named(route) for route in ROUTES}
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)
    assert sum(map(len, by_path(ROUTES).values())) == len(ROUTES)


def test_only_the_icon_and_probes_are_not_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else the application answers is a route of the table, and is counted under its path."""
    routers: list[Router] = []

    def front(router: Router, *rest: Any) -> Front:  # noqa: ANN401  # as Front takes them
        routers.append(router)
        return Front(router, *rest)

    monkeypatch.setattr(app_module, "Front", front)
    with served(tmp_path):
        (router,) = routers
    answered = {re.sub(r":\w+}", ":int}", route.path) for route in router.routes if isinstance(route, AnsweredPath)}
    assert len(answered) == len(router.routes)
    assert answered - {route.path for route in ROUTES} == {ICON_PATH, *PATHS}
    assert answered == {*CONSOLE.paths}


def test_only_signing_in_is_open() -> None:
    """Everything else needs a role."""
    assert {route.path for route in ROUTES if isinstance(route, OpenRoute)} == {"/sign-in"}


def test_people_the_log_and_banks_themselves_are_for_admins() -> None:
    """And what concerns banks that allow or alarms, and ranks of sources; nothing else is."""
    of_items = {route for route in OF_PEOPLE if route.path.endswith(("/confirm", "/unconfirm", "/release", "/undo"))}
    of_items = {route for route in of_items if "/items/" in route.path}
    of_banks = [route for route in OF_PEOPLE if route.path.startswith("/banks") and "/items" not in route.path]
    changing = {route for route in of_banks if route.method == "POST" or route.path.endswith("/remove")}
    others = {route for route in OF_PEOPLE if route.path.startswith(("/people", "/audit", "/reasons"))}
    # Reviewers see how webhooks do, and neither their URLs nor what receivers say.
    of_webhooks = {route for route in OF_PEOPLE if route.path.startswith("/webhooks")}
    of_webhooks = {route for route in of_webhooks if route.path != "/webhooks" or route.method == "POST"}
    ranks = {route for route in OF_PEOPLE if route.path.startswith("/sources/")}
    # An item of a bank that allows.
    of_stories = {route for route in OF_PEOPLE if route.path == "/stories/{story_id:int}/bank"}
    of_admins = {route for route in OF_PEOPLE if route.role == "admin"}
    assert of_admins == others | changing | of_items | of_webhooks | ranks | of_stories


def test_sections_of_reviewers_are_known() -> None:
    """A new one fails here until somebody says whom it is for."""
    sections = {f"/{route.path.split('/')[1]}" for route in OF_PEOPLE if route.role == "reviewer"}
    assert sections == {
        "/", "/banks", "/decisions", "/decisions.csv", "/decisions.jsonl", "/flags", "/look-up", "/me", "/queue",
        "/reports", "/reviews", "/sign-out", "/sources", "/standing", "/stories", "/thresholds", "/webhooks",
    }  # fmt: skip


@pytest.mark.parametrize("route", OF_PEOPLE, ids=named)
def test_nobody_is_sent_to_sign_in(office: Served, route: Route) -> None:
    """A page leads there; a form says that it had no effect."""
    browser = office.browser()
    if route.method == "GET":
        check_sent_to_sign_in(browser, route)
    else:
        token = browser.get("/sign-in").token
        assert "Your session has ended. Nothing was changed" in check_refused(office, browser, route, token)


@pytest.mark.parametrize("route", OF_PEOPLE, ids=named)
def test_a_session_that_has_expired_is_none(office: Served, route: Route) -> None:
    """Its cookie does nothing any more."""
    browser = office.in_session_of("Wei", begun_ms=HOUR_MS)
    if route.method == "GET":
        check_sent_to_sign_in(browser, route)
    else:
        check_refused(office, browser, route, browser.get("/sign-in").token)


@pytest.mark.parametrize("route", OF_PEOPLE, ids=named)
def test_somebody_who_is_disabled_is_out(office: Served, route: Route) -> None:
    """Whatever the role, and although the session would still last."""
    browser = office.in_session_of("Bob")
    if route.method == "GET":
        check_sent_to_sign_in(browser, route)
    else:
        check_refused(office, browser, route, browser.get("/sign-in").token)


@pytest.mark.parametrize("route", OF_PEOPLE, ids=named)
def test_a_reviewer_may_what_reviewers_may(office: Served, route: Route) -> None:
    """And nothing that is for admins."""
    browser = office.in_session_of("Ann")
    token = browser.get("/me").token
    if route.role == "admin":
        assert "Only an admin can do this" in check_refused(office, browser, route, token)
    else:
        check_answered(ask(browser, route, token))


@pytest.mark.parametrize("route", OF_PEOPLE, ids=named)
def test_an_admin_may_everything(office: Served, route: Route) -> None:
    """Nothing is refused to an admin for who they are."""
    browser = office.in_session_of("Wei")
    check_answered(ask(browser, route, browser.get("/me").token))


@pytest.mark.parametrize("route", PAGES, ids=named)
def test_a_link_from_elsewhere_leads_to_a_page(office: Served, route: Route) -> None:
    """Somebody follows a link in a chat: pages change nothing."""
    answer = ask(office.in_session_of("Wei"), route, None, origin="https://chat.example", sec_fetch_site="cross-site")
    check_answered(answer)


@pytest.mark.parametrize("route", POSTS, ids=named)
def test_a_form_of_another_origin_has_no_effect(office: Served, route: Route | OpenRoute) -> None:
    """Even with a session and the right token; nor does one that does not say where it is from."""
    browser = office.in_session_of("Wei")
    token = browser.get("/me").token
    for headers in ELSEWHERE:
        assert "a page of another site" in check_refused(office, browser, route, token, **headers), headers


@pytest.mark.parametrize("route", POSTS, ids=named)
def test_a_form_without_token_has_no_effect(office: Served, route: Route | OpenRoute) -> None:
    """A session alone is not enough."""
    assert "out of date" in check_refused(office, office.in_session_of("Wei"), route, None)


@pytest.mark.parametrize("route", POSTS, ids=named)
def test_a_form_with_a_wrong_token_has_no_effect(office: Served, route: Route | OpenRoute) -> None:
    """A token belongs to one session."""
    others = [browser.get("/sign-in").token for browser in (office.in_session_of("Wei"), office.browser())]
    browser = office.in_session_of("Wei")
    for wrong in ("", "0" * 64, "Ω", *others):
        assert "out of date" in check_refused(office, browser, route, wrong), wrong


def check_answered(answer: Answer) -> None:
    """It was not refused for who asked, and no defect showed."""
    assert answer.status in {200, 303, 400, 404, 409}, answer.shown
    if answer.status == 303:
        assert not answer.header("location").startswith("/sign-in?")
