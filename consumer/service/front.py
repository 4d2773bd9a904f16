"""What every request passes first: its size, its host name, and at its end the metrics.

Whatever goes wrong behind it becomes a problem.
"""

from typing import Any, Final, cast, get_args

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from typing_extensions import override

from consumer.model.hooks import Hooks
from consumer.tokens.token import Caller
from consumer.web.access import Access, BadHost
from consumer.web.front import Ended, Framing, Line, head_bytes, host_of
from consumer.web.problems import MALFORMED, UNKNOWN_HOST, ProblemError, defect, head_too_large, response_of
from consumer.web.requests import HEAD_BYTES_MAX, LimitMet, Method, RequestBegan, RequestEnded, Route

_HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


class Front(Framing):
    """An ASGI application around another one.

    It hands paths on as they were sent, percent-encoded: an id may contain every character, a slash among them.
    """

    def __init__(self, app: ASGIApp, access: Access, hooks: Hooks) -> None:
        super().__init__(_HEADERS)
        self._app = app
        self._access = access
        self._hooks = hooks

    @override
    def began(self) -> None:
        self._hooks.report(RequestBegan())

    @override
    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["path"] = scope["raw_path"].decode("ascii")
        refused = self._why_refused(scope)
        if refused is None:
            await self._app(scope, receive, send)
        else:
            await response_of(refused, scope["state"]["request_id"])(scope, receive, send)

    @override
    async def failed(self, scope: Scope, receive: Receive, send: Send) -> None:
        await response_of(defect(), scope["state"]["request_id"])(scope, receive, send)

    @override
    def ended(self, scope: Scope, ended: Ended) -> Line:
        route, method = _route(scope), _method(scope)
        trace_parent = Headers(scope=scope).get("traceparent")
        self._hooks.report(
            RequestEnded(route, method, ended.status, ended.began_ns, ended.seconds, ended.request_id, trace_parent)
        )
        return Line(method, route, _access(scope))

    def _why_refused(self, scope: Scope) -> ProblemError | None:
        if head_bytes(scope) > HEAD_BYTES_MAX:
            self._hooks.report(LimitMet("head_bytes_max"))
            return head_too_large()
        try:
            host = host_of(scope)
        except BadHost as error:
            return ProblemError(MALFORMED, str(error))
        # Every browser names one; HTTP/1.0 probes may not.
        if host is not None and not self._access.knows(host):
            return ProblemError(
                UNKNOWN_HOST, "This host name is not served. Use an IP address, localhost or a name in service.names."
            )
        return None


def _access(scope: Scope) -> dict[str, str]:
    """Return the name of the token, and why it was refused, as far as there is such a thing."""
    state = scope["state"]
    caller: Caller | None = state.get("caller")
    name = state.get("refused_token") if caller is None else caller.name
    return {field: value for field, value in (("token", name), ("refused", state.get("refused"))) if value}


def _route(scope: Scope) -> Route:
    path: Any = getattr(scope.get("route"), "path", None)
    return cast("Route", path) if path in get_args(Route) else "other"


def _method(scope: Scope) -> Method:
    method = scope["method"]
    return cast("Method", method) if method in get_args(Method) else "other"
