"""The application: all routes, and what every request passes before and after them."""

from collections.abc import Sequence
from typing import Final

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.routing import Route as Path
from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from consumer.console.addresses import Proxies
from consumer.console.answering import Console, Endpoint
from consumer.console.assets import POLICY
from consumer.console.context import Desk
from consumer.console.entrance import Entrance
from consumer.console.faults import not_found
from consumer.console.pages.audit_pages import audit_routes
from consumer.console.pages.deciding import deciding_routes
from consumer.console.pages.flag_page import flag_routes
from consumer.console.pages.own_page import own_routes
from consumer.console.pages.people_pages import people_routes
from consumer.console.pages.queue_pages import queue_routes
from consumer.console.pages.signing_in import sign_in_routes
from consumer.console.pages.story_deciding import story_deciding_routes
from consumer.console.pages.story_pages import story_routes
from consumer.console.pages.thresholds_page import thresholds_routes
from consumer.console.probes import Probes, probe_routes
from consumer.console.roles import OpenRoute, Route
from consumer.reviews.database import identity
from consumer.web.access import Access
from consumer.web.front import Front
from consumer.web.requests import CONSOLE
from consumer.web.workers import Workers

SECURITY_HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # With no referrer at all browsers would not say where a form comes from either.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Sent with every answer: nothing is loaded, framed or cached, and other sites do not learn what was looked at."""


def build_console(
    desk: Desk, workers: Workers, probes: Probes, *, is_tls: bool = False, fixed_person: str | None = None
) -> Front:
    """Return the application. ``workers`` make the pages, and are closed by who made them.

    ``is_tls``: it is served with a certificate of its own. ``fixed_person``: nobody signs in, everybody is that person;
    only on loopback. Raises ``ConfigError``.
    """
    proxies = Proxies(desk.section.proxy_addresses)
    with desk.database.reading() as connection:
        own = identity(connection)
    console = Console(desk, workers, Entrance(desk, proxies, fixed_person), proxies, is_tls, own)

    async def lost(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await console.error_page(console.visit(request), not_found())(scope, receive, send)

    paths = [Path(_in_digits(path), Endpoint(console, routes)) for path, routes in by_path(all_routes()).items()]
    router = Router([*paths, *probe_routes(probes)], redirect_slashes=False, default=lost)
    access = Access(names=desk.section.names)
    return Front(router, CONSOLE, access, desk.hooks, SECURITY_HEADERS, console.problem_page)


def all_routes() -> list[Route | OpenRoute]:
    """Return the routes of all pages; those of the probes need no console."""
    flags = [*queue_routes(), *flag_routes(), *deciding_routes(), *thresholds_routes()]
    stories = [*story_routes(), *story_deciding_routes()]
    return [*sign_in_routes(), *flags, *stories, *own_routes(), *people_routes(), *audit_routes()]


def by_path(routes: Sequence[Route | OpenRoute]) -> dict[str, list[Route | OpenRoute]]:
    """Return the routes of each path, one for each method."""
    found: dict[str, list[Route | OpenRoute]] = {}
    for route in routes:
        found.setdefault(route.path, []).append(route)
    return found


class _RowId(Convertor[int]):
    """The id of a row in a path. Starlette's own ``int`` takes thousands of digits, which Python does not convert."""

    regex = "[0-9]{1,19}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


_ROW_ID: Final = "dupwatch_row_id"
register_url_convertor(_ROW_ID, _RowId())


def _in_digits(path: str) -> str:
    return path.replace(":int}", f":{_ROW_ID}}}")
