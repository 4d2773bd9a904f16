"""Receives request bodies. Limits the size of a body, the time it takes, and the bytes of all bodies in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from starlette.requests import Request

from consumer.service.problems import MEDIA_TYPE, TOO_LARGE
from consumer.web.problems import BUSY, TOO_SLOW, Limit, ProblemError, retry_later
from consumer.web.request_threads import RETRY_S

JSON: Final = "application/json"
_CLOSE_CONNECTION: Final = {"Connection": "close"}
"""The header that closes the connection, so that nobody waits for the rest of a refused body."""


class _Body:
    """A body in memory. ``timeout`` limits the wait for the rest of it."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self.bytes = 0
        self.timeout = timeout
        self.was_cut = False


class BodyReceiver:
    """A receiver that limits a body to ``body_bytes_max`` and ``receive_s``, and all bodies to ``received_bytes_max``.

    If all bodies together exceed their limit, the body that has been arriving longest is refused. So slow clients do
    not keep out other clients. For one event loop.
    """

    def __init__(self, body_bytes_max: int, received_bytes_max: int, receive_s: float) -> None:
        self._body_bytes_max = body_bytes_max
        self._received_bytes_max = received_bytes_max
        self._receive_s = receive_s
        self._bytes = 0
        # A dictionary, because it keeps the order in which the bodies began to arrive.
        self._arriving: dict[_Body, None] = {}

    @asynccontextmanager
    async def receive(self, request: Request) -> AsyncIterator[bytes]:
        """Receive and yield the body of a request. Its bytes count towards the limit until the context ends.

        Raises ``ProblemError``, and ``ClientDisconnect`` if the client disconnects.
        """
        _check_type(request)
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self._body_bytes_max:
            raise self._size_error()
        body = _Body(asyncio.timeout(self._receive_s))
        try:
            yield await self._read(request, body)
        finally:
            self._bytes -= body.bytes

    async def _read(self, request: Request, body: _Body) -> bytes:
        data = bytearray()
        try:
            async with body.timeout:
                self._arriving[body] = None
                async for chunk in request.stream():
                    if body.was_cut:
                        # Its next chunk came before its time-out.
                        raise self._room_error()
                    body.bytes += len(chunk)
                    self._bytes += len(chunk)
                    if body.bytes > self._body_bytes_max:
                        raise self._size_error()
                    data += chunk
                    self._make_room(body)
        except TimeoutError as error:
            raise (self._room_error() if body.was_cut else self._time_error()) from error
        finally:
            self._arriving.pop(body, None)
        return bytes(data)

    def _make_room(self, current: _Body) -> None:
        """Cut off the bodies that have been arriving longest, until the others fit.

        Raises ``ProblemError`` if the ``current`` body itself has been arriving longest.
        """
        while self._bytes > self._received_bytes_max:
            slowest = next(iter(self._arriving))
            if slowest is current:
                raise self._room_error()
            del self._arriving[slowest]
            self._bytes -= slowest.bytes
            slowest.bytes = 0
            slowest.was_cut = True
            slowest.timeout.reschedule(asyncio.get_running_loop().time())

    def _size_error(self) -> ProblemError:
        most = self._body_bytes_max
        detail = f"The body has more than {most} bytes. Send fewer articles at a time."
        return ProblemError(TOO_LARGE, detail, limit=Limit("body_bytes_max", most))

    def _time_error(self) -> ProblemError:
        seconds = self._receive_s
        detail = f"The body did not arrive within {seconds:g} s. Send it again, without pauses."
        return ProblemError(TOO_SLOW, detail, limit=Limit("receive_s", seconds), headers=_CLOSE_CONNECTION)

    def _room_error(self) -> ProblemError:
        detail = "Too many bytes of requests are in memory. Try again after the seconds in Retry-After."
        refused = retry_later(BUSY, detail, RETRY_S, Limit("received_bytes_max", self._received_bytes_max))
        refused.headers |= _CLOSE_CONNECTION
        return refused


def _check_type(request: Request) -> None:
    """Raise ``ProblemError`` unless the body is uncompressed JSON. Other sites cannot send JSON without a preflight."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != JSON:
        raise ProblemError(MEDIA_TYPE, f"Send the body as JSON, with the header Content-Type: {JSON}.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ProblemError(MEDIA_TYPE, "Send the body uncompressed, without the header Content-Encoding.")
