"""What every request passes first: its size, its host name, and at its end the metrics."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final, cast, get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from typing_extensions import override

from consumer.console.assets import POLICY
from consumer.console.faults import N_, PageError
from consumer.model.hooks import Hooks
from consumer.web.access import Access, BadHost
from consumer.web.front import Ended, Framing, Line, head_bytes, host_of
from consumer.web.requests import HEAD_BYTES_MAX, ConsoleRoute, PageBegan, PageEnded, PageMethod

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


class Front(Framing):
    """An ASGI application around another one. ``refusal`` makes its error pages."""

    def __init__(self, app: ASGIApp, access: Access, hooks: Hooks, refusal: Refusal) -> None:
        super().__init__(SECURITY_HEADERS)
        self._app = app
        self._access = access
        self._hooks = hooks
        self._refusal = refusal

    @override
    def began(self) -> None:
        self._hooks.report(PageBegan())

    @override
    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        refused = self._why_refused(request)
        if refused is None:
            await self._app(scope, receive, send)
        else:
            await self._refusal(request, refused)(scope, receive, send)

    @override
    async def failed(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._refusal(Request(scope), defect())(scope, receive, send)

    @override
    def ended(self, scope: Scope, ended: Ended) -> Line:
        state = scope["state"]
        route, method = _route(state.get("route")), _method(scope["method"])
        self._hooks.report(PageEnded(route, method, ended.status, ended.seconds))
        return Line(method, route, {"person": state["person"]} if state.get("person") else {})

    def _why_refused(self, request: Request) -> PageError | None:
        if head_bytes(request.scope) > HEAD_BYTES_MAX:
            message = N_("The address or the headers of this request are too long.")
            return PageError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, message, limit="head_bytes_max")
        try:
            host = host_of(request.scope)
        except BadHost:
            message = N_("The host that this request names is malformed. Open the console under its address.")
            return PageError(HTTPStatus.BAD_REQUEST, message)
        # Every browser names one; HTTP/1.0 probes may not.
        if host is not None and not self._access.knows(host):
            message = N_(
                "This console does not answer under this host name. Use its IP address or a name in console.names."
            )
            return PageError(HTTPStatus.MISDIRECTED_REQUEST, message)
        return None


def defect() -> PageError:
    """Return the error that nobody expected; its page has the id of the request, and the log has the rest."""
    message = N_("The console failed. Its log says more under the id below; tell it to who runs the console.")
    return PageError(HTTPStatus.INTERNAL_SERVER_ERROR, message)


def _route(path: str | None) -> ConsoleRoute:
    return cast("ConsoleRoute", path) if path in get_args(ConsoleRoute) else "other"


def _method(method: str) -> PageMethod:
    known = "GET" if method == "HEAD" else method
    return cast("PageMethod", known) if known in get_args(PageMethod) else "other"
