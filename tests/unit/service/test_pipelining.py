"""Clients that send requests before they have the answer to the current one: one may wait, more end the connection."""

from pathlib import Path

import pytest

import dupwatch
from consumer.web.connections import WAITING_BYTES_MAX, Connection, Connections, RequestParser
from tests.cli.command import wait_for
from tests.unit.service.serving import WAIT_S, Client, judging_of, served, trusting, wait_until_ready
from tests.unit.service.test_https import files
from tests.unit.service.test_limits import REQUEST, gated, read_all, wait_until_in_flight
from tests.unit.web.pair import Pair

PROBE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = PROBE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
UPGRADE = PROBE.replace(b"\r\n\r\n", b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
BODY = b'{"articles": [{"body": "x"}]}'
CHECK = REQUEST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = REQUEST + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
LARGE = REQUEST + b"Content-Length: %d\r\n\r\n" % (WAITING_BYTES_MAX + 1) + b" " * (WAITING_BYTES_MAX + 1)
CONNECTIONS = 50
ANSWERED = b"HTTP/1.1 200 OK"


def answers_to(client: Client, sent: bytes) -> bytes:
    """Send these bytes at once, and read until the service closes the connection."""
    connection = client.connect()
    if client.url.startswith("https:"):
        connection = trusting().wrap_socket(connection, suppress_ragged_eofs=False)
    with connection:
        connection.sendall(sent)
        return read_all(connection)


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        (PROBE + LAST, 2),
        (CHECK + LAST, 2),
        (CHUNKED + LAST, 2),
        (UPGRADE + LAST, 2),
        (PROBE + CHECK.replace(b"Host:", b"Connection: close\r\nHost:"), 2),
        (PROBE * 3, 1),
        (PROBE * 2 + b"G", 1),
        (CHECK * 3, 1),
        (CHUNKED * 3, 1),
        (PROBE + UPGRADE * 2, 1),
        (UPGRADE * 3, 1),
        (PROBE * 200, 1),
        (PROBE + LARGE, 1),
    ],
    ids=range(13),
)
def test_one_request_may_wait(client: Client, sent: bytes, answers: int) -> None:
    """A connection with more gets the current answer, which says that it is the last one, and is closed."""
    met = client.limits_met("waiting_max")
    data = answers_to(client, sent)
    assert data.count(b"HTTP/1.1 ") == data.count(ANSWERED) == answers
    assert data.lower().count(b"\r\nconnection: close\r\n") == 1
    assert client.limits_met("waiting_max") == met + (answers == 1)


def test_pipelined_requests_get_one_answer_for_each_connection(window: dupwatch.Window, tmp_path: Path) -> None:
    """Over TLS, too; all others are not worked on."""
    for settings in ({}, files(Pair(tmp_path / "served"))):
        with served(judging_of(window), **settings) as client:
            wait_until_ready(client)
            for _ in range(CONNECTIONS):
                assert answers_to(client, PROBE * 200).count(ANSWERED) == 1
            assert client.limits_met("waiting_max") == CONNECTIONS
            answered = client.metric('dupwatch_requests_total{method="GET",route="/healthz",status="200"}')
            assert answered == CONNECTIONS


def test_a_client_that_waits_for_its_answers_keeps_its_connection(client: Client) -> None:
    """However many requests it sends one after another, and also if one always waits."""
    met = client.limits_met("waiting_max")
    with client.connect() as connection, connection.makefile("rb") as file:
        connection.sendall(PROBE)
        for _ in range(20):
            connection.sendall(PROBE)
            while file.readline() != b"ok\n":
                pass
    assert client.limits_met("waiting_max") == met


def test_requests_that_arrive_during_an_answer_do_not_fill_the_memory(
    window: dupwatch.Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are discarded as soon as too many wait, and the current answer arrives whole."""
    most = 0
    receive = RequestParser.receive_data

    def observed(parser: RequestParser, data: bytes) -> None:
        nonlocal most
        receive(parser, data)
        most = max(most, len(parser.trailing_data[0]))

    opened: list[Connection] = []
    enter = Connections.enter

    def entered(connections: Connections, connection: Connection) -> bool:
        opened.append(connection)
        return enter(connections, connection)

    monkeypatch.setattr(RequestParser, "receive_data", observed)
    monkeypatch.setattr(Connections, "enter", entered)
    with gated(window) as (client, gate):
        gate.close()
        with client.connect() as connection:
            connection.sendall(CHECK)
            wait_until_in_flight(client, 1)
            (asking,) = (each for each in opened if each.is_needed)
            # More than systems deliver at once.
            asking.loop.call_soon_threadsafe(asking.data_received, PROBE * 10_000)
            connection.sendall(PROBE * 100_000)
            wait_for(lambda: client.limits_met("waiting_max") == 1, WAIT_S)
            gate.open()
            data = read_all(connection)
        assert data.count(b"HTTP/1.1 ") == data.count(ANSWERED) == 1
        assert b'"outcome":"unique"' in data
    assert len(PROBE) < most <= 2 * WAITING_BYTES_MAX
