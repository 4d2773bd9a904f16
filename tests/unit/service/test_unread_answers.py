"""Clients that ask and do not read: what they were answered neither stays in memory nor keeps others out."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pytest

import dupwatch
from tests.cli.command import wait_for
from tests.unit.service.serving import WAIT_S, Client, article, judging_of, served, trusting, wait_until_ready
from tests.unit.service.test_https import files
from tests.unit.service.test_limits import read_answer, read_head
from tests.unit.web.pair import Pair

VERSIONS = 800
URL = "http://news.example/" + "u" * 8_000
REQUEST = b"GET /v1/articles/a HTTP/1.1\r\nHost: localhost\r\n\r\n"
ANSWERED = 'dupwatch_requests_total{method="GET",route="/v1/articles/{id}",status="200"}'
BUFFER_BYTES = 4_096
SOON_S = 0.5
LONG_S = 3 * WAIT_S


@pytest.fixture(scope="module")
def filled() -> Iterator[dupwatch.Window]:
    """A window with an article whose history is larger than what systems keep for a client."""
    with dupwatch.open("memory:") as window, served(judging_of(window)) as client:
        wait_until_ready(client)
        assert client.store(*(article(number, "a", url=URL) for number in range(VERSIONS))).status == 200
        yield window


@pytest.fixture(params=["http", "https"])
def over(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """The settings of a service with TLS, and without."""
    return {} if request.param == "http" else files(Pair(tmp_path / "served"))


@contextmanager
def not_reading(client: Client, requests: int) -> Iterator[socket.socket]:
    """Somebody who sends requests and reads nothing by himself."""
    with ExitStack() as resources:
        connection = resources.enter_context(socket.socket())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        connection.settimeout(WAIT_S)
        connection.connect(client.address)
        if client.url.startswith("https:"):
            connection = resources.enter_context(trusting().wrap_socket(connection, suppress_ragged_eofs=False))
        connection.sendall(REQUEST * requests)
        yield connection


def wait_for_connections(client: Client, count: int) -> None:
    """Wait until so many are open, besides that which asks."""
    wait_for(lambda: client.metric("dupwatch_connections") == count + 1, WAIT_S)


def test_an_answer_that_nobody_reads_is_given_up(filled: dupwatch.Window, over: dict[str, str]) -> None:
    """Though the client stays connected, and has asked for more."""
    with served(judging_of(filled), send_s=SOON_S, **over) as client:
        wait_until_ready(client)
        with not_reading(client, 2):
            wait_for(lambda: client.limits_met("send_s") == 1, WAIT_S)
            wait_for_connections(client, 0)
            assert client.metric("dupwatch_requests_in_flight") == 1
            assert client.metric(ANSWERED) == 1


def test_an_answer_before_a_refusal_is_given_up_too(filled: dupwatch.Window) -> None:
    """The connection is being closed then, which waits for the client."""
    with served(judging_of(filled), send_s=SOON_S) as client:
        wait_until_ready(client)
        with not_reading(client, 1) as connection:
            wait_for(lambda: client.metric(ANSWERED) == 1, WAIT_S)
            with suppress(OSError):
                connection.sendall(b"HELO there\r\n\r\n")
            wait_for_connections(client, 0)


def test_the_next_request_waits_until_the_answer_is_read(filled: dupwatch.Window, over: dict[str, str]) -> None:
    """And gets its answer then."""
    with served(judging_of(filled), send_s=LONG_S, receive_s=SOON_S, **over) as client:
        wait_until_ready(client)
        with not_reading(client, 2) as connection:
            wait_for(lambda: client.metric(ANSWERED) == 1, WAIT_S)
            # Longer than a head may take to arrive: the second one is there.
            time.sleep(2 * SOON_S)
            assert client.metric(ANSWERED) == 1
            assert client.metric("dupwatch_requests_in_flight") == 1
            with connection.makefile("rb") as file:
                answers = [read_next(file) for _ in range(2)]
        assert all(head.startswith(b"HTTP/1.1 200") for head, _ in answers)
        assert len({body for _, body in answers}) == 1
        # A client has an answer a moment before the service has counted it.
        wait_for(lambda: client.metric(ANSWERED) == 2, WAIT_S)


def test_who_reads_slowest_gives_way_to_others(filled: dupwatch.Window) -> None:
    """Where all answers together are too large; one alone may be larger."""
    with served(judging_of(filled), send_s=LONG_S, unread_bytes_max=1) as client:
        wait_until_ready(client)
        with not_reading(client, 1) as slower:
            wait_for(lambda: client.metric(ANSWERED) == 1, WAIT_S)
            with not_reading(client, 1) as slow:
                wait_for(lambda: client.limits_met("unread_bytes_max") == 1, WAIT_S)
                assert read_answer(slow).startswith(b"HTTP/1.1 200")
                wait_for_connections(client, 1)
            wait_for(lambda: is_ended(slower), WAIT_S)


def read_next(file: BinaryIO) -> tuple[bytes, bytes]:
    """Read the head and the body of an answer; others may follow."""
    head = read_head(file)
    (length,) = (line for line in head.splitlines() if line.lower().startswith(b"content-length:"))
    return head, file.read(int(length.partition(b":")[2]))


def is_ended(connection: socket.socket) -> bool:
    """Whether all that was answered has been read, and the server has closed the connection."""
    connection.settimeout(0)
    try:
        while connection.recv(1 << 20):
            continue
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    return True
