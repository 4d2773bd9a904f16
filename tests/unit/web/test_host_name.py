"""The host that a request names, and what is no host. Every server of ours goes by it."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dupwatch
from consumer.web.access import HOST, Access, BadHost, ListenAddress, request_host
from consumer.web.page_server import PageServer
from tests.unit.console.serving import served as console_served
from tests.unit.service.serving import judging_of, wait_until_ready
from tests.unit.service.serving import served as service_served
from tests.unit.web.test_page_server import NAMED_PAGES

NAMED = [
    ("127.0.0.1", "127.0.0.1"),
    ("127.0.0.1:9464", "127.0.0.1"),
    ("LocalHost:1", "localhost"),
    (" localhost\t", "localhost"),
    ("[::1]", "::1"),
    ("[0:0::1]:65535", "::1"),
    ("Evil.Example:80", "evil.example"),
    ("localhost.", "localhost."),
    ("127.0.0.1.", "127.0.0.1."),
    ("", None),
]
MALFORMED = [
    "[127.0.0.1]evil.com",
    "[127.0.0.1]",
    "[::1]evil.com",
    "[::1]evil.com:80",
    "evil.com[::1]",
    "[::1",
    "::1",
    "[]",
    "[::1%25lo]",
    "[[::1]]",
    "127.0.0.1:",
    "127.0.0.1:65536",
    "127.0.0.1:-1",
    "127.0.0.1:+80",
    "127.0.0.1:8o",
    "127.0.0.1:80:80",
    "127.0.0.1:\u0661",
    "127.0.0.1:000080",
    ":80",
    "evil.com@127.0.0.1",
    "127.0.0.1:80@evil.com",
    "127.0.0.1/evil.com",
    "127.0.0.1#evil.com",
    "127.0.0.1 evil.com",
    "127.0.0.1,evil.com",
    "127.0.0.1\r\n evil.com",
    "%31%32%37.0.0.1",
    "localhost\n",
]
# What is sent, between request line and end, and the status. An empty host names no other site.
SENT = [
    ("/healthz", "Host: 127.0.0.1:1", 200),
    ("/healthz", "Host: [::1]", 200),
    ("/healthz", "Host:", 200),
    ("/healthz", "Host: [127.0.0.1]evil.com", 400),
    ("/healthz", "Host: evil.com@127.0.0.1", 400),
    ("/healthz", "Host: 127.0.0.1:8o", 400),
    ("/healthz", "Host: 127.0.0.1:65536", 400),
    ("/healthz", "Host: 127.0.0.1\r\nHost: 127.0.0.1", 400),
    ("/healthz", "Host: evil.com\r\nHost: 127.0.0.1", 400),
    ("/healthz", "Host: 127.0.0.1.", 421),
    ("/healthz", "Host: localhost.", 421),
    ("http://evil.com/healthz", "Host: 127.0.0.1", 421),
    ("http://user@127.0.0.1/healthz", "Host: 127.0.0.1", 400),
    ("http:///healthz", "Host: 127.0.0.1", 400),
    ("http://127.0.0.1/healthz", "Host: 127.0.0.1", 404),
]


@pytest.mark.parametrize(("text", "host"), NAMED)
def test_a_host_is_named_without_its_port(text: str, host: str | None) -> None:
    """In small letters, and addresses in one form; a name with a dot at its end is another name."""
    assert request_host([text], "/flags?x=http://evil.com/") == host


@pytest.mark.parametrize("text", MALFORMED)
def test_what_is_no_host_is_refused(text: str) -> None:
    """Also in a target that is a whole URL; where it stands, and with or without a name that is known."""
    with pytest.raises(BadHost):
        request_host([text], "/")
    if not set(text) & set("/#"):
        with pytest.raises(BadHost):
            request_host(["localhost"], f"http://{text}/")


def test_several_hosts_are_refused_and_none_is_none() -> None:
    """Of two a proxy may have looked at the other one. That of a whole URL counts instead of the header."""
    with pytest.raises(BadHost):
        request_host(["localhost", "localhost"], "/")
    assert request_host([], "/") is None
    assert request_host(["localhost"], "https://evil.com:80?x") == "evil.com"
    assert request_host([], "http://localhost") == "localhost"


@pytest.fixture(params=["service", "console", "pages"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, int]]:
    """Where each of our servers listens."""
    serve: dict[str, Callable[[], Iterator[tuple[str, int]]]] = {
        "service": _service, "console": lambda: _console(tmp_path), "pages": _pages
    }  # fmt: skip
    yield from serve[request.param]()


def _service() -> Iterator[tuple[str, int]]:
    with dupwatch.open("memory:") as window, service_served(judging_of(window)) as client:
        wait_until_ready(client)
        yield client.address


def _console(folder: Path) -> Iterator[tuple[str, int]]:
    with console_served(folder) as console, console.connect() as connection:
        yield connection.getpeername()


def _pages() -> Iterator[tuple[str, int]]:
    pages = {"/healthz": NAMED_PAGES["/"]} | NAMED_PAGES
    with PageServer(ListenAddress(HOST, 0), pages, lambda: None, Access()) as server:
        yield server.address


def test_every_server_refuses_the_same(address: tuple[str, int], request: pytest.FixtureRequest) -> None:
    """So that no page of another site can point its own name here."""
    statuses = []
    for target, host, _ in SENT:
        with socket.create_connection(address, 30) as connection:
            connection.sendall(f"GET {target} HTTP/1.1\r\n{host}\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: connection.recv(65_536), b""))
        statuses.append(int(answer.split()[1]))
    expected = [status for *_, status in SENT]
    if "pages" in request.node.name:
        # Its page has articles, which need a host; and it has no page of the other target.
        expected[2], expected[11] = 421, 404
    assert statuses == expected
