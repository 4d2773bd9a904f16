"""A registry that means harm: what it can make the client ask, how long it can keep it, and what comes of it."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from consumer.decode.schemas.registry import (
    SCHEMA_BYTES_MAX,
    ConfluentRegistry,
    RegistryOptions,
    RegistryUnavailable,
    UnusableSchema,
)
from tests.registry_server import Answer, RegistryServer, serving

REQUEST_S = 60.0
SHORT_S = 1.0


def client(url: str, given: dict[str, str] | None = None, request_s: float = REQUEST_S) -> ConfluentRegistry:
    """A client of the registry there."""
    return ConfluentRegistry(RegistryOptions(url, request_s, given or {}, {}, SCHEMA_BYTES_MAX), "avro")


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    """A registry."""
    with serving(RegistryServer()) as registry:
        yield registry


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(server: RegistryServer, status: int) -> None:
    """Not to another host, with the credentials or without, nor to a private address or a file; a sentence says so."""
    with serving(RegistryServer()) as other:
        targets = [
            f"{other.url}/schemas/ids/1",
            "http://169.254.169.254/latest",
            "file:///etc/passwd",
            "/schemas/ids/2",
        ]
        for asked, target in enumerate(targets, 1):
            server.says = Answer(status, b"", {"Location": target})
            with pytest.raises(RegistryUnavailable, match=rf"redirects \({status}\), which is not followed"):
                client(server.url, {"basic.auth.user.info": "reader:hunter2"}).schema(1)
            assert server.asked == ["GET /schemas/ids/1"] * asked
        assert other.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        Answer.json(200, schema=123),
        Answer.json(200, schema=None),
        Answer.json(200, schema="\ud800"),
        Answer.json(200, schema=["x"]),
        Answer.json(200, schema="x", schemaType=["AVRO"]),
        Answer.json(200, schema="x", references=5),
        Answer.json(200, schema="x", references=[{"name": ["x"], "subject": 5, "version": {}}]),
        Answer.json(200, schema="x", ruleSet=[1]),
        Answer.json(404, error_code=[40403], message={}),
        Answer(200, b"[" * 1_000_000),
        Answer(200, b"9" * 1_000_000),
    ],
    ids=lambda answer: f"{answer.status} {answer.body[:60]!r}",
)
def test_members_of_any_type_are_an_outage(server: RegistryServer, answer: Answer) -> None:
    """Nothing else is raised: it would end the consumer."""
    server.says = answer
    with pytest.raises(RegistryUnavailable, match="does not answer as a schema registry"):
        client(server.url).schema(1)


def test_references_lead_to_no_other_path_than_theirs(server: RegistryServer) -> None:
    """Names of subjects and versions are parts of a path, whatever they hold."""
    server.says = Answer.json(
        200, schema="x", references=[{"name": "a", "subject": "../../x?y#http://other/", "version": "1/../../z"}]
    )
    client(server.url).schema(1)
    assert all(request.startswith(("GET /schemas/ids/", "GET /subjects/..%2F..%2Fx%3Fy")) for request in server.asked)


def test_a_chain_of_references_ends(server: RegistryServer) -> None:
    """At the limit, not with the stack."""
    for number in range(1, 3_001):
        below = {"name": f"n{number}", "subject": f"s{number}", "version": 1}
        server.schemas[number] = {"schema": "x", "schemaType": "AVRO", "references": [below]}
        server.subjects[f"s{number - 1}"] = [number]
    with pytest.raises(UnusableSchema, match="more than 100 others"):
        client(server.url).schema(1)
    assert len(server.asked) == 101


@contextmanager
def sending(opening: bytes, again: bytes) -> Iterator[str]:
    """A server that sends ``again`` every 20 ms, for two minutes at most."""
    over = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection:
            connection.recv(65_536)
            connection.sendall(opening)
            for _ in range(6_000):
                if over.wait(0.02):
                    return
                connection.sendall(again)

    def run(listener: socket.socket) -> None:
        # Whatever is wrong with a connection, the client sees it.
        for step in _accepted(listener):
            threading.Thread(target=_quietly, args=(answer, step), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=run, args=(listener,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(REQUEST_S)


def _accepted(listener: socket.socket) -> Iterator[socket.socket]:
    while True:
        try:
            yield listener.accept()[0]
        except OSError:
            return


def _quietly(call: Callable[[socket.socket], None], connection: socket.socket) -> None:
    try:
        call(connection)
    except OSError:
        return


@pytest.mark.parametrize(
    ("opening", "again"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"a"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"a"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"A: b\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", b" "),
    ],
    ids=["interim answers", "hints", "head", "extension of a chunk", "trailers", "body without a length"],
)
def test_an_answer_takes_no_longer_than_its_time(opening: bytes, again: bytes) -> None:
    """Wherever in it something arrives now and then: each read is short, and the answer has no end."""
    with sending(opening, again) as url:
        began_s = time.monotonic()
        with pytest.raises(RegistryUnavailable, match=r"took longer than 1 s \(registry\.request_s\)"):
            client(url, request_s=SHORT_S).schema(1)
        assert time.monotonic() - began_s < 60
