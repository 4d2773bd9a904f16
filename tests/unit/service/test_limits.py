"""Every limit, met by a real client: what is answered, what is counted, and that others go on."""

import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, BinaryIO

import pytest

import dupwatch
from consumer.decode.json_value import parse_json
from consumer.model.limits import DecodeLimits
from consumer.service import checking
from consumer.web.requests import HEAD_BYTES_MAX
from tests.cli.command import text, wait_for
from tests.unit.service.gate import Gate
from tests.unit.service.serving import WAIT_S, Answer, Client, judging_of, served, wait_until_ready

REQUEST = b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SOON_S = 1.0


@contextmanager
def gated(window: dupwatch.Window, **settings: float) -> Iterator[tuple[Client, Gate]]:
    """A service whose store can be held up."""
    gate = Gate()
    with served(judging_of(window, gate.around(window._store)), **settings) as client:
        wait_until_ready(client)
        try:
            yield client, gate
        finally:
            gate.open()


@contextmanager
def several(count: int) -> Iterator[Callable[[Callable[[], Answer]], "Future[Answer]"]]:
    """Threads that ask at the same time."""
    with ThreadPoolExecutor(count) as pool:
        yield pool.submit


def read_all(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    data = b""
    try:
        while piece := connection.recv(65_536):
            data += piece
    except ConnectionResetError:
        pass
    return data


def wait_until_in_flight(client: Client, requests: int) -> None:
    """Wait until so many requests have begun, besides that which asks."""
    wait_for(lambda: client.metric("dupwatch_requests_in_flight") == requests + 1, WAIT_S)


def read_answer(connection: socket.socket, body: bytes = b"") -> bytes:
    """Read one answer, whose length it says; send the body once it is asked for."""
    with connection.makefile("rb") as file:
        head = read_head(file)
        if head.startswith(b"HTTP/1.1 100"):
            connection.sendall(body)
            head = read_head(file)
        length = next(line for line in head.splitlines() if line.lower().startswith(b"content-length:"))
        return head + file.read(int(length.partition(b":")[2]))


def read_head(file: BinaryIO) -> bytes:
    """Read the head of an answer."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = file.readline()
        assert line, head
        head += line
    return head


def problem_in(data: bytes) -> dict[str, Any]:
    """The problem in an answer as it was read."""
    head, _, body = data.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head
    problem: dict[str, Any] = json.loads(body)
    return problem


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has closed a connection on which nothing was asked."""
    connection.settimeout(0)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("piece_bytes", [0, 100], ids=["declared", "chunked"])
def test_a_body_that_is_too_large_is_refused(window: dupwatch.Window, piece_bytes: int) -> None:
    """Whether its length was declared or not, and the service goes on."""
    body = json.dumps({"articles": [{"body": "x" * 5_000}]}).encode()
    sent = (body[place : place + piece_bytes] for place in range(0, len(body), piece_bytes)) if piece_bytes else body
    with served(judging_of(window), body_bytes_max=2_000) as client:
        wait_until_ready(client)
        answer = client.send(sent)
        assert (answer.status, answer.json["type"]) == (413, "urn:dupwatch:problem:too-large")
        assert answer.json["limit"] == {"name": "body_bytes_max", "value": 2_000}
        assert client.limits_met("body_bytes_max") == 1
        assert client.check({"body": "x"}).status == 200


def test_too_many_articles_are_refused(window: dupwatch.Window) -> None:
    """As many as allowed are not."""
    with served(judging_of(window), articles_max=3) as client:
        wait_until_ready(client)
        answer = client.check(*[{"body": "x"}] * 4)
        assert (answer.status, answer.json["type"]) == (422, "urn:dupwatch:problem:invalid-request")
        assert answer.json["limit"] == {"name": "articles_max", "value": 3}
        assert client.limits_met("articles_max") == 1
        assert client.check(*[{"body": "x"}] * 3).status == 200


@pytest.mark.parametrize(
    ("limit", "value", "article"),
    [
        ("body_chars_max", 10, {"body": "x" * 11}),
        ("folded_chars_max", 10, {"body": "ﷺ" * 10}),
        ("depth_max", 3, {"body": "x", "id": [[[[]]]]}),
        ("id_bytes_max", 5, {"body": "x", "id": "éééé"}),
        ("title_chars_max", 5, {"body": "x", "title": "longer"}),
        ("source_chars_max", 5, {"body": "x", "source": "longer"}),
        ("url_chars_max", 5, {"body": "x", "url": "longer"}),
        ("lang_chars_max", 5, {"body": "x", "lang": "longer"}),
    ],
)
def test_an_article_that_meets_a_limit_is_told_which(
    window: dupwatch.Window, limit: str, value: int, article: dict[str, Any]
) -> None:
    """The others of the request are answered; alone it is refused."""
    with served(judging_of(window, limits=DecodeLimits(**{limit: value}))) as client:
        wait_until_ready(client)
        mixed, alone = client.check(article, {"body": "x"}), client.check(article)
        assert [result["outcome"] for result in mixed.json["results"]] == ["error", "unique"]
        assert mixed.json["results"][0]["problem"]["limit"] == {"name": limit, "value": value}
        assert (alone.status, alone.json["limit"]) == (422, {"name": limit, "value": value})
        assert client.limits_met(limit) == 2


@pytest.mark.parametrize("body", [b'{"articles": [' + b"1," * 60 + b"1]}", b"[" * 100_000])
def test_json_of_too_many_values_or_too_deep_is_refused(window: dupwatch.Window, body: bytes) -> None:
    """Before it becomes objects in memory."""
    with served(judging_of(window, limits=DecodeLimits(values_max=50))) as client:
        wait_until_ready(client)
        answer = client.send(body)
        assert (answer.status, answer.json["limit"]) == (422, {"name": "values_max", "value": 50})
        assert client.limits_met("values_max") == 1


def test_json_that_is_nested_too_deep_to_be_read_is_refused(client: Client) -> None:
    """It ends neither the thread nor the process."""
    answer = client.send(b'{"articles": ' + b"[" * 20_000 + b"]" * 20_000 + b"}")
    assert (answer.status, answer.json["reason"]) == (422, "nested_too_deep")


def test_a_head_that_is_too_large_is_refused(client: Client) -> None:
    """With a problem, not with plain text."""
    with client.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 2 * HEAD_BYTES_MAX)
        problem = problem_in(read_all(connection))
    assert (problem["status"], problem["limit"]) == (431, {"name": "head_bytes_max", "value": HEAD_BYTES_MAX})
    assert client.limits_met("head_bytes_max") == 1


def test_what_is_no_http_is_told_so(client: Client) -> None:
    """And the connection is closed."""
    with client.connect() as connection:
        connection.sendall(b"HELO there\r\n\r\n")
        assert problem_in(read_all(connection))["type"] == "urn:dupwatch:problem:malformed"


def test_what_cannot_be_read_is_not_repeated(client: Client) -> None:
    """A secret may be in it, and answers are logged on their way."""
    with client.connect() as connection:
        connection.sendall(b"GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nAuthorization : Bearer secret\r\n\r\n")
        problem = problem_in(read_all(connection))
    assert (problem["status"], problem["detail"]) == (400, "The request cannot be read: illegal header line.")


@pytest.mark.parametrize(
    "head",
    [
        REQUEST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
        REQUEST + b"transfer-encoding: chunked\r\ncontent-length: 0\r\n\r\n",
        REQUEST.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Transfer-Encoding: chunked\r\n\r\n",
    ],
    ids=range(3),
)
def test_a_body_with_two_lengths_is_refused(client: Client, head: bytes) -> None:
    """A proxy may go by the other one, so what follows may be the request of somebody else: nothing of it is read."""
    probe = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with client.connect() as connection:
        connection.sendall(head + b"0\r\n\r\n" + probe)
        data = read_all(connection)
    problem = problem_in(data)
    assert data.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in data.lower()
    assert (problem["status"], problem["type"]) == (400, "urn:dupwatch:problem:malformed")
    assert "Transfer-Encoding" in problem["detail"]


def test_an_upgrade_is_passed_over(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """As HTTP has it for servers that have nothing else, and without a warning for each request."""
    with caplog.at_level(logging.WARNING):
        assert client.get("/healthz", connection="Upgrade", upgrade="websocket").status == 200
    assert caplog.records == []


def test_a_broken_chunk_is_told_so(client: Client) -> None:
    """In the middle of a body, whose request then ends without an answer of its own."""
    with client.connect() as connection:
        connection.sendall(REQUEST + b"Transfer-Encoding: chunked\r\n\r\nnot a length\r\n")
        assert problem_in(read_all(connection))["type"] == "urn:dupwatch:problem:malformed"
    assert client.check({"body": "x"}).status == 200


@pytest.mark.parametrize(
    "sent", [b"", b"GET /healthz HTT", REQUEST + b"Content-Length: 50\r\n\r\n{"], ids=["nothing", "head", "body"]
)
def test_a_request_that_does_not_arrive_in_time_is_ended(window: dupwatch.Window, sent: bytes) -> None:
    """Wherever it stops."""
    with served(judging_of(window), receive_s=SOON_S) as client:
        wait_until_ready(client)
        with client.connect() as connection:
            connection.sendall(sent)
            problem = problem_in(read_all(connection))
        assert (problem["status"], problem["limit"]) == (408, {"name": "receive_s", "value": SOON_S})
        assert client.limits_met("receive_s") == 1


def test_a_second_request_has_to_arrive_in_time_too(window: dupwatch.Window) -> None:
    """On a connection that had one before."""
    with served(judging_of(window), receive_s=SOON_S) as client:
        wait_until_ready(client)
        with client.connect() as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert read_answer(connection).endswith(b"ok\n")
            connection.sendall(b"GET /heal")
            assert problem_in(read_all(connection))["status"] == 408


def test_who_sends_slowly_gives_way_to_others(window: dupwatch.Window) -> None:
    """Where all bodies together are too large, that which has been arriving for longest is ended."""
    body = json.dumps({"articles": [{"body": text(1, 100)}]}).encode()
    length = b"Content-Length: %d\r\n\r\n" % len(body)
    with served(judging_of(window), body_bytes_max=len(body), received_bytes_max=2 * len(body)) as client:
        wait_until_ready(client)
        with client.connect() as slow, client.connect() as slower:
            for connection in (slow, slower):
                connection.sendall(REQUEST + length + body[:-10])
                wait_until_in_flight(client, 1 if connection is slow else 2)
            assert client.send(body).status == 200
            answer = read_answer(slow)
            assert b"retry-after: 1" in answer
            assert problem_in(answer)["limit"] == {"name": "received_bytes_max", "value": 2 * len(body)}
            slower.sendall(body[-10:])
            assert read_answer(slower).startswith(b"HTTP/1.1 200")
        assert client.limits_met("received_bytes_max") == 1


def test_requests_beyond_the_limit_are_refused_at_once(window: dupwatch.Window) -> None:
    """While others are worked on, and probes and metrics are answered all the same."""
    with gated(window, threads=1, requests_max=3) as (client, gate), several(3) as ask:
        gate.close()
        waiting = [ask(lambda: client.check({"body": "x"})) for _ in range(3)]
        gate.wait_for(1)
        wait_until_in_flight(client, 3)
        wait_for(lambda: client.check({"body": "x"}).status == 503, WAIT_S)
        answer = client.check({"body": "x"})
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.json["type"] == "urn:dupwatch:problem:busy"
        assert answer.json["limit"] == {"name": "requests_max", "value": 3}
        assert client.limits_met("requests_max") >= 2
        assert [client.get(path).status for path in ("/healthz", "/readyz", "/metrics")] == [200, 200, 200]
        gate.open()
        assert [each.result(WAIT_S).status for each in waiting] == [200, 200, 200]
        assert client.check({"body": "x"}).status == 200


def test_a_store_that_hangs_ends_the_request_and_not_the_service(window: dupwatch.Window) -> None:
    """Its place is free again once the call has ended."""
    with gated(window, threads=1, requests_max=1, answer_s=SOON_S) as (client, gate):
        gate.close()
        answer = client.check({"body": "x"})
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.json["type"] == "urn:dupwatch:problem:store"
        assert answer.json["limit"] == {"name": "answer_s", "value": SOON_S}
        assert client.limits_met("answer_s") == 1
        assert client.check({"body": "x"}).json["limit"]["name"] == "requests_max"
        gate.open()
        wait_for(lambda: client.check({"body": "x"}).status == 200, WAIT_S)


def test_idle_connections_give_way_to_new_ones(window: dupwatch.Window) -> None:
    """The one that has been idle for longest, and never one whose request is being worked on."""
    with gated(window, connections_max=5, requests_max=2) as (client, gate), several(1) as ask:
        gate.close()
        working = ask(lambda: client.check({"body": "x"}))
        gate.wait_for(1)
        idle: list[socket.socket] = []
        try:
            idle += [client.connect() for _ in range(4)]
            wait_for(lambda: client.metric("dupwatch_connections") == 5, WAIT_S)
            assert client.get("/healthz").status == 200
            wait_for(lambda: is_closed(idle[0]), WAIT_S)
            assert client.limits_met("connections_max") >= 1
            idle += [client.connect() for _ in range(10)]
            gate.open()
            assert working.result(WAIT_S).status == 200
        finally:
            for connection in idle:
                connection.close()


def test_slow_and_idle_clients_keep_nobody_waiting(window: dupwatch.Window) -> None:
    """Neither probes nor checks, however many of them there are."""
    with served(judging_of(window), connections_max=150, requests_max=4) as client:
        wait_until_ready(client)
        slow = [client.connect() for _ in range(300)]
        try:
            for number, connection in enumerate(slow):
                try:
                    connection.sendall((b"", b"GET /h", REQUEST + b"Content-Length: 100000\r\n\r\n{")[number % 3])
                except OSError:
                    # It had to give way already.
                    continue
            assert [client.get("/healthz").status, client.check({"body": "x"}).status] == [200, 200]
            assert client.metric("dupwatch_connections") <= 150
        finally:
            for connection in slow:
                connection.close()


def test_the_loop_answers_while_a_large_request_is_read(
    window: dupwatch.Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON is parsed where it holds up nobody."""
    threads: list[str] = []

    def noted(data: bytes, values_max: int) -> object:
        threads.append(threading.current_thread().name)
        return parse_json(data, values_max)

    monkeypatch.setattr(checking, "parse_json", noted)
    with served(judging_of(window)) as client:
        wait_until_ready(client)
        assert client.check({"body": "x"}).status == 200
    assert [name.startswith("answer") for name in threads] == [True]


def test_what_is_in_hand_is_answered_before_the_service_ends(window: dupwatch.Window) -> None:
    """And nobody is let in any more."""
    gate = Gate()
    with several(1) as ask:
        with served(judging_of(window, gate.around(window._store))) as client:
            wait_until_ready(client)
            gate.close()
            working = ask(lambda: client.check({"body": "x"}))
            gate.wait_for(1)
            threading.Timer(SOON_S, gate.open).start()
        assert working.result(WAIT_S).status == 200
        with pytest.raises(OSError, match="refused"):
            client.connect()


def test_the_service_ends_after_the_last_call_of_its_store(window: dupwatch.Window) -> None:
    """Also after one whose request was given up: the store is closed next."""
    gate = Gate()
    with served(judging_of(window, gate.around(window._store)), answer_s=SOON_S) as client:
        wait_until_ready(client)
        gate.close()
        assert client.check({"body": "x"}).status == 503
        gate.wait_for(1)
        threading.Timer(SOON_S, gate.open).start()
    assert gate.waiting == 0
