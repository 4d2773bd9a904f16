"""Passwords, TLS and host names, tested against a running server."""

import json
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from base64 import b64encode
from email.message import Message
from http import HTTPStatus
from pathlib import Path

import pytest

from consumer.model.errors import ConfigError
from consumer.telemetry.health import Health
from consumer.telemetry.health_pages import health_pages
from consumer.telemetry.metrics import Metrics
from consumer.web import page_server
from consumer.web.access import HOST, Access, Account, ListenAddress
from consumer.web.certificates import CertificateFiles, ServedCertificate
from consumer.web.page import UNKNOWN_NAME, PageResponse, ServedPage
from consumer.web.page_server import PageServer
from tests.cli.command import TIMEOUT_S, wait_for

LOCAL = ListenAddress(HOST, 0)
ACCOUNT = Access(Account("ops", "s3cret"))
SECRET_PAGES = {"/": ServedPage(lambda _: PageResponse(HTTPStatus.OK, "text/plain", b"articles"), has_articles=True)}
NAMED_PAGES = SECRET_PAGES | {"/other": ServedPage(lambda _: PageResponse(HTTPStatus.OK, "text/plain", b"other"))}


@pytest.fixture
def _reached_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server takes its address for a public one; tests listen on loopback only."""
    monkeypatch.setattr(page_server, "is_loopback", lambda address: address is None)


def get(
    server: PageServer, path: str, context: ssl.SSLContext | None = None, **headers: str
) -> tuple[int, str, Message]:
    """Ask for a page: status, text and headers."""
    request = urllib.request.Request(f"{server.url}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers


def basic(credentials: str) -> str:
    """The header that a client sends."""
    return f"Basic {b64encode(credentials.encode()).decode()}"


def certificate(folder: Path) -> tuple[str, str]:
    """A self-signed certificate for this machine, and its key."""
    paths = str(folder / "certificate.pem"), str(folder / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    options = ["-subj", "/CN=localhost", "-addext", f"subjectAltName=IP:{HOST}", "-days", "2"]
    subprocess.run([*command, *options, "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True)
    return paths


def shown(paths: tuple[str, str | None]) -> ssl.SSLContext:
    """The context of a server that shows this certificate."""
    return ServedCertificate(CertificateFiles("http", *paths), lambda _: None).context


def test_a_password_is_asked_for_and_probes_are_let_in() -> None:
    """Without credentials only the statuses of the two probes are shown, without details."""
    failures: list[int] = []
    health = Health(60)
    pages = health_pages(health, Metrics()) | SECRET_PAGES
    with PageServer(LOCAL, pages, lambda: failures.append(1), ACCOUNT) as server:
        for path in ("/", "/metrics", "/nothing", "/flags/x"):
            status, text, headers = get(server, path)
            assert (status, "articles" in text) == (401, False), path
            assert headers["WWW-Authenticate"].startswith('Basic realm="dupwatch"')
        assert get(server, "/healthz")[:2] == (200, "ok\n")
        assert (get(server, "/readyz")[0], json.loads(get(server, "/readyz")[1])) == (503, {"ready": False})
        assert failures == []
        allowed = basic("ops:s3cret")
        assert get(server, "/", Authorization=allowed)[1] == "articles"
        assert json.loads(get(server, "/readyz", Authorization=allowed)[1])["reasons"] != []
        assert get(server, "/metrics", Authorization=allowed)[0] == 200
        assert get(server, "/nothing", Authorization=allowed)[0] == 404


def test_a_stack_is_shown_to_who_has_the_password_only() -> None:
    """Without the password a probe learns that the loop is stuck, but not where."""
    now_s = [1000.0]
    health = Health(60, clock=lambda: now_s[0])
    now_s[0] += 61
    pages = health_pages(health, Metrics())
    with PageServer(LOCAL, pages, lambda: None, ACCOUNT) as server:
        assert get(server, "/healthz")[:2] == (503, "stuck\n")
        assert "test_a_stack_is_shown" in get(server, "/healthz", Authorization=basic("ops:s3cret"))[1]


def test_wrong_credentials_are_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Guessing shows in log and metrics; the guessed password is not in the log."""
    failures: list[int] = []
    with PageServer(LOCAL, SECRET_PAGES, lambda: failures.append(1), ACCOUNT) as server:
        assert get(server, "/", Authorization=basic("ops:guess"))[0] == 401
    assert failures == [1]
    assert "wrong credentials from 127.0.0.1" in caplog.text
    assert "guess" not in caplog.text


def test_articles_are_not_shown_under_a_strange_name() -> None:
    """A page of another site whose host name points here cannot read articles, wherever the consumer listens."""
    with PageServer(LOCAL, NAMED_PAGES, lambda: None, Access(names=["known.example"])) as server:
        assert get(server, "/", Host="evil.example")[:2] == (421, UNKNOWN_NAME.body.decode())
        assert get(server, "/", Host="known.example:80")[1] == "articles"
        assert get(server, "/", Host="localhost:1")[1] == "articles"


def test_on_loopback_no_page_answers_a_strange_name() -> None:
    """On loopback only addresses, localhost, configured names and requests without a name are answered."""
    with PageServer(LOCAL, NAMED_PAGES, lambda: None, Access(names=["known.example"])) as server:
        for host in ("evil.example", "evil.example:9464", "127.0.0.1.evil.example"):
            assert get(server, "/other", Host=host)[0] == 421
        for host in ("127.0.0.1:9464", "[::1]:9464", "localhost", "known.example", ""):
            assert get(server, "/other", Host=host)[1] == "other", host
        with socket.create_connection(server.address) as probe:
            probe.sendall(b"GET /other HTTP/1.0\r\n\r\n")
            assert probe.makefile("rb").readline().split()[1] == b"200"
    with PageServer(LOCAL, NAMED_PAGES, lambda: None, ACCOUNT) as server:
        assert get(server, "/other", Host="evil.example", Authorization=basic("ops:s3cret"))[1] == "other"


@pytest.mark.usefixtures("_reached_by_others")
def test_elsewhere_scrapers_and_probes_use_names_of_services() -> None:
    """Names of Kubernetes services, compose files and machines work without settings; articles stay hidden."""
    with PageServer(LOCAL, NAMED_PAGES, lambda: None) as server:
        assert get(server, "/", Host="dupwatch.news")[0] == 421
        for host in ("dupwatch", "dupwatch.news:9464", "dupwatch-0.dupwatch.news.svc.cluster.local:9464", "10.2.3.4"):
            assert get(server, "/other", Host=host)[1] == "other"


def test_every_answer_has_a_policy() -> None:
    """Pages load and run nothing, and are not cached, framed or sniffed."""
    with PageServer(LOCAL, SECRET_PAGES, lambda: None) as server:
        for path in ("/", "/nothing"):
            headers = get(server, path)[2]
            assert headers["Content-Security-Policy"].startswith("default-src 'none'")
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Cache-Control"] == "no-store"


def test_tls(tmp_path: Path) -> None:
    """Pages are served over TLS; a client that does not speak TLS is counted and gets nothing."""
    paths = certificate(tmp_path)
    failures: list[int] = []
    with PageServer(LOCAL, SECRET_PAGES, lambda: failures.append(1), tls=shown(paths)) as server:
        assert server.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=paths[0])
        assert get(server, "/", trusting)[1] == "articles"
        assert failures == []
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            get(server, "/", ssl.create_default_context())
        with socket.create_connection(server.address, timeout=TIMEOUT_S) as plain:
            plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert b"articles" not in b"".join(iter(lambda: plain.recv(1000), b""))
        wait_for(lambda: len(failures) == 2)
        assert get(server, "/", trusting)[1] == "articles"


def test_a_client_that_says_nothing_holds_up_no_handshake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other clients are served while a connection has not begun its handshake, for which it would have an hour."""
    monkeypatch.setattr(page_server, "REQUEST_S", 3_600.0)
    paths = certificate(tmp_path)
    with (
        PageServer(LOCAL, SECRET_PAGES, lambda: None, tls=shown(paths)) as server,
        socket.create_connection(server.address, timeout=TIMEOUT_S),
    ):
        assert get(server, "/", ssl.create_default_context(cafile=paths[0]))[0] == 200


def test_a_client_that_sends_a_letter_now_and_then_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that keeps sending bytes ends after a while."""
    monkeypatch.setattr(page_server, "REQUEST_S", 0.3)
    with (
        PageServer(LOCAL, SECRET_PAGES, lambda: None) as server,
        socket.create_connection(server.address, timeout=TIMEOUT_S) as slow,
    ):
        until_s = time.monotonic() + TIMEOUT_S
        slow.settimeout(0.05)
        while time.monotonic() < until_s:
            try:
                slow.sendall(b"G")
                if slow.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except OSError:
                return
    raise AssertionError("it went on")


def test_certificates_that_cannot_be_used(tmp_path: Path) -> None:
    """The error names a missing file, a file without a certificate, a wrong key, or a key with a passphrase."""
    path, key = certificate(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    _, other_key = certificate(other)
    locked = str(tmp_path / "locked.pem")
    command = ["openssl", "ec", "-in", key, "-out", locked, "-aes256", "-passout", "pass:1234"]
    subprocess.run(command, check=True, capture_output=True)
    unusable = "http.tls_certificate: .* cannot be used"
    for pair, why in (
        ((str(tmp_path / "none.pem"), None), unusable),
        ((key, key), unusable),
        ((path, other_key), unusable),
        ((path, locked), "http.tls_key: the key has a passphrase"),
    ):
        with pytest.raises(ConfigError, match=why):
            shown(pair)


def test_a_connection_has_one_answer() -> None:
    """Whatever is sent behind the first request costs nothing: the connection is closed after it."""
    with PageServer(LOCAL, SECRET_PAGES, lambda: None) as server, socket.create_connection(server.address) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n" * 100)
        answer = b"".join(iter(lambda: client.recv(65_536), b""))
    assert answer.count(b"HTTP/1.0 200 OK") == 1
