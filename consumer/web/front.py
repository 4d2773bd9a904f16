"""The outer layer of every request: its id, the checks of its size and host name, its log line, and its metrics."""

import logging
import random
import re
import time
from collections.abc import Callable, Mapping
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from consumer.model.hooks import Hooks
from consumer.text.redaction import without_credentials
from consumer.web.access import Access, BadHost, request_host
from consumer.web.problems import MALFORMED, UNKNOWN_HOST, ProblemError, defect, head_too_large
from consumer.web.requests import HEAD_BYTES_MAX, ICON_PATH, HttpInterface, LimitExceeded, RequestEnded, RequestStarted

log = logging.getLogger("dupwatch")

CLIENT_LEFT: Final = 499
QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics", ICON_PATH})
"""Routes that are requested very often. Their log lines have the level debug."""
LOGGED: Final = ("token", "refused", "person")
"""Members of a request's state that are logged if set: the caller's token or name, and the reason of a refusal."""
_ID_HEADER: Final = "x-request-id"
_ID_CHARS_MAX: Final = 128
_ID_BITS: Final = 128
_SANE_ID: Final = re.compile(rf"[!-~]{{1,{_ID_CHARS_MAX}}}", re.ASCII)

ProblemAnswer = Callable[[Request, ProblemError], Response]
"""Makes the answer to a request that ends with a problem."""


class AnswerCutOff(Exception):  # noqa: N818  # named for the answer
    """An answer ends early, so its connection must be closed. The raiser has logged why."""


class Front:
    """An ASGI application around ``app``, which answers the requests of ``interface``.

    ``headers`` are sent with every answer. Two members of a request's state may be set while it is answered: ``route``,
    which is logged instead of the router's path, and ``limit``, the name of a limit that the request exceeded.
    """

    def __init__(
        self,
        app: ASGIApp,
        interface: HttpInterface,
        access: Access,
        hooks: Hooks,
        headers: Mapping[str, str],
        problem_answer: ProblemAnswer,
    ) -> None:
        self._app = app
        self._interface = interface
        self._access = access
        self._hooks = hooks
        self._headers = headers
        self._problem_answer = problem_answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        began_ns, began_s = time.time_ns(), time.perf_counter()
        request, status = Request(scope), CLIENT_LEFT
        id_ = request.state.request_id = request_id(request.headers.get(_ID_HEADER))

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if (limit := scope["state"].get("limit")) is not None:
                    self._hooks.report(LimitExceeded(limit))
                MutableHeaders(scope=message).update({_ID_HEADER: id_, **self._headers})
            await send(message)

        self._hooks.report(RequestStarted())
        try:
            problem = self._problem(request)
            answer = self._app if problem is None else self._problem_answer(request, problem)
            await answer(scope, receive, observed)
        except ClientDisconnect:
            # The answer may have begun, but nobody reads it.
            status = CLIENT_LEFT
        except AnswerCutOff:
            # The server closes the connection of an incomplete answer.
            pass
        except Exception:
            log.exception("A request failed", extra={"request_id": id_})
            if status == CLIENT_LEFT:
                await self._problem_answer(request, defect())(scope, receive, observed)
        finally:
            self._end(request, status, began_ns, time.perf_counter() - began_s)

    def _problem(self, request: Request) -> ProblemError | None:
        """Return why a request is refused before routing, or None."""
        if head_bytes(request.scope) > HEAD_BYTES_MAX:
            return head_too_large()
        try:
            host = request_host(request.headers.getlist("host"), request.scope["raw_path"].decode("ascii"))
        except BadHost as error:
            return ProblemError(MALFORMED, str(error))
        # Every browser sends a host; HTTP/1.0 probes may not.
        if host is not None and not self._access.allows_host(host):
            return ProblemError(
                UNKNOWN_HOST,
                "This host name is not served. Use an IP address, localhost or a name in "
                f"{self._interface.section}.names.",
            )
        return None

    def _end(self, request: Request, status: int, began_ns: int, seconds: float) -> None:
        """Report and log the end of a request, without the ids in its path."""
        state = request.scope["state"]
        path = state.get("route") or getattr(request.scope.get("route"), "path", None)
        route, method = self._interface.route_label(path), self._interface.method_label(request.method)
        id_, trace_parent = state["request_id"], request.headers.get("traceparent")
        self._hooks.report(RequestEnded(route, method, status, began_ns, seconds, id_, trace_parent))
        level = logging.DEBUG if route in QUIET else logging.INFO
        fields = {"request_id": id_, "milliseconds": round(seconds * 1_000, 1)}
        fields |= {name: state[name] for name in LOGGED if state.get(name)}
        log.log(level, "%s %s %d", method, route, status, extra=fields)


def request_id(sent: str | None) -> str:
    """Return the id that the client sent if it is short, visible ASCII and contains no secret, or else a new id."""
    if sent is not None and _SANE_ID.fullmatch(sent) and without_credentials(sent) == sent:
        return sent
    # The system's source of randomness is a system call, in which this thread may lose the interpreter to another.
    return f"{random.getrandbits(_ID_BITS):0{_ID_BITS // 4}x}"


def head_bytes(scope: Scope) -> int:
    """Return the number of bytes in the path, query and headers of a head. h11 limits only incomplete heads."""
    return len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(n) + len(v) for n, v in scope["headers"])
