"""Attempts to deliver messages, at real servers: what is sent, where to, for how long, and what comes of it."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from consumer.webhooks import courier as courier_module
from consumer.webhooks.courier import AttemptOutcome, Courier, RefusedEndpoint, WebhookMessage
from consumer.webhooks.signing import new_secret
from tests.unit.webhooks.receivers import (
    LOCAL,
    NAME,
    SECRET,
    Reaction,
    Received,
    Receiver,
    certificate,
    courier,
    raw,
    serving,
    shown_by,
)

BODY = json.dumps({"schema": "dupwatch.test/1", "title": "港口"}).encode()
MESSAGE = WebhookMessage("0123456789abcdef-7", BODY, [SECRET])
SHORT_S = 0.5
"""For attempts that should take too long."""
ACCEPTED = b"HTTP/1.1 204 No Content\r\n\r\n"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver without TLS."""
    with serving(Receiver(0)) as started:
        yield started


def send(to: Courier, url: str, message: WebhookMessage = MESSAGE) -> AttemptOutcome:
    """Make one attempt now."""
    return to.send(url, message, time.time())


def read_request(connection: socket.socket) -> None:
    """Read until the message is there."""
    data = piece = connection.recv(4_096)
    while piece and not data.endswith(BODY):
        data += (piece := connection.recv(4_096))


def test_a_message_arrives_signed(receiver: Receiver) -> None:
    """With both secrets while there are two; the receiver's library accepts it with either."""
    new = new_secret()
    outcome = send(courier(), receiver.url("/a?b=%20c"), MESSAGE._replace(secrets=[new, SECRET]))
    assert outcome == AttemptOutcome("accepted", 204)
    (received,) = receiver.received
    assert received.path == "/a?b=%20c"
    assert received.verify(SECRET) == received.verify(new) == json.loads(BODY)
    assert received.message_id == "0123456789abcdef-7"
    assert received.headers["content-type"] == "application/json"
    assert received.headers["host"] == f"127.0.0.1:{receiver.port}"


def test_any_status_from_200_to_299_accepts(receiver: Receiver) -> None:
    """Whatever its body is, which is not read."""
    for status in (200, 201, 202, 299):
        receiver.react = lambda _, status=status: Reaction(status, body=b"x" * 100_000)  # type: ignore[misc]
        assert send(courier(), receiver.url()) == AttemptOutcome("accepted", status)


@pytest.mark.parametrize("status", [400, 401, 404, 410, 429, 500, 503, 599])
def test_other_statuses_fail_and_show_what_was_said(receiver: Receiver, status: int) -> None:
    """The beginning of it, and when the receiver wants to be asked again."""
    said = [("retry-after", "120")]
    receiver.react = lambda _: Reaction(status, said, "Nein, 不行".encode())
    assert send(courier(), receiver.url()) == AttemptOutcome("rejected", status, "status", "Nein, 不行", 120.0)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(receiver: Receiver, status: int) -> None:
    """To this machine neither: nothing arrives there, and the attempt has failed."""
    with serving(Receiver(0)) as inner:
        receiver.react = lambda _: Reaction(status, [("location", inner.url("/admin"))])
        outcome = send(courier(), receiver.url())
        assert outcome == AttemptOutcome("rejected", status, "redirect", inner.url("/admin"))
        assert inner.received == []
    assert len(receiver.received) == 1


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"), ("127.1", "127.0.0.1"), ("2130706433", "127.0.0.1"), ("0x7f000001", "127.0.0.1"),
        ("localhost", "127.0.0.1"), ("0.0.0.0", "0.0.0.0"), ("0", "0.0.0.0"), ("10.0.0.1", "10.0.0.1"),
        ("192.168.0.1", "192.168.0.1"), ("172.16.0.1", "172.16.0.1"), ("169.254.169.254", "169.254.169.254"),
        ("[::1]", "::1"), ("[::ffff:127.0.0.1]", "::ffff:127.0.0.1"), ("[64:ff9b::7f00:1]", "64:ff9b::7f00:1"),
        ("[64:ff9b:1::a00:1]", "64:ff9b:1::a00:1"), ("[2002:7f00:1::]", "2002:7f00:1::"), ("[fe80::1]", "fe80::1"),
        ("[fd00::1]", "fd00::1"), ("[fec0::1]", "fec0::1"), ("[ff02::1]", "ff02::1"), ("[::]", "::"),
    ],
)  # fmt: skip
def test_nothing_is_sent_to_an_address_that_is_not_global(host: str, address: str) -> None:
    """As the system's own resolver understands it; both a check and an attempt name the address."""
    plain = Courier(allows_http=True)
    outcome = send(plain, f"http://{host}:9/")
    assert (outcome.result, outcome.cause, outcome.detail.split(" ")[0]) == ("refused_address", "address", address)
    with pytest.raises(RefusedEndpoint) as refused:
        plain.check(f"http://{host}:9/")
    assert refused.value.detail == outcome.detail


def test_all_addresses_of_a_name_have_to_be_global(receiver: Receiver) -> None:
    """One that is not is enough, even behind others, and even where another is allowed by the configuration."""
    for addresses in (("127.0.0.1", "10.0.0.1"), ("127.0.0.1", "::1"), ("8.8.8.8", "169.254.169.254")):
        outcome = send(courier(*addresses), receiver.url(host=NAME))
        assert (outcome.result, outcome.detail.split(" ")[0]) == ("refused_address", addresses[1])
    assert receiver.received == []


def test_a_name_is_looked_up_once_and_connected_to_where_it_was_checked(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that has another address a moment later leads nowhere else: the socket gets the checked address."""
    answers, connected = [["127.0.0.1"], ["10.9.9.9"], ["10.9.9.9"]], []
    looked_up = []

    def resolve(host: str, port: int) -> list[str]:
        looked_up.append((host, port))
        return answers[len(looked_up) - 1]

    class Watched(socket.socket):
        def connect(self, address: object) -> None:
            connected.append(address)
            super().connect(address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "socket", Watched)
    # Whoever else looks a name up fails.
    monkeypatch.setattr(socket, "getaddrinfo", None)
    monkeypatch.setattr(socket, "gethostbyname", None)
    watched = Courier(LOCAL, allows_http=True, resolve=resolve)
    assert send(watched, receiver.url(host=NAME)).result == "accepted"
    assert looked_up == [(NAME, receiver.port)]
    assert ("127.0.0.1", receiver.port) in connected
    assert all(address[0] == "127.0.0.1" for address in connected)  # type: ignore[index]
    assert receiver.received[0].headers["host"] == f"{NAME}:{receiver.port}"
    # The next attempt looks again, and is refused.
    assert send(watched, receiver.url(host=NAME)).detail == "10.9.9.9 private"
    assert len(receiver.received) == 1


def test_an_address_that_does_not_answer_leaves_time_for_the_next(receiver: Receiver) -> None:
    """A name may have several."""
    assert send(courier("127.0.0.2", "127.0.0.1"), receiver.url(host=NAME)).result == "accepted"


def test_proxies_of_the_environment_are_ignored(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would look the name up themselves, and see what is sent."""
    with serving(Receiver(0)) as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url("", "127.0.0.1"))
        assert send(courier(), receiver.url()).result == "accepted"
        assert proxy.received == []
    assert len(receiver.received) == 1


def test_tls_proves_the_name_and_not_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver is told the name, and its certificate has to have it; another is refused before a byte is sent."""
    path = certificate(tmp_path)
    names = []
    shown = shown_by(path)
    shown.sni_callback = lambda connection, name, context: names.append(name)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with serving(Receiver(0), shown) as receiver:
        url = receiver.url(host=NAME, scheme="https")
        assert send(courier(), url) == AttemptOutcome("accepted", 204)
        assert names == [NAME]
        assert receiver.received[0].headers["host"] == f"{NAME}:{receiver.port}"
        outcome = send(courier(), url.replace(NAME, "other.example"))
        assert (outcome.result, outcome.cause) == ("unreachable", "tls")
        assert "other.example" in outcome.detail
        monkeypatch.delenv("SSL_CERT_FILE")
        assert send(courier(), url).cause == "tls"
        assert len(receiver.received) == 1


def test_https_is_needed_unless_configured(receiver: Receiver) -> None:
    """And where it is, plain HTTP at the other end is a failure."""
    outcome = send(courier(allows_http=False), receiver.url())
    assert (outcome.result, outcome.explanation) == ("refused_address", "url scheme")
    assert send(courier(), receiver.url(scheme="https")).cause == "tls"
    assert receiver.received == []


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda connection: None, id="closes"),
        pytest.param(lambda connection: connection.sendall(b"HTTP/1.1 2"), id="ends early"),
        pytest.param(lambda connection: connection.sendall(b"SSH-2.0-OpenSSH\r\n\r\n"), id="SSH"),
        pytest.param(lambda connection: connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 2), id="only 100"),
        pytest.param(lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 5_000), id="huge head"),
        pytest.param(lambda connection: connection.sendall(b"\0" * 100_000), id="zeros"),
    ],
)
def test_what_is_no_answer_fails(answer: Callable[[socket.socket], None]) -> None:
    """And is read no further than 4 kB."""

    def answered(connection: socket.socket) -> None:
        read_request(connection)
        answer(connection)

    with raw(answered) as receiver:
        outcome = send(courier(), receiver.url())
    assert outcome.result == "unreachable"
    assert outcome.cause in {"answer", "connection"}


def test_no_more_than_4_kb_of_an_answer_are_read() -> None:
    """What is left over stays with the receiver, which finds the connection closed."""
    sent: list[int] = []
    is_closed = threading.Event()

    def answered(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 500 No\r\n\r\n")
        try:
            # More than systems buffer.
            while sum(sent) < 100_000_000:
                sent.append(connection.send(b"x" * 65_536))
        except OSError:
            is_closed.set()

    with raw(answered) as receiver:
        outcome = send(courier(), receiver.url())
    assert is_closed.is_set()
    assert (outcome.status, outcome.detail) == (500, "x" * 400)


def wait_for(is_over: threading.Event) -> None:
    """Say nothing until a test has ended."""
    assert is_over.wait(60)


def drip(connection: socket.socket, data: bytes) -> None:
    """Send a byte at a time, for longer than an attempt may take."""
    for byte in data:
        connection.sendall(bytes([byte]))
        time.sleep(SHORT_S / 10)


def test_an_answer_that_drips_is_cut() -> None:
    """Each byte comes in good time, and all together do not."""

    def answered(connection: socket.socket) -> None:
        read_request(connection)
        drip(connection, ACCEPTED)

    with raw(answered) as receiver:
        assert send(courier(attempt_s=SHORT_S), receiver.url()) == AttemptOutcome("unreachable", cause="time")


def test_a_body_that_drips_does_not_change_the_status() -> None:
    """It is cut just the same."""

    def answered(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 503 Later\r\nretry-after: 9\r\n\r\n")
        drip(connection, b"z" * 100)

    with raw(answered) as receiver:
        outcome = send(courier(attempt_s=SHORT_S), receiver.url())
    assert (outcome.result, outcome.status, outcome.retry_after_s) == ("rejected", 503, 9.0)
    assert 0 < len(outcome.detail) < 100


def test_a_receiver_that_reads_nothing_is_cut() -> None:
    """A large message fills what systems buffer; the sender waits no longer than for an answer."""
    is_over = threading.Event()
    with raw(lambda _: wait_for(is_over)) as receiver:
        large = MESSAGE._replace(body=b"x" * 30_000_000)
        outcome = send(courier(attempt_s=SHORT_S), receiver.url(), large)
        is_over.set()
    assert outcome == AttemptOutcome("unreachable", cause="time")


def test_an_answer_before_the_end_of_the_message_counts() -> None:
    """A receiver that says no at once, and closes, is not taken for one that is away."""

    def refused(connection: socket.socket) -> None:
        connection.recv(1_000)
        connection.sendall(b"HTTP/1.1 410 Gone\r\n\r\n")

    with raw(refused) as receiver:
        outcome = send(courier(), receiver.url(), MESSAGE._replace(body=b"x" * 30_000_000))
    assert (outcome.result, outcome.status) == ("rejected", 410)


def test_a_handshake_that_takes_too_long_is_cut() -> None:
    """A receiver that accepts a connection and says nothing."""
    is_over = threading.Event()
    with raw(lambda _: wait_for(is_over)) as receiver:
        outcome = send(courier(attempt_s=SHORT_S), receiver.url(host=NAME, scheme="https"))
        is_over.set()
    assert outcome == AttemptOutcome("unreachable", cause="time")


def test_a_look_up_that_takes_too_long_is_left_behind() -> None:
    """The system's resolver may take half a minute for each name server."""
    is_over, answered = threading.Event(), threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        is_over.wait(60)
        answered.set()
        return ["127.0.0.1"]

    slow = Courier(LOCAL, resolve=resolve, attempt_s=SHORT_S)
    assert send(slow, "https://hooks.example/") == AttemptOutcome("unreachable", cause="time")
    slow.check("https://hooks.example/")
    assert not answered.is_set()
    is_over.set()
    assert answered.wait(60)


def test_a_receiver_that_is_away_is_unreachable() -> None:
    """As is a name without an address; neither keeps a webhook from being created."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    outcome = send(courier(), f"http://127.0.0.1:{port}/")
    assert (outcome.result, outcome.cause, outcome.detail) == ("unreachable", "connection", "Connection refused")

    def nameless(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    lost = Courier(resolve=nameless)
    outcome = send(lost, "https://no.example/")
    assert (outcome.result, outcome.explanation) == ("unreachable", "name Name or service not known")
    lost.check("https://no.example/")
    assert send(Courier(resolve=lambda host, port: []), "https://no.example/").result == "unreachable"


def test_two_tests_are_not_sent_at_once(receiver: Receiver) -> None:
    """Each keeps a thread of the console busy for as long as it takes."""
    began, is_over = threading.Event(), threading.Event()

    def react(received: Received) -> Reaction:
        began.set()
        is_over.wait(60)
        return Reaction()

    receiver.react = react
    shared, outcomes = courier(), []
    first = threading.Thread(target=lambda: outcomes.append(shared.try_out(receiver.url(), MESSAGE, time.time())))
    first.start()
    assert began.wait(60)
    assert shared.try_out(receiver.url(), MESSAGE, time.time()) is None
    is_over.set()
    first.join(60)
    assert outcomes == [AttemptOutcome("accepted", 204)]
    assert shared.try_out(receiver.url(), MESSAGE, time.time()) == AttemptOutcome("accepted", 204)


def test_an_attempt_takes_ten_seconds_at_most() -> None:
    """Unless a test says otherwise."""
    assert courier_module.ATTEMPT_S == 10.0
    assert Courier()._attempt_s == 10.0
