"""What holds for every request, whatever it asks for: it has an id, an answer, and at its end a line in the log."""

import logging
import re
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final, NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from consumer.text.redaction import without_credentials
from consumer.web.access import host_named

log = logging.getLogger("dupwatch")

CLIENT_LEFT: Final = 499
QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Routes that are asked for all the time; their lines are of the level debug."""
_ID_HEADER: Final = "x-request-id"
_ID_CHARS_MAX: Final = 128
_SANE_ID: Final = re.compile(rf"[!-~]{{1,{_ID_CHARS_MAX}}}", re.ASCII)


class Ended(NamedTuple):
    """A request that was answered, or whose client left. ``began_ns`` is in nanoseconds since 1970."""

    request_id: str
    status: int
    began_ns: int
    seconds: float


class Line(NamedTuple):
    """What the log says of a request. ``route`` is the template of its path: ids are not part of it."""

    method: str
    route: str
    more: Mapping[str, str]


class CutOff(Exception):  # noqa: N818  # named for the answer
    """An answer ends before it is whole, so that its connection is closed. Why was logged where it is known."""


class Framing(ABC):
    """An ASGI application. ``headers`` are sent with every answer."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        began_ns, began_s = time.time_ns(), time.perf_counter()
        named = request_id(Headers(scope=scope).get(_ID_HEADER))
        scope.setdefault("state", {})["request_id"] = named
        status = CLIENT_LEFT

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update({_ID_HEADER: named, **self._headers})
            await send(message)

        self.began()
        try:
            await self.answer(scope, receive, observed)
        except ClientDisconnect:
            # There is nobody to answer.
            status = CLIENT_LEFT
        except CutOff:
            # The server closes the connection of an answer that lacks its end.
            pass
        except Exception:
            log.exception("A request failed", extra={"request_id": named})
            if status == CLIENT_LEFT:
                await self.failed(scope, receive, observed)
        finally:
            seconds = time.perf_counter() - began_s
            _tell(self.ended(scope, Ended(named, status, began_ns, seconds)), named, status, seconds)

    @abstractmethod
    def began(self) -> None:
        """Report that the head of a request has arrived."""

    @abstractmethod
    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""

    @abstractmethod
    async def failed(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer where nobody expected what went wrong."""

    @abstractmethod
    def ended(self, scope: Scope, ended: Ended) -> Line:
        """Report the end of a request, and return its line."""


def request_id(sent: str | None) -> str:
    """Return what the client sent if it is visible ASCII, not too long and no secret, otherwise a new id."""
    if sent is not None and _SANE_ID.fullmatch(sent) and without_credentials(sent) == sent:
        return sent
    return uuid.uuid4().hex


def head_bytes(scope: Scope) -> int:
    """Return the bytes of a head. h11 refuses one that is too large only as long as it has not arrived as a whole."""
    return len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(n) + len(v) for n, v in scope["headers"])


def host_of(scope: Scope) -> str | None:
    """Return the host that a request names, None where it names none. Raises ``BadHost``."""
    return host_named(Headers(scope=scope).getlist("host"), scope["raw_path"].decode("ascii"))


def _tell(line: Line, named: str, status: int, seconds: float) -> None:
    level = logging.DEBUG if line.route in QUIET else logging.INFO
    fields = {"request_id": named, "milliseconds": round(seconds * 1_000, 1), **line.more}
    log.log(level, "%s %s %d", line.method, line.route, status, extra=fields)
