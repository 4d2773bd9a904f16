"""Serves an ASGI application with uvicorn on a socket of this machine, until it is stopped."""

import asyncio
import logging
import resource
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, cast

import uvicorn
from starlette.types import ASGIApp
from typing_extensions import override
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT

from consumer.model.errors import ConfigError
from consumer.web.access import HOST, ListenAddress, is_loopback, parse_address
from consumer.web.connections import Connection, ConnectionLimits, Connections
from consumer.web.requests import HEAD_BYTES_MAX

log = logging.getLogger("dupwatch")

_GOODBYE_S: Final = 1.0
"""How long a client may take to confirm that a connection ends; until then it counts."""

_LOOK_S: Final = 0.05
"""How often it is looked whether a client has read."""
IDLE_S: Final = 30
"""How long a connection stays open between two requests."""
_BACKLOG: Final = 512
"""Connections that the kernel queues while others are accepted."""
OTHER_FILES: Final = 256
"""Descriptors for all but connections of clients: the store, the sink, logs and libraries."""


class SecureConnection(Connection):
    """A connection over TLS; the handshake may take as long as the head of a request.

    asyncio can shake hands by itself before it tells anybody of a connection. Clients that never finish would then be
    counted by nobody and could use up all descriptors. So a connection counts from its first moment, and can be closed
    in favour of a newer one while it shakes hands.
    """

    def __init__(self, connections: Connections, tls: ssl.SSLContext, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  # as uvicorn gives them
        super().__init__(connections, *arguments, **options)
        self._tls = tls
        self._early = b""
        self._handshake: asyncio.Task[None] | None = None
        self._raw: asyncio.Transport | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        self.transport = self._raw = transport
        # uvicorn ends it with the others when it is stopped.
        self.connections.add(self)
        self._connections.enter(self)
        self._handshake = self.loop.create_task(self._shake_hands(transport))

    @override
    def data_received(self, data: bytes) -> None:
        if self._is_secured:
            super().data_received(data)
        else:
            # It came with the end of the handshake.
            self._early += data

    @override
    def shutdown(self) -> None:
        if self._is_secured:
            super().shutdown()
        else:
            self.abort()

    @override
    def on_response_complete(self) -> None:
        # asyncio tells of what is not encrypted yet, and may have encrypted all of it.
        if self.unread_bytes > HIGH_WATER_LIMIT:
            self.pause_writing()
            self._look_at_reader()
        super().on_response_complete()

    @property
    @override
    def unread_bytes(self) -> int:
        encrypted = 0 if self._raw is None else self._raw.get_write_buffer_size()
        return encrypted + self.transport.get_write_buffer_size()

    def _look_at_reader(self) -> None:
        if self.unread_bytes > HIGH_WATER_LIMIT:
            self.loop.call_later(_LOOK_S, self._look_at_reader)
        else:
            self.resume_writing()

    @property
    def _is_secured(self) -> bool:
        return self.flow is not None

    async def _shake_hands(self, raw: asyncio.Transport) -> None:
        secured: asyncio.Transport | None = None
        try:
            async with asyncio.timeout(self._connections.receive_s):
                secured = await self.loop.start_tls(
                    raw, self, self._tls, server_side=True, ssl_shutdown_timeout=_GOODBYE_S
                )
        except TimeoutError:
            self._connections.met("receive_s")
        except OSError as error:
            # Whoever sends no TLS, or does not trust the certificate. There is nobody to answer.
            log.debug("A TLS handshake failed: %s", error)
        finally:
            if secured is None or secured.is_closing():
                self.connections.discard(self)
                self._connections.leave(self)
        if secured is not None and not secured.is_closing():
            self.begin(secured)
            if self._early:
                self.data_received(self._early)


def listening_socket(listen: str, *, needs_token: bool, setting: str = "service.listen") -> socket.socket:
    """Listen on an address, which ``setting`` names.

    Raises ``ConfigError`` where it cannot, or where others could connect without a token.
    """
    address = parse_address(listen)
    if not needs_token and not is_loopback(address):
        raise ConfigError(
            f"service.listen = {listen} lets other machines read articles: set service.tokens to a token file, which "
            f"dupwatch tokens add makes, or listen on {HOST}:{address.port}"
        )
    try:
        family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server(address, family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {address.host}:{address.port}: {error.strerror or error}; set another address in "
            f"{setting}"
        ) from error
    # Accepted connections inherit it. asyncio sets it only on sockets that name their protocol, which these do not:
    # the body of an answer would wait 40 ms until the client has acknowledged the head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def url_of(listening: socket.socket, *, is_secure: bool) -> str:
    """Return the URL of what is served on a socket."""
    return ListenAddress(*listening.getsockname()[:2]).url(is_secure=is_secure)


def allow_connections(connections_max: int, setting: str = "service.connections_max") -> None:
    """Raise this process's limit of open files where it is too low. Raises ``ConfigError`` where it must not be."""
    needed = connections_max + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise ConfigError(
            f"{setting} = {connections_max} needs {needed} open files, and this process may have {hard}: "
            f"raise the limit (ulimit -Hn, or LimitNOFILE= of the unit), or set a lower {setting}"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class Server(uvicorn.Server):
    """A server that leaves signals to the command; over TLS if it has a context.

    ``drain_s`` is the time that requests have to end. Limits of connections that are met go to ``report``.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: ConnectionLimits,
        report: Callable[[object], None],
        drain_s: float,
        tls: ssl.SSLContext | None,
    ) -> None:
        connections = Connections(limits, report)
        # uvicorn calls it as it calls the class of a protocol.
        protocol = cast("type", connections.protocol if tls is None else partial(SecureConnection, connections, tls))
        super().__init__(
            uvicorn.Config(
                app,
                http=protocol,
                # Where uvloop is installed uvicorn would take that, on which handshakes were not tried.
                loop="asyncio",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=IDLE_S,
                timeout_graceful_shutdown=max(1, round(drain_s)),
                h11_max_incomplete_event_size=HEAD_BYTES_MAX,
            )
        )

    @override
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Stop accepting connections, and end once current requests are answered. Any thread may call it."""
        self.should_exit = True
