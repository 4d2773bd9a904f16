"""Health: whether a run is alive and ready, and the pages that show it."""

import json
import logging
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from email.message import Message
from http import HTTPStatus
from typing import get_args

import pytest

from consumer.kafka.sink.transactions import SinkReconnected
from consumer.kafka.source.handover import ClientProgressed
from consumer.kafka.source.rebalances import PartitionsRebalanced
from consumer.lifecycle.thread_progress import MAIN, ThreadIdle, ThreadProgressed, WorkerProgressed
from consumer.model.errors import ConfigError
from consumer.model.hooks import Hooks, Outage, RunPart
from consumer.telemetry.health import Health
from consumer.telemetry.health_pages import health_pages
from consumer.telemetry.metrics import Metrics
from consumer.web import page_server
from consumer.web.access import HOST, ListenAddress, parse_address
from consumer.web.page import PageRequest, PageResponse, ServedPage
from consumer.web.page_server import PageServer
from tests.cli.command import TIMEOUT_S, wait_for

LOCAL = ListenAddress(HOST, 0)


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now_s


class Failures:
    """Counts its calls."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        """One more."""
        self.count += 1


def get(server: PageServer, path: str, method: str = "GET", **headers: str) -> tuple[int, str, Message]:
    """Ask for a page: status, text and headers."""
    host, port = server.address
    request = urllib.request.Request(f"http://{host}:{port}{path}", headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers


@pytest.fixture
def clock() -> Clock:
    """A clock that the test moves."""
    return Clock()


@pytest.fixture
def health(clock: Clock) -> Health:
    """A run over a topic that has just begun."""
    return Health(60, clock=clock)


@pytest.fixture
def hooks(health: Health) -> Hooks:
    """The hooks that the health of the run listens to."""
    return Hooks(health)


@pytest.fixture
def metrics() -> Metrics:
    """Metrics of this run."""
    return Metrics()


@pytest.fixture
def server(health: Health, metrics: Metrics) -> Iterator[PageServer]:
    """Its pages."""
    with PageServer(LOCAL, health_pages(health, metrics), lambda: None) as served:
        yield served


def serve(answer: Callable[[PageRequest], PageResponse], failures: Failures) -> PageServer:
    """Serve one page at /."""
    return PageServer(LOCAL, {"/": ServedPage(answer)}, failures)


def test_a_run_is_alive_while_its_client_turns(server: PageServer, hooks: Hooks, clock: Clock) -> None:
    """The client's thread may be silent for as long as the limit; longer, and the run is not alive until it turns."""
    hooks.report(ThreadIdle(MAIN))
    hooks.report(ClientProgressed())
    clock.now_s += 60
    assert get(server, "/healthz")[:2] == (200, "ok\n")
    clock.now_s += 0.1
    assert get(server, "/healthz")[0] == 503
    hooks.report(ClientProgressed())
    assert get(server, "/healthz")[0] == 200


def test_a_run_is_alive_while_it_waits_for_its_store_at_its_start(health: Health, hooks: Hooks, clock: Clock) -> None:
    """The thread of the client does not exist yet; the main thread has to turn from the beginning."""
    for _ in range(3):
        clock.now_s += 60
        assert health.hanging_threads() == []
        hooks.report(ThreadProgressed(MAIN))
    clock.now_s += 61
    assert [(late.thread, "test_health" in late.stack) for late in health.hanging_threads()] == [("main", True)]


def stand_still_here(release: threading.Event) -> None:
    """Wait, under a name that a stack shows."""
    release.wait(TIMEOUT_S)


def test_a_main_thread_that_hangs_is_shown(server: PageServer, hooks: Hooks, clock: Clock) -> None:
    """The answer has the stack of a thread that works without turning."""
    release = threading.Event()

    def work() -> None:
        hooks.report(ThreadProgressed(MAIN))
        stand_still_here(release)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        clock.now_s += 61
        until = time.monotonic() + TIMEOUT_S
        while "stand_still_here" not in (shown := get(server, "/healthz"))[1]:
            assert time.monotonic() < until, shown[1]
            clock.now_s += 61
    finally:
        release.set()
        thread.join()
    assert shown[0] == 503
    assert "The main thread has made no progress for" in shown[1]
    assert shown[2]["Content-Type"].startswith("text/plain")


def test_where_the_main_thread_is_when_the_client_hangs(server: PageServer, hooks: Hooks, clock: Clock) -> None:
    """When the client's thread hangs, the stack of the main thread is shown, too."""
    hooks.report(ThreadIdle(MAIN))
    hooks.report(ClientProgressed())
    clock.now_s += 61
    status, text, _ = get(server, "/healthz")
    assert status == 503
    assert "The client thread has made no progress for 61 s" in text
    assert "test_where_the_main_thread_is_when_the_client_hangs" in text.partition("Stack of the main thread")[2]


def test_a_main_thread_that_rests_need_not_turn(health: Health, hooks: Hooks, clock: Clock) -> None:
    """A topic may be quiet for hours: only a thread that works has to turn."""
    hooks.report(ThreadProgressed(MAIN))
    clock.now_s += 59
    hooks.report(ThreadProgressed(MAIN))
    hooks.report(ClientProgressed())
    clock.now_s += 59
    assert health.hanging_threads() == []
    clock.now_s += 2
    assert [late.thread for late in health.hanging_threads()] == ["client", "main"]
    hooks.report(ClientProgressed())
    hooks.report(ThreadIdle(MAIN))
    assert health.hanging_threads() == []
    clock.now_s += 59
    hooks.report(ClientProgressed())
    clock.now_s += 59
    assert health.hanging_threads() == []


def test_workers_work_for_the_thread_that_judges(clock: Clock) -> None:
    """While it waits for them their progress is its own; they do not stand in for another thread."""
    health = Health(60, grouped=False, judge="judging", clock=clock)
    hooks = Hooks(health)
    hooks.report(ThreadProgressed("judging"))
    hooks.report(ThreadProgressed("read-ahead"))
    clock.now_s += 50
    hooks.report(WorkerProgressed())
    clock.now_s += 50
    assert [late.thread for late in health.hanging_threads()] == ["read-ahead"]
    hooks.report(ThreadIdle("judging"))
    hooks.report(WorkerProgressed())
    clock.now_s += 61
    assert [late.thread for late in health.hanging_threads()] == ["read-ahead"]


def test_a_file_has_no_group(clock: Clock) -> None:
    """A run over a file is ready at once, and only its work has to turn."""
    health = Health(60, grouped=False, clock=clock)
    hooks = Hooks(health)
    clock.now_s += 1000
    assert (health.hanging_threads(), health.unready_reasons()) == ([], [])
    hooks.report(ThreadProgressed(MAIN))
    clock.now_s += 61
    assert [late.thread for late in health.hanging_threads()] == ["main"]


def test_ready_once_partitions_are_assigned(server: PageServer, hooks: Hooks) -> None:
    """An assignment of no partitions counts: the consumer is a member of its group."""
    status, text, headers = get(server, "/readyz")
    assert status == 503
    assert headers["Content-Type"] == "application/json"
    assert json.loads(text) == {
        "ready": False,
        "reasons": ["source: no partitions assigned yet"],
        "held": {},
    }
    hooks.report(PartitionsRebalanced("assigned", 0))
    status, text, _ = get(server, "/readyz")
    assert status == 200
    assert json.loads(text) == {"ready": True, "reasons": [], "held": {}}


def test_not_ready_while_a_part_is_out_of_reach(server: PageServer, hooks: Hooks) -> None:
    """Each unreachable part is a reason until it is reachable again; the run is alive all the time."""
    hooks.report(PartitionsRebalanced("assigned", 4))
    for part in get_args(RunPart):
        hooks.report(Outage(part, "test", "nobody listens there"))
    status, text, _ = get(server, "/readyz")
    assert status == 503
    assert json.loads(text)["reasons"] == [f"{part}: nobody listens there" for part in sorted(get_args(RunPart))]
    assert get(server, "/healthz")[0] == 200
    back: RunPart
    for left, back in (
        ("database", "banks"),
        ("source", "database"),
        ("sink", "source"),
        ("store", "sink"),
    ):
        hooks.report(Outage(back, "test", None))
        assert f"{left}: nobody listens there" in json.loads(get(server, "/readyz")[1])["reasons"]
    hooks.report(Outage("store", "test", None))
    assert get(server, "/readyz")[0] == 200


def test_not_ready_when_it_ends(health: Health, hooks: Hooks) -> None:
    """A run that was asked to stop accepts nothing new."""
    hooks.report(PartitionsRebalanced("assigned", 1))
    health.note_stopping()
    assert health.unready_reasons() == ["run: stopping"]


def test_metrics_in_both_formats(server: PageServer, metrics: Metrics) -> None:
    """Prometheus' text format by default, OpenMetrics on request."""
    Hooks(metrics).report(SinkReconnected())
    status, text, headers = get(server, "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=")
    assert "\ndupwatch_sink_reconnections_total 1.0\n" in text
    assert "# EOF" not in text
    _, text, headers = get(server, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")


def test_a_path_nobody_knows(server: PageServer) -> None:
    """An unknown path is not found, and the answer lists the pages; unknown query parameters are ignored."""
    status, text, _ = get(server, "/articles")
    assert status == 404
    assert text.splitlines()[1:] == ["/healthz", "/metrics", "/readyz"]
    assert get(server, "/healthz?verbose=1")[0] == 200


def test_head_and_other_methods(server: PageServer) -> None:
    """HEAD is answered without a body; other methods are not supported."""
    status, text, headers = get(server, "/healthz", "HEAD")
    assert (status, text, headers["Content-Length"]) == (200, "", "3")
    with socket.create_connection(server.address, timeout=TIMEOUT_S) as client:
        client.sendall(b"HEAD /healthz HTTP/1.0\r\n\r\n")
        received = b"".join(iter(lambda: client.recv(1000), b""))
    assert received.endswith(b"\r\n\r\n")
    assert get(server, "/healthz", "POST")[0] == 501
    assert "Python" not in headers["Server"]


def test_a_page_that_fails_is_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """The client learns that the page failed, only the log says why, and the failure is counted."""

    def broken(request: PageRequest) -> PageResponse:
        raise RuntimeError("the reason")

    failures = Failures()
    with serve(broken, failures) as server, caplog.at_level(logging.ERROR, "dupwatch"):
        status, text, _ = get(server, "/")
        assert (status, failures.count) == (500, 1)
        assert "the reason" not in text
        assert "the reason" in caplog.text


def test_who_sends_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that connects and sends nothing is dropped after a while, and counted."""
    monkeypatch.setattr(page_server, "REQUEST_S", 0.1)
    failures = Failures()
    with serve(lambda _: PageResponse(HTTPStatus.OK, "text/plain", b""), failures) as server:
        with socket.create_connection(server.address, timeout=TIMEOUT_S) as silent:
            assert silent.recv(1) == b""
        wait_for(lambda: failures.count == 1)


def test_no_more_than_so_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit a request is refused at once, and counted; later there is room again."""
    monkeypatch.setattr(page_server, "REQUESTS_MAX", {"page": 2})
    release = threading.Event()
    begun = threading.Semaphore(0)

    def slow(request: PageRequest) -> PageResponse:
        begun.release()
        release.wait(TIMEOUT_S)
        return PageResponse(HTTPStatus.OK, "text/plain", b"done")

    failures = Failures()
    with serve(slow, failures) as server:
        statuses: list[int] = []
        asking = [threading.Thread(target=lambda: statuses.append(get(server, "/")[0])) for _ in range(2)]
        for thread in asking:
            thread.start()
        assert begun.acquire(timeout=TIMEOUT_S)
        assert begun.acquire(timeout=TIMEOUT_S)
        with socket.create_connection(server.address, timeout=TIMEOUT_S) as refused:
            refused.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert refused.recv(100).startswith(b"HTTP/1.0 503 ")
        assert failures.count == 1
        release.set()
        for thread in asking:
            thread.join(TIMEOUT_S)
        assert statuses == [200, 200]
        # A client has an answer a moment before its place is free.
        wait_for(lambda: get(server, "/")[0] == 200)


def test_a_client_that_breaks_off_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    """A connection that breaks during its answer is logged, and the server continues."""
    failures = Failures()
    gone = threading.Event()

    def late(request: PageRequest) -> PageResponse:
        gone.wait(TIMEOUT_S)
        return PageResponse(HTTPStatus.OK, "text/plain", bytes(10_000_000))

    with serve(late, failures) as server, caplog.at_level(logging.WARNING, "dupwatch"):
        client = socket.create_connection(server.address, timeout=TIMEOUT_S)
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        # A close with this set is a reset.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        client.close()
        gone.set()
        wait_for(lambda: failures.count == 1)
        assert "was not answered" in caplog.text
        assert get(server, "/")[0] == 200


def test_it_listens_on_loopback_and_is_gone_when_closed(health: Health, metrics: Metrics) -> None:
    """It listens on this machine only, and the port is free again at once. Closing again does nothing."""
    server = PageServer(LOCAL, health_pages(health, metrics), lambda: None)
    address = server.address
    assert address.host == "127.0.0.1"
    with socket.create_connection(address, timeout=TIMEOUT_S) as client:
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        # The side that closes first, here the server's, keeps the address for a while.
        while client.recv(1000):
            pass
    server.close()
    server.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=TIMEOUT_S)
    PageServer(address, {}, lambda: None).close()


def test_closing_waits_for_nobody(health: Health, metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connected, silent client does not delay the end of a run, however long it might be silent."""
    monkeypatch.setattr(page_server, "REQUEST_S", 600.0)
    server = PageServer(LOCAL, health_pages(health, metrics), lambda: None)
    with socket.create_connection(server.address, timeout=TIMEOUT_S):
        while not len(server._server.arriving):
            time.sleep(0.01)
        began_s = time.monotonic()
        server.close()
        assert time.monotonic() - began_s < 60


def test_a_port_that_is_taken(server: PageServer) -> None:
    """The error names the address and says what to do: a second consumer on a machine meets it first."""
    reason = f"at 127.0.0.1:{server.address.port}: Address already in use; set another address in http.listen, or leave"
    with pytest.raises(ConfigError, match=reason):
        PageServer(server.address, {}, lambda: None)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0.0.0.0:9464", ("0.0.0.0", 9464)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:0", ("localhost", 0)),
        ("9464", (HOST, 9464)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    """A host with its port, an IPv6 host in brackets, or a port of this machine only."""
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", ":80", "host:", "host:65536", "host:-1", "host:８０", "host"])
def test_what_is_no_address(text: str) -> None:
    """Anything else is refused, with an example of an address."""
    with pytest.raises(ConfigError, match=r"for example 127\.0\.0\.1:9464"):
        parse_address(text)
