"""Connections that begin with a TLS handshake.

asyncio can shake hands by itself before it tells anybody of a connection. Clients that never finish would then be
counted by nobody and could use up all descriptors. So a connection counts from its first moment, and can be closed in
favour of a newer one while it shakes hands.
"""

import asyncio
import logging
import ssl
from typing import Any, Final

from typing_extensions import override
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT

from consumer.web.connections import Connection, Connections

log = logging.getLogger("dupwatch")

_GOODBYE_S: Final = 1.0
"""How long a client may take to confirm that a connection ends; until then it counts."""

_LOOK_S: Final = 0.05
"""How often it is looked whether a client has read."""


class SecureConnection(Connection):
    """A connection over TLS; the handshake may take as long as the head of a request."""

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
