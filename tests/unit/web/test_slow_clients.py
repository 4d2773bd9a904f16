"""Clients that send and read very slowly, and probes meanwhile."""

import socket
import ssl
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from statistics import median

import pytest

from consumer.kafka.source.rebalances import PartitionsRebalanced
from consumer.model.hooks import Hooks
from consumer.telemetry.health import Health
from consumer.telemetry.health_pages import health_pages
from consumer.telemetry.metrics import Metrics
from consumer.web import page_server
from consumer.web.access import HOST, ListenAddress
from consumer.web.page import PageResponse, ServedPage
from consumer.web.page_connections import PageConnection, PageLimit
from consumer.web.page_server import PageServer
from consumer.web.requests import HEAD_BYTES_MAX
from tests.cli.command import TIMEOUT_S
from tests.unit.web.test_page_server import certificate, shown

LOCAL = ListenAddress(HOST, 0)
SLOW = 200
PROBES = 40
PROBE_S = 3.0
"""Less than a slow client has for its request; a probe takes some milliseconds."""
_REQUEST = b"GET /healthz HTTP/1.1\r\nX-Slow: "


@contextmanager
def trickling(server: PageServer, given: bytes) -> Iterator[None]:
    """200 clients from the address of the probes that send a byte now and then; those that are cut reconnect."""
    with ExitStack() as stack:
        left = threading.Event()

        def connect() -> socket.socket:
            client = socket.create_connection(server.address, timeout=TIMEOUT_S)
            client.sendall(given)
            client.settimeout(0)
            stack.callback(client.close)
            return client

        clients = [connect() for _ in range(SLOW)]

        def trickle() -> None:
            while not left.wait(0.1):
                for number, client in enumerate(clients):
                    try:
                        client.send(b"x")
                    except BlockingIOError:
                        continue
                    except OSError:
                        with suppress(OSError):
                            clients[number] = connect()

        thread = threading.Thread(target=trickle)
        thread.start()
        stack.callback(thread.join)
        stack.callback(left.set)
        yield


def probed_s(server: PageServer, path: str, context: ssl.SSLContext | None = None) -> float:
    """The time until a probe is answered with 200."""
    began_s = time.monotonic()
    with urllib.request.urlopen(f"{server.url}{path}", timeout=TIMEOUT_S, context=context) as answer:
        assert answer.status == HTTPStatus.OK
        answer.read()
    return time.monotonic() - began_s


@pytest.fixture
def pages() -> dict[str, ServedPage]:
    """The pages of a ready run."""
    health = Health(600)
    Hooks(health).report(PartitionsRebalanced("assigned", 1))
    return health_pages(health, Metrics())


@pytest.mark.parametrize("given", [b"", _REQUEST], ids=["request line", "header"])
def test_probes_are_answered_among_clients_that_trickle(pages: dict[str, ServedPage], given: bytes) -> None:
    """All of 40 probes and scrapes are answered, most of them soon."""
    with PageServer(LOCAL, pages, lambda: None) as server, trickling(server, given):
        taken_s = []
        for number in range(PROBES):
            taken_s.append(probed_s(server, ("/healthz", "/readyz", "/metrics")[number % 3]))
            assert len(server._server.arriving) <= page_server.ARRIVING_MAX
        assert median(taken_s) < PROBE_S


def test_probes_are_answered_among_handshakes_that_trickle(pages: dict[str, ServedPage], tmp_path: Path) -> None:
    """The same over HTTPS, where the slow clients do not even shake hands."""
    paths = certificate(tmp_path)
    trusting = ssl.create_default_context(cafile=paths[0])
    # A record of a handshake, of 16,000 bytes that come one by one.
    begun = b"\x16\x03\x01\x3e\x80"
    with PageServer(LOCAL, pages, lambda: None, tls=shown(paths)) as server, trickling(server, begun):
        taken_s = [
            probed_s(server, ("/healthz", "/readyz", "/metrics")[number % 3], trusting) for number in range(PROBES)
        ]
        assert median(taken_s) < PROBE_S


def test_a_burst_cuts_no_newcomer(pages: dict[str, ServedPage], monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe is answered although many clients connect at the same time from its address."""
    monkeypatch.setattr(page_server, "REQUEST_S", 600.0)
    monkeypatch.setattr(page_server, "GRACE_S", 600.0)
    with PageServer(LOCAL, pages, lambda: None) as server, ExitStack() as stack:
        probe = stack.enter_context(socket.create_connection(server.address, timeout=TIMEOUT_S))
        for _ in range(page_server.ARRIVING_MAX + 10):
            stack.enter_context(socket.create_connection(server.address, timeout=TIMEOUT_S))
        while len(server._server.arriving) < page_server.ARRIVING_MAX:
            time.sleep(0.01)
        probe.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert probe.recv(100).startswith(b"HTTP/1.0 200 ")


def test_a_header_that_trickles_has_a_deadline(pages: dict[str, ServedPage], monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that trickles in has to be complete in time; otherwise it is cut and counted."""
    monkeypatch.setattr(page_server, "REQUEST_S", 0.3)
    cut: list[int] = []
    with (
        PageServer(LOCAL, pages, lambda: cut.append(1)) as server,
        socket.create_connection(server.address, timeout=TIMEOUT_S) as slow,
    ):
        slow.sendall(_REQUEST)
        slow.settimeout(0.05)
        until_s = time.monotonic() + TIMEOUT_S
        while True:
            assert time.monotonic() < until_s
            try:
                slow.sendall(b"x")
                if slow.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
    assert cut == [1]


def test_readers_of_a_page_take_no_place_of_a_probe(pages: dict[str, ServedPage]) -> None:
    """While slow readers occupy all pages, further pages are refused, but probes and scrapes are answered."""
    pages["/"] = ServedPage(lambda _: PageResponse(HTTPStatus.OK, "text/plain", bytes(10_000_000)))
    with PageServer(LOCAL, pages, lambda: None) as server, ExitStack() as stack:
        for _ in range(page_server.REQUESTS_MAX["page"]):
            client = stack.enter_context(socket.create_connection(server.address, timeout=TIMEOUT_S))
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        while len(server._server.answering["page"]) < page_server.REQUESTS_MAX["page"]:
            time.sleep(0.01)
        for path in ("/healthz", "/readyz", "/metrics"):
            probed_s(server, path)
        refused = stack.enter_context(socket.create_connection(server.address, timeout=TIMEOUT_S))
        refused.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert refused.recv(100).startswith(b"HTTP/1.0 503 ")


def test_a_request_has_a_length(pages: dict[str, ServedPage]) -> None:
    """Endless headers are answered with 431."""
    with (
        PageServer(LOCAL, pages, lambda: None) as server,
        socket.create_connection(server.address, timeout=TIMEOUT_S) as client,
    ):
        client.sendall(b"GET /healthz HTTP/1.0\r\nX-Long: " + bytes(HEAD_BYTES_MAX) + b"\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.0 431 ")


def connection(client: str) -> PageConnection:
    """One of this client."""
    ours, theirs = socket.socketpair()
    theirs.close()
    return PageConnection(ours, client)


def test_who_crowds_makes_room() -> None:
    """Only the oldest connection of the client with the most is cut."""
    cut: list[int] = []
    limit = PageLimit(4, 10, lambda: cut.append(1))
    prober, *many = [connection("prober"), *(connection("crowd") for _ in range(3))]
    for client in (prober, *many):
        assert client.move_to(limit, cuts=True)
    newcomer = connection("prober")
    assert newcomer.move_to(limit, cuts=True)
    assert [client.was_cut for client in (prober, *many, newcomer)] == [False, True, False, False, False]
    assert (len(limit), cut) == (4, [1])
    other = connection("other")
    assert not other.move_to(limit, cuts=False)
    assert not many[0].move_to(PageLimit(1, 10, lambda: None), cuts=True)
    newcomer.leave()
    newcomer.leave()
    assert len(limit) == 3
    for client in (prober, *many, newcomer, other):
        client.socket.close()


def test_nobody_is_cut_within_the_grace() -> None:
    """A new connection waits until another leaves, or until the grace of the oldest is over."""
    patient = PageLimit(2, 600, lambda: None, grace_s=600)
    first, second, third = (connection("crowd") for _ in range(3))
    for client in (first, second):
        client.move_to(patient, cuts=True)
    began_s = time.monotonic()
    leaving = threading.Timer(0.05, second.leave)
    leaving.start()
    assert third.move_to(patient, cuts=True)
    assert 0.05 <= time.monotonic() - began_s < 60
    assert not first.was_cut
    leaving.join()
    limit = PageLimit(1, 10, lambda: None, grace_s=0.2)
    began_s = time.monotonic()
    fourth, fifth = (connection("crowd") for _ in range(2))
    fourth.move_to(limit, cuts=True)
    assert fifth.move_to(limit, cuts=True)
    assert time.monotonic() - began_s >= 0.19
    assert [client.was_cut for client in (fourth, fifth)] == [True, False]
    for client in (first, second, third, fourth, fifth):
        client.socket.close()


def test_time_in_a_room_ends() -> None:
    """Connections that have been inside for too long are cut."""
    now_s = [100.0]
    limit = PageLimit(4, 5, lambda: None, clock=lambda: now_s[0])
    first, second = connection("a"), connection("a")
    first.move_to(limit, cuts=True)
    now_s[0] += 3
    second.move_to(limit, cuts=True)
    now_s[0] += 3
    limit.cut_late()
    assert (first.was_cut, second.was_cut, len(limit)) == (True, False, 1)
    for client in (first, second):
        client.socket.close()


def test_connections_that_say_nothing_are_bounded(
    pages: dict[str, ServedPage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit the oldest silent connections are cut, long before their time is up."""
    monkeypatch.setattr(page_server, "REQUEST_S", 600.0)
    monkeypatch.setattr(page_server, "ARRIVING_MAX", 3)
    with PageServer(LOCAL, pages, lambda: None) as server, ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(server.address, timeout=TIMEOUT_S)) for _ in range(5)]
        assert [client.recv(1) for client in silent[:2]] == [b"", b""]
        probed_s(server, "/healthz")
        assert silent[2].recv(1) == b""
        silent[3].settimeout(0)
        with pytest.raises(BlockingIOError):
            silent[3].recv(1)
