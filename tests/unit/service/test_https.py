"""The service over TLS: new certificates without a restart, and handshakes that do not end."""

import shutil
import socket
import ssl
import time
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

import dupwatch
from consumer.config.sections.service import ServiceSection
from consumer.model.errors import ConfigError
from consumer.web.certificates import validities
from tests.cli.command import wait_for
from tests.unit.service.gate import Gate
from tests.unit.service.serving import WAIT_S, Client, judging_of, served, trusting, wait_until_ready
from tests.unit.service.test_limits import SOON_S, is_closed, read_all, read_answer, several
from tests.unit.web.pair import Pair

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
EXPIRY = "dupwatch_certificate_expiry_timestamp_seconds"


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """The files that are served."""
    return Pair(tmp_path / "served")


@pytest.fixture
def client(window: dupwatch.Window, pair: Pair) -> Iterator[Client]:
    """A service over HTTPS."""
    with served(judging_of(window), **files(pair)) as client:
        wait_until_ready(client)
        yield client


def files(pair: Pair) -> dict[str, str]:
    """The settings that name a pair."""
    return {"tls_certificate": str(pair.certificate), "tls_key": str(pair.key)}


def shown(client: Client) -> bytes:
    """The certificate that a new connection gets."""
    with client.connect() as connection, trusting().wrap_socket(connection) as secured:
        return secured.getpeercert(binary_form=True) or b""


def test_requests_are_answered_over_https(client: Client) -> None:
    """Those with a body too, and several on one connection."""
    assert client.url.startswith("https://127.0.0.1:")
    assert client.check({"body": "x" * 300_000}).status == 200
    connection = HTTPSConnection(*client.address, timeout=WAIT_S, context=trusting())
    try:
        for _ in range(3):
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, b'{"ready":true,"reasons":[]}')
    finally:
        connection.close()


def test_a_request_that_comes_with_the_end_of_the_handshake(client: Client) -> None:
    """Is not lost: it may be in the same packet."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    secured = trusting().wrap_bio(incoming, outgoing)
    with client.connect() as connection:
        while True:
            try:
                secured.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.sendall(outgoing.read())
                incoming.write(connection.recv(65_536))
        # The client's last message of the handshake is still here.
        assert outgoing.pending
        secured.write(HEALTH)
        connection.sendall(outgoing.read())
        answer = b""
        while not answer.endswith(b"ok\n"):
            try:
                answer += secured.read()
            except ssl.SSLWantReadError:
                data = connection.recv(65_536)
                assert data, "the connection was closed"
                incoming.write(data)
    assert answer.startswith(b"HTTP/1.1 200")


def test_a_new_certificate_is_shown_without_a_restart(client: Client, pair: Pair, tmp_path: Path) -> None:
    """Once both files are new; a connection from before goes on. Metrics say when the certificate expires."""
    old, new = pair.der, Pair(tmp_path / "new", days=30)
    before = validities(pair.certificate.read_bytes())[0].ends.timestamp()
    with client.connect() as connection, trusting().wrap_socket(connection) as lasting:
        assert shown(client) == old
        assert client.metric(EXPIRY) == before
        shutil.copyfile(new.certificate, pair.certificate)
        wait_for(lambda: client.metric('dupwatch_errors_total{type="certificate"}') >= 1, WAIT_S)
        assert shown(client) == old
        shutil.copyfile(new.key, pair.key)
        wait_for(lambda: shown(client) == new.der, WAIT_S)
        assert client.metric(EXPIRY) == validities(new.certificate.read_bytes())[0].ends.timestamp()
        lasting.sendall(HEALTH)
        assert read_answer(lasting).endswith(b"ok\n")


def test_a_handshake_that_does_not_end_is_ended(window: dupwatch.Window, pair: Pair) -> None:
    """As a head that does not arrive is, wherever it stops."""
    with served(judging_of(window), receive_s=SOON_S, **files(pair)) as client:
        wait_until_ready(client)
        for sent in (b"", b"\x16\x03\x01\x02\x00\x01"):
            with client.connect() as connection:
                connection.sendall(sent)
                assert read_all(connection) == b""
        assert client.limits_met("receive_s") == 2
        wait_for(lambda: client.metric("dupwatch_connections") == 1, WAIT_S)
        with client.connect() as connection, trusting().wrap_socket(connection) as secured:
            secured.sendall(b"GET /heal")
            assert read_all(secured).startswith(b"HTTP/1.1 408")


def test_handshakes_count_as_connections_and_give_way(window: dupwatch.Window, pair: Pair) -> None:
    """The one that has been idle for longest does; a request that is worked on does not."""
    gate = Gate()
    limits: dict[str, Any] = {"connections_max": 5, "requests_max": 2} | files(pair)
    with several(1) as ask, served(judging_of(window, gate.around(window._store)), **limits) as client:
        wait_until_ready(client)
        gate.close()
        working = ask(lambda: client.check({"body": "x"}))
        gate.wait_for(1)
        silent: list[socket.socket] = []
        try:
            silent += [client.connect() for _ in range(4)]
            assert client.get("/healthz").status == 200
            wait_for(lambda: is_closed(silent[0]), WAIT_S)
            silent += [client.connect() for _ in range(40)]
            assert client.get("/healthz").status == 200
            assert client.metric("dupwatch_connections") <= 5
            assert client.limits_met("connections_max") >= 1
            gate.open()
            assert working.result(WAIT_S).status == 200
        finally:
            gate.open()
            for connection in silent:
                connection.close()
        # Those that have left are forgotten.
        wait_for(lambda: client.metric("dupwatch_connections") == 1, WAIT_S)


@pytest.mark.parametrize("sent", [HEALTH, b"\x00" * 100], ids=["http", "noise"])
def test_what_is_no_handshake_ends_its_connection_alone(client: Client, sent: bytes) -> None:
    """Others go on, and nothing is left of it."""
    with client.connect() as connection:
        connection.sendall(sent)
        assert not read_all(connection).startswith(b"HTTP")
    assert client.get("/healthz").status == 200
    wait_for(lambda: client.metric("dupwatch_connections") == 1, WAIT_S)


def test_it_ends_while_clients_shake_hands_or_are_idle(window: dupwatch.Window, pair: Pair) -> None:
    """It closes their connections, and waits neither for a handshake nor for a farewell."""
    slow: dict[str, Any] = {"receive_s": WAIT_S, "drain_s": 0.8 * WAIT_S} | files(pair)
    with served(judging_of(window), **slow) as client:
        wait_until_ready(client)
        silent, connection = client.connect(), client.connect()
        idle = trusting().wrap_socket(connection)
        idle.sendall(HEALTH)
        assert read_answer(idle).endswith(b"ok\n")
        asked_s = time.monotonic()
    assert time.monotonic() - asked_s < WAIT_S / 2
    try:
        assert read_all(silent) == b""
        assert read_all(idle) == b""
    finally:
        silent.close()
        idle.close()


def test_the_certificate_has_to_be_usable(window: dupwatch.Window, pair: Pair) -> None:
    """The message names the setting."""
    pair.key.write_text("")
    with (
        pytest.raises(ConfigError, match=r"service\.tls_certificate: .* cannot be used"),
        served(judging_of(window), **files(pair)),
    ):
        pytest.fail("it has started")
    with pytest.raises(ValueError, match="tls_key has no effect without tls_certificate"):
        ServiceSection(tls_key="tls.key")
