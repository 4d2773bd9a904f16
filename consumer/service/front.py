"""What every request passes first: its id, the host name, and at its end the metrics and a line in the log.

Whatever goes wrong behind it becomes a problem.
"""

import logging
import time
from typing import Any, Final, cast, get_args

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from consumer.model.hooks import Hooks
from consumer.pages.access import Access
from consumer.pages.connections import HEAD_BYTES_MAX
from consumer.service.connections import head_too_large
from consumer.service.problems import UNKNOWN_HOST, ProblemError, defect, response_of
from consumer.service.request_ids import HEADER, request_id
from consumer.telemetry.metrics.requests import LimitMet, Method, RequestBegan, RequestEnded, Route
from consumer.tokens.token import Caller

log = logging.getLogger("dupwatch")

CLIENT_LEFT: Final = 499
_QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Routes that are asked for all the time; their lines are of the level debug."""
_HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


class Front:
    """An ASGI application around another one.

    It hands paths on as they were sent, percent-encoded: an id may contain every character, a slash among them.
    """

    def __init__(self, app: ASGIApp, access: Access, hooks: Hooks) -> None:
        self._app = app
        self._access = access
        self._hooks = hooks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        began_ns, began_s = time.time_ns(), time.perf_counter()
        headers = Headers(scope=scope)
        named = request_id(headers.get(HEADER))
        scope["path"] = scope["raw_path"].decode("ascii")
        scope.setdefault("state", {})["request_id"] = named
        status = CLIENT_LEFT

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update({HEADER: named, **_HEADERS})
            await send(message)

        self._hooks.report(RequestBegan())
        try:
            await self._answer(scope, receive, observed, headers, named)
        except ClientDisconnect:
            # There is nobody to answer.
            status = CLIENT_LEFT
        except Exception:
            log.exception("A request failed", extra={"request_id": named})
            if status == CLIENT_LEFT:
                await response_of(defect(), named)(scope, receive, observed)
        finally:
            self._end(scope, headers, named, status, began_ns, time.perf_counter() - began_s)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, headers: Headers, named: str) -> None:
        if _head_bytes(scope) > HEAD_BYTES_MAX:
            self._hooks.report(LimitMet("head_bytes_max"))
            await response_of(head_too_large(), named)(scope, receive, send)
            return
        host = headers.get("host")
        # Every browser sends the header; HTTP/1.0 probes may not.
        if host and not self._access.knows(host):
            error = ProblemError(
                UNKNOWN_HOST, "This host name is not served. Use an IP address, localhost or a name in service.names."
            )
            await response_of(error, named)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _end(self, scope: Scope, headers: Headers, named: str, status: int, began_ns: int, seconds: float) -> None:
        route, method = _route(scope), _method(scope)
        self._hooks.report(RequestEnded(route, method, status, began_ns, seconds, named, headers.get("traceparent")))
        level = logging.DEBUG if route in _QUIET else logging.INFO
        log.log(
            level,
            "%s %s %d",
            method,
            route,
            status,
            extra={"request_id": named, "milliseconds": round(seconds * 1_000, 1), **_access(scope)},
        )


def _access(scope: Scope) -> dict[str, str]:
    """Return the name of the token, and why it was refused, as far as there is such a thing."""
    state = scope["state"]
    caller: Caller | None = state.get("caller")
    name = state.get("refused_token") if caller is None else caller.name
    return {field: value for field, value in (("token", name), ("refused", state.get("refused"))) if value}


def _head_bytes(scope: Scope) -> int:
    """Return the bytes of a head. h11 refuses one that is too large only as long as it has not arrived as a whole."""
    return len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(n) + len(v) for n, v in scope["headers"])


def _route(scope: Scope) -> Route:
    """Return the template of the path: ids are not part of it."""
    path: Any = getattr(scope.get("route"), "path", None)
    return cast("Route", path) if path in get_args(Route) else "other"


def _method(scope: Scope) -> Method:
    method = scope["method"]
    return cast("Method", method) if method in get_args(Method) else "other"
