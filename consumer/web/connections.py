"""Limits on connections: how many are open, how large a request's head is, and how long the head may take to arrive.

uvicorn limits none of that: it closes idle connections only after their first request, and its refusals are plain text.
A client that opens connections and sends nothing must not keep out others. So at the limit, a new connection replaces
the least recently used one that no thread is working for.

uvicorn does not limit unread answers, which stay in memory. This module limits their number of bytes and the time to
read them. The next request of a connection waits until its earlier answers are read.

uvicorn does not limit pipelined requests, which are sent before the current one is answered. Each costs the sender a
few bytes and this process a thousand times as much work. One request may wait; a connection with more is closed after
the current answer.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import h11
from typing_extensions import override
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol

from consumer.web.front import request_id
from consumer.web.problems import MALFORMED, TOO_SLOW, Limit, ProblemError, head_too_large, response_of
from consumer.web.requests import HEAD_BYTES_MAX, ConnectionsChanged, LimitExceeded, LimitName

_LENGTH: Final = b"content-length"
_ENCODING: Final = b"transfer-encoding"
_CHUNKED_SINCE: Final = b"1.1"
_PARTS: Final = (h11.Request, h11.Data, h11.EndOfMessage)
WAITING_BYTES_MAX: Final = 64 * 1024
"""The maximum size of the request that may wait behind the current one of a connection."""
_ARRIVING: Final = frozenset({h11.IDLE, h11.SEND_BODY})
"""The states of a client whose current request has not arrived completely."""
_TOO_LARGE: Final = 431


class RequestParser(h11.Connection):
    """h11's parser of one connection, which also refuses requests with ambiguous framing.

    ``head_bytes_max`` limits a head that is still arriving.

    A request with both ``Content-Length`` and ``Transfer-Encoding`` may hide another request from a proxy that uses
    ``Content-Length``. So may an HTTP/1.0 request with ``Transfer-Encoding`` (RFC 9112, 6.1). h11 uses
    ``Transfer-Encoding`` and keeps the connection.
    """

    def __init__(self, head_bytes_max: int) -> None:
        super().__init__(h11.SERVER, head_bytes_max)

    @override
    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event. After a ``h11.RemoteProtocolError`` the connection must be closed."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            _check_framing(event)
        return event


def several_requests(data: bytes) -> bool:
    """Return whether these bytes continue after their first request. False if it is malformed or incomplete."""
    if not data:
        # h11 would take empty input as the end of the connection.
        return False
    parser = RequestParser(len(data))
    parser.receive_data(data)
    try:
        while isinstance(event := parser.next_event(), _PARTS):
            pass
    except h11.RemoteProtocolError:
        return False
    return event is h11.PAUSED and bool(parser.trailing_data[0])


def _check_framing(request: h11.Request) -> None:
    names = {name for name, _ in request.headers}
    if _ENCODING not in names:
        return
    if _LENGTH in names:
        raise h11.RemoteProtocolError("both Content-Length and Transfer-Encoding; send one of them")
    if request.http_version < _CHUNKED_SINCE:
        raise h11.RemoteProtocolError("Transfer-Encoding needs HTTP/1.1")


class ConnectionLimits(NamedTuple):
    """Limits on open connections, on the time for a head, and on the time and the size of unread answers."""

    connections_max: int
    receive_s: float
    send_s: float
    unread_bytes_max: int


class Connections:
    """The open connections and their limits. Used by one event loop.

    ``report`` gets exceeded limits and the number of open connections.
    """

    def __init__(self, limits: ConnectionLimits, report: Callable[[object], None]) -> None:
        self.receive_s = limits.receive_s
        self.send_s = limits.send_s
        self._connections_max = limits.connections_max
        self._unread_bytes_max = limits.unread_bytes_max
        self._report = report
        # Connections with unread answers, oldest first.
        self._unread: dict[Connection, None] = {}
        # Ordered by when their last request ended, or else when they were opened.
        self._open: dict[Connection, None] = {}

    def protocol(self, *arguments: Any, **options: Any) -> "Connection":  # noqa: ANN401  # as uvicorn gives them
        """Make the protocol of a new connection."""
        return Connection(self, *arguments, **options)

    def enter(self, connection: "Connection") -> bool:
        """Add a new connection. If there are too many, close the least recently used one that is not needed.

        If all others are needed, close the new one and return False.
        """
        if len(self._open) >= self._connections_max:
            self.count_limit("connections_max")
            given_up = next((each for each in self._open if not each.is_needed), connection)
            given_up.abort()
            if given_up is connection:
                return False
        self._open[connection] = None
        self._report(ConnectionsChanged(len(self._open)))
        return True

    def note_use(self, connection: "Connection") -> None:
        """Note that a connection was used, so that others are closed before it."""
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None

    def note_unread(self, connection: "Connection") -> None:
        """Note that a client reads too slowly.

        If unread answers exceed their limit, close connections that have been slow for longer.
        """
        self._unread[connection] = None
        while sum(each.unread_bytes for each in self._unread) > self._unread_bytes_max:
            slowest = next(iter(self._unread))
            if slowest is connection:
                # A single answer may exceed the limit.
                return
            self.count_limit("unread_bytes_max")
            slowest.abort()

    def note_read(self, connection: "Connection") -> None:
        """Note that a client has read most of its answers."""
        self._unread.pop(connection, None)

    def leave(self, connection: "Connection") -> None:
        """Remove a closed connection."""
        self._unread.pop(connection, None)
        if self._open.pop(connection, 0) is None:
            self._report(ConnectionsChanged(len(self._open)))

    def count_limit(self, name: LimitName) -> None:
        """Report that a limit was exceeded."""
        self._report(LimitExceeded(name))


class Connection(H11Protocol):
    """A connection of uvicorn with our limits."""

    def __init__(self, connections: Connections, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  # as above
        super().__init__(*arguments, **options)
        self.conn = RequestParser(HEAD_BYTES_MAX)
        self._connections = connections
        self._head_due: asyncio.TimerHandle | None = None
        self._reading_due: asyncio.TimerHandle | None = None
        # Whether the connection closes after the current answer. If so, further input is discarded.
        self._is_last = False

    @property
    def unread_bytes(self) -> int:
        """The number of bytes of answers that are still in this process."""
        return self.transport.get_write_buffer_size()

    @property
    def is_needed(self) -> bool:
        """Whether a thread works on the current request, as ``connection_is_needed`` in the request's state says."""
        return self._has_request and self.scope["state"].get("connection_is_needed", False)

    @property
    def _has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        self.transport = transport
        if self._connections.enter(self):
            self.begin(transport)

    @override
    def data_received(self, data: bytes) -> None:
        # In pieces, so that at most two are in memory when the limit on waiting requests takes effect.
        for start in range(0, len(data), WAITING_BYTES_MAX):
            if not self._is_last:
                super().data_received(data[start : start + WAITING_BYTES_MAX])
        self._expect_head()

    @override
    def _should_upgrade(self) -> bool:
        # No upgrades are supported, and for each attempt uvicorn would warn that a package is missing.
        return False

    @override
    def handle_events(self) -> None:
        if self.flow.write_paused and not self._has_request:
            # The answer to the next request would stay in memory, too.
            self.flow.pause_reading()
        else:
            super().handle_events()
            self._limit_waiting()

    @override
    def on_response_complete(self) -> None:
        self._connections.note_use(self)
        self._expect_reading()
        super().on_response_complete()

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._connections.note_unread(self)

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._connections.note_read(self)
        if not self._has_request and not self.transport.is_closing():
            self.flow.resume_reading()
            self.handle_events()
            self._expect_head()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        if self._reading_due is not None:
            self._reading_due.cancel()
        self._connections.leave(self)
        super().connection_lost(exc)

    @override
    def send_400_response(self, msg: str) -> None:
        """Answer input that is not HTTP or has too large a head. Called while the error is handled."""
        error = sys.exception()
        if getattr(error, "error_status_hint", 0) == _TOO_LARGE:
            self._connections.count_limit("head_bytes_max")
            self._refuse(head_too_large())
        else:
            # h11 quotes the line, which may contain a secret.
            why = str(error or msg).partition(": bytearray")[0].rstrip(".:")
            self._refuse(ProblemError(MALFORMED, f"The request cannot be read: {why}."))

    def begin(self, transport: asyncio.Transport) -> None:
        """Start accepting requests."""
        super().connection_made(transport)
        self._expect_head()

    def abort(self) -> None:
        """Close the connection immediately."""
        self._connections.leave(self)
        self.transport.abort()

    def _limit_waiting(self) -> None:
        """Make the current request the last one if several requests, or too many bytes, wait behind it."""
        if self._is_last or not self._has_request or self.transport.is_closing():
            return
        if self.conn.their_state in _ARRIVING:
            return
        waiting, _ = self.conn.trailing_data
        if len(waiting) > WAITING_BYTES_MAX or several_requests(waiting):
            self._connections.count_limit("waiting_max")
            self._is_last = True
            self.cycle.keep_alive = False
            self.cycle.default_headers = [*self.cycle.default_headers, CLOSE_HEADER]
            # Closing a socket with unread data would reset the connection, and the client might lose its answer.
            self.flow.resume_reading()

    def _expect_head(self) -> None:
        """Start the timer for the next head when the connection opens or a byte arrives. Stop it after the head."""
        if self._has_request or self.transport.is_closing():
            self._stop_waiting()
        elif self._head_due is None:
            self._head_due = self.loop.call_later(self._connections.receive_s, self._refuse_slow_request)

    def _stop_waiting(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def _expect_reading(self) -> None:
        """Start the timer for reading the latest answer, whether the connection continues or not."""
        if self._reading_due is not None:
            self._reading_due.cancel()
        self._reading_due = self.loop.call_later(self._connections.send_s, self._check_reading)

    def _check_reading(self) -> None:
        if self.unread_bytes:
            # Abort, because a close would wait for the client.
            self._connections.count_limit("send_s")
            self.abort()

    def _refuse_slow_request(self) -> None:
        seconds = self._connections.receive_s
        self._connections.count_limit("receive_s")
        self._refuse(
            ProblemError(
                TOO_SLOW,
                f"No request arrived within {seconds:g} s. Send it again, without pauses.",
                limit=Limit("receive_s", seconds),
            )
        )

    def _refuse(self, error: ProblemError) -> None:
        """Answer without the application unless an answer has begun, and close the connection."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            response = response_of(error, request_id(None))
            headers = [*response.raw_headers, (b"connection", b"close")]
            for event in (
                h11.Response(status_code=response.status_code, headers=headers),
                h11.Data(data=bytes(response.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
