"""What every request passes first: its id, the host name, and at its end the headers, the metrics and the log."""

import logging
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, cast, get_args

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from consumer.console.assets import POLICY
from consumer.console.faults import N_, PageError
from consumer.model.hooks import Hooks
from consumer.pages.access import Access
from consumer.pages.connections import HEAD_BYTES_MAX
from consumer.service.request_ids import HEADER, request_id
from consumer.telemetry.metrics.console_requests import ConsoleRoute, PageBegan, PageEnded, PageMethod

log = logging.getLogger("dupwatch")

CLIENT_LEFT: Final = 499
QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Routes that are asked for all the time; their lines are of the level debug."""
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

Refusal = Callable[[Request, PageError], Response]
"""Makes the page for what ends a request."""


class Front:
    """An ASGI application around another one. ``refusal`` makes its error pages."""

    def __init__(self, app: ASGIApp, access: Access, hooks: Hooks, refusal: Refusal) -> None:
        self._app = app
        self._access = access
        self._hooks = hooks
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        began_s = time.perf_counter()
        named = request_id(Headers(scope=scope).get(HEADER))
        scope.setdefault("state", {})["request_id"] = named
        status = CLIENT_LEFT

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update({HEADER: named, **SECURITY_HEADERS})
            await send(message)

        self._hooks.report(PageBegan())
        try:
            await self._answer(scope, receive, observed)
        except ClientDisconnect:
            # There is nobody to answer.
            status = CLIENT_LEFT
        except Exception:
            log.exception("A request to the console failed", extra={"request_id": named})
            if status == CLIENT_LEFT:
                await self._refusal(Request(scope), defect())(scope, receive, observed)
        finally:
            self._end(scope, named, status, time.perf_counter() - began_s)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        error = self._why_refused(request)
        if error is None:
            await self._app(scope, receive, send)
        else:
            await self._refusal(request, error)(scope, receive, send)

    def _why_refused(self, request: Request) -> PageError | None:
        if _head_bytes(request.scope) > HEAD_BYTES_MAX:
            message = N_("The address or the headers of this request are too long.")
            return PageError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, message, limit="head_bytes_max")
        host = request.headers.get("host")
        # Every browser sends the header; HTTP/1.0 probes may not.
        if host and not self._access.knows(host):
            message = N_(
                "This console does not answer under this host name. Use its IP address or a name in console.names."
            )
            return PageError(HTTPStatus.MISDIRECTED_REQUEST, message)
        return None

    def _end(self, scope: Scope, named: str, status: int, seconds: float) -> None:
        state = scope["state"]
        route, method = _route(state.get("route")), _method(scope["method"])
        self._hooks.report(PageEnded(route, method, status, seconds))
        person = {"person": state["person"]} if state.get("person") else {}
        log.log(
            logging.DEBUG if route in QUIET else logging.INFO,
            "%s %s %d",
            method,
            route,
            status,
            extra={"request_id": named, "milliseconds": round(seconds * 1_000, 1), **person},
        )


def defect() -> PageError:
    """Return the error that nobody expected; its page has the id of the request, and the log has the rest."""
    message = N_("The console failed. Its log says more under the id below; tell it to who runs the console.")
    return PageError(HTTPStatus.INTERNAL_SERVER_ERROR, message)


def _head_bytes(scope: Scope) -> int:
    """Return the bytes of a head. h11 refuses one that is too large only as long as it has not arrived as a whole."""
    return len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(n) + len(v) for n, v in scope["headers"])


def _route(path: str | None) -> ConsoleRoute:
    return cast("ConsoleRoute", path) if path in get_args(ConsoleRoute) else "other"


def _method(method: str) -> PageMethod:
    known = "GET" if method == "HEAD" else method
    return cast("PageMethod", known) if known in get_args(PageMethod) else "other"
