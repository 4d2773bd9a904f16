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
"""How long a client may take to confirm the end of a TLS connection. Until then the connection counts as open."""
_POLL_S: Final = 0.05
"""The interval at which to check whether a client has read its answer."""
IDLE_S: Final = 30
"""How long a connection stays open between two requests."""
_BACKLOG: Final = 512
"""Connections that the kernel queues while others are accepted."""
OTHER_FILES: Final = 256
"""Descriptors for everything except client connections: the store, the sink, logs and libraries."""


class SecureConnection(Connection):
    """A connection over TLS. The handshake may take as long as the head of a request.

    asyncio can do the handshake before it reports a connection. Clients that never finish would then not be counted,
    and could use up all descriptors. So a connection counts from the beginning, and can be closed in favour of a newer
    one during the handshake.
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
        # So that uvicorn closes the connection when the server stops.
        self.connections.add(self)
        if self._connections.enter(self):
            self._handshake = self.loop.create_task(self._shake_hands(transport))

    @override
    def data_received(self, data: bytes) -> None:
        if self._is_secured:
            super().data_received(data)
        else:
            # This data came with the end of the handshake.
            self._early += data

    @override
    def shutdown(self) -> None:
        if self._is_secured:
            super().shutdown()
        else:
            self.abort()

    @override
    def on_response_complete(self) -> None:
        # asyncio pauses only for data that is not encrypted yet, but the whole answer may be encrypted already.
        if self.unread_bytes > HIGH_WATER_LIMIT:
            self.pause_writing()
            self._resume_when_read()
        super().on_response_complete()

    @property
    @override
    def unread_bytes(self) -> int:
        encrypted = 0 if self._raw is None else self._raw.get_write_buffer_size()
        return encrypted + self.transport.get_write_buffer_size()

    def _resume_when_read(self) -> None:
        if self.unread_bytes > HIGH_WATER_LIMIT:
            self.loop.call_later(_POLL_S, self._resume_when_read)
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
            self._connections.count_limit("receive_s")
        except OSError as error:
            # The client sent no TLS, or does not trust the certificate. It cannot be answered.
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
    """Return a socket that listens on the address ``listen``, which comes from ``setting``.

    Raises ``ConfigError`` if that fails, or if other machines could connect without a token.
    """
    address = parse_address(listen)
    if not needs_token and not is_loopback(address):
        raise ConfigError(
            f"{setting} = {listen} lets other machines read articles: set service.tokens to a token file, which "
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
    # Accepted connections inherit this option. Without it, the body of an answer waits 40 ms until the client has
    # acknowledged the head. asyncio sets it only on sockets that name their protocol, which these do not.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def url_of(listening: socket.socket, *, is_secure: bool) -> str:
    """Return the URL of the server on this socket."""
    return ListenAddress(*listening.getsockname()[:2]).url(is_secure=is_secure)


def allow_connections(connections_max: int, setting: str = "service.connections_max") -> None:
    """Increase the limit on open files if it is too low. Raises ``ConfigError`` if the hard limit is too low, too."""
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
    """A uvicorn server that leaves signals to the command, and serves over TLS if it has a context.

    ``drain_s`` is the time that requests get to finish when the server stops. ``report`` gets the occurrences
    of ``Connections``.
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
        # uvicorn only calls it, so a function will do in place of a class.
        protocol = cast("type", connections.protocol if tls is None else partial(SecureConnection, connections, tls))
        super().__init__(
            uvicorn.Config(
                app,
                http=protocol,
                # uvicorn would use uvloop if it is installed. Handshakes are not tested with it.
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
        """Stop accepting connections, then stop once current requests are answered or ``drain_s`` is over.

        Any thread may call it.
        """
        self.should_exit = True
