"""Connections whose requests wait for a verdict: they need no thread, so they may be all that there are."""

import asyncio
import ssl
from contextlib import suppress
from typing import Any, cast

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from consumer.web.connections import Connection, ConnectionLimits, Connections
from consumer.web.requests import ConnectionsChanged, LimitExceeded
from consumer.web.server import SecureConnection


class _Connection:
    """A connection, its request being worked on or not."""

    def __init__(self, connections: Connections, *, is_needed: bool) -> None:
        self._connections = connections
        self.is_needed = is_needed
        self.was_aborted = False

    def abort(self) -> None:
        self._connections.leave(cast("Connection", self))
        self.was_aborted = True


def test_where_all_wait_for_an_answer_a_new_connection_gives_way() -> None:
    """Otherwise one that does not."""
    reported: list[object] = []
    connections = Connections(ConnectionLimits(2, 1.0, 1.0, 1), reported.append)
    entered = [_Connection(connections, is_needed=number < 2) for number in range(3)]
    for each in entered:
        connections.enter(cast("Connection", each))
    assert [each.was_aborted for each in entered] == [False, False, True]
    assert reported[-1:] == [LimitExceeded("connections_max")]
    entered[0].is_needed = False
    connections.enter(cast("Connection", _Connection(connections, is_needed=False)))
    assert entered[0].was_aborted
    assert reported[-1:] == [ConnectionsChanged(2)]


@pytest.mark.parametrize("is_secure", [False, True])
def test_a_connection_that_gives_way_at_once_is_closed_without_an_error(*, is_secure: bool) -> None:
    """With or without TLS: the client finds it closed, and nothing is left of it."""
    reported: list[object] = []
    faults: list[dict[str, Any]] = []
    connections = Connections(ConnectionLimits(0, 1.0, 1.0, 1), reported.append)
    state = ServerState()

    async def answer_nothing(_scope: object, _receive: object, _send: object) -> None:
        raise AssertionError

    async def connect() -> bytes:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, fault: faults.append(fault))
        options: dict[str, Any] = {
            "config": Config(answer_nothing, interface="asgi3"),
            "server_state": state,
            "app_state": {},
        }
        tls = (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),) if is_secure else ()
        protocol = SecureConnection if is_secure else Connection
        server = await loop.create_server(lambda: protocol(connections, *tls, **options), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        received = b""
        with suppress(ConnectionResetError):
            received = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        with suppress(ConnectionResetError):
            await writer.wait_closed()
        server.close()
        await server.wait_closed()
        return received

    assert asyncio.run(connect()) == b""
    assert reported == [LimitExceeded("connections_max")]
    assert (faults, state.connections) == ([], set())
