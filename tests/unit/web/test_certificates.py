"""The certificate that a server shows follows its files, and is never one without its key."""

import asyncio
import logging
import shutil
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path

import pytest

from consumer.model.errors import ConfigError
from consumer.web.access import HOST, ListenAddress
from consumer.web.certificates import CertificateFiles, CertificateLoaded, CertificateReloadFailed, ServedCertificate
from consumer.web.page import PLAIN, PageResponse, ServedPage
from consumer.web.page_server import PageServer
from tests.unit.web.pair import Pair

DEADLINE_S = 60


class Served:
    """A certificate that is served, whose files the test has looked at."""

    def __init__(self, pair: Pair) -> None:
        self.reported: list[object] = []
        files = CertificateFiles("http", str(pair.certificate), str(pair.key))
        self.certificate = ServedCertificate(files, self.reported.append)

    def shown(self, name: str | None = None) -> bytes:
        """What a client gets after the next look, and names this server."""
        self.certificate.look()
        server, client = socket.socketpair()
        failures: list[BaseException] = []

        def answer() -> None:
            try:
                server.settimeout(DEADLINE_S)
                with self.certificate.context.wrap_socket(server, server_side=True) as secured:
                    secured.recv(1)
            except OSError as error:
                failures.append(error)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            return certificate_of(client, name)
        finally:
            thread.join(DEADLINE_S)
            server.close()
            assert failures == []


def certificate_of(connection: socket.socket, name: str | None = None) -> bytes:
    """Shake hands as a client that trusts anybody, and return the certificate that is shown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection.settimeout(DEADLINE_S)
    with context.wrap_socket(connection, server_hostname=name) as secured:
        secured.sendall(b"x")
        return secured.getpeercert(binary_form=True) or b""


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """The files that are served."""
    return Pair(tmp_path / "served")


@pytest.fixture
def new(tmp_path: Path) -> Pair:
    """What they become."""
    return Pair(tmp_path / "new", days=30)


@pytest.mark.parametrize("name", [None, "localhost"], ids=["address", "name"])
def test_a_new_certificate_is_shown(pair: Pair, new: Pair, name: str | None) -> None:
    """To clients that name the server, and to those that connect to its address."""
    served = Served(pair)
    assert served.shown(name) == pair.der
    pair.take(new)
    assert served.shown(name) == new.der
    assert served.shown(name) == new.der
    kinds = [type(occurrence) for occurrence in served.reported]
    assert kinds == [CertificateLoaded, CertificateLoaded]


def test_until_when_it_is_valid(pair: Pair, new: Pair) -> None:
    """At the start, and after a change."""
    served = Served(pair)
    pair.take(new)
    served.shown()
    ends = [loaded.ends for loaded in served.reported if isinstance(loaded, CertificateLoaded)]
    now = datetime.now(UTC)
    for found, days in zip(ends, (2, 30), strict=True):
        assert abs(found - now - timedelta(days=days)) < timedelta(minutes=10)


def test_handshakes_do_not_look_at_the_files(pair: Pair, new: Pair) -> None:
    """They would wait where the file system hangs; a new certificate is shown from the next look on."""
    served, old = Served(pair), pair.der
    pair.take(new)
    with answering(served.certificate) as address:
        assert fetched(address) == old
        served.certificate.look()
        assert fetched(address) == new.der


def test_half_of_a_pair(pair: Pair, new: Pair, caplog: pytest.LogCaptureFixture) -> None:
    """Until the key is there, the certificate before is shown, and the log says why, once."""
    served, before = Served(pair), pair.der
    with caplog.at_level(logging.INFO, "dupwatch"):
        shutil.copyfile(new.certificate, pair.certificate)
        assert [served.shown() for _ in range(3)] == [before] * 3
        shutil.copyfile(new.key, pair.key)
        assert served.shown() == new.der
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "http.tls_certificate: " in caplog.text
    kept = [occurrence for occurrence in served.reported if isinstance(occurrence, CertificateReloadFailed)]
    assert len(kept) == 3


@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "no certificate"])
def test_files_that_cannot_be_used(pair: Pair, new: Pair, damage: str) -> None:
    """The certificate before is shown until they can, even if they come back as they were."""
    served, before = Served(pair), pair.der
    content = pair.certificate.read_bytes()
    if damage == "gone":
        pair.certificate.unlink()
    else:
        pair.certificate.write_bytes({"empty": b"", "cut": content[:200]}.get(damage, b"x"))
    assert served.shown() == before
    pair.certificate.write_bytes(content)
    assert served.shown() == before
    kinds = [type(occurrence) for occurrence in served.reported]
    assert kinds == [CertificateLoaded, CertificateReloadFailed, CertificateLoaded]
    pair.take(new)
    assert served.shown() == new.der


def test_a_folder_that_was_away(pair: Pair, tmp_path: Path) -> None:
    """A volume that is mounted again has the same files; that they can be used is reported."""
    served, old = Served(pair), pair.der
    (tmp_path / "served").rename(tmp_path / "away")
    assert served.shown() == old
    (tmp_path / "away").rename(tmp_path / "served")
    assert served.shown() == old
    kinds = [type(occurrence) for occurrence in served.reported]
    assert kinds == [CertificateLoaded, CertificateReloadFailed, CertificateLoaded]


def test_a_secret_of_kubernetes(tmp_path: Path) -> None:
    """Its files are links through a link, which is what changes."""
    old, new = Pair(tmp_path / "v1"), Pair(tmp_path / "v2")
    (tmp_path / "data").symlink_to("v1")
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).symlink_to(f"data/{name}")
    reported: list[object] = []
    files = CertificateFiles("http", str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"))
    certificate = ServedCertificate(files, reported.append)
    with answering(certificate) as address:
        assert fetched(address) == old.der
        (tmp_path / "next").symlink_to("v2")
        (tmp_path / "next").replace(tmp_path / "data")
        certificate.look()
        assert fetched(address) == new.der


def test_what_cannot_be_used_at_the_start(pair: Pair, new: Pair) -> None:
    """A server does not start without a certificate; the message names the setting."""
    for certificate, key in ((pair.certificate, new.key), (pair.key, None), (Path("none"), None)):
        files = CertificateFiles("service", str(certificate), None if key is None else str(key))
        with pytest.raises(ConfigError, match=r"service\.tls_certificate: .* cannot be used"):
            ServedCertificate(files, lambda _: None)


def test_the_pages_show_a_new_certificate(pair: Pair, new: Pair) -> None:
    """While clients connect all the time, every one of them gets the old certificate or the new one."""
    files = CertificateFiles("http", str(pair.certificate), str(pair.key))
    old = pair.der
    shown: Counter[bytes] = Counter()
    failures: list[BaseException] = []
    stop = threading.Event()

    def connect(address: ListenAddress) -> None:
        try:
            while not stop.is_set():
                shown[fetched(address)] += 1
        except BaseException as error:  # noqa: BLE001  # shown by the test
            failures.append(error)

    certificate = ServedCertificate(files, lambda _: None)
    with answering(certificate) as address:
        threads = [threading.Thread(target=connect, args=(address,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for expected in (old, new.der):
                for _ in range(DEADLINE_S * 100):
                    if shown[expected] >= 5 or failures:
                        break
                    stop.wait(0.01)
                pair.take(new)
                certificate.look()
        finally:
            stop.set()
            for thread in threads:
                thread.join(DEADLINE_S)
    assert failures == []
    assert set(shown) == {old, new.der}
    assert min(shown.values()) >= 5


def test_a_server_of_asyncio_shows_a_new_certificate(pair: Pair, new: Pair) -> None:
    """As uvicorn is, which gets the context once."""
    served, old = Served(pair), pair.der

    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def serve() -> list[bytes]:
        server = await asyncio.start_server(greet, HOST, 0, ssl=served.certificate.context)
        async with server:
            address = ListenAddress(*server.sockets[0].getsockname()[:2])
            found = [await asyncio.to_thread(fetched, address)]
            pair.take(new)
            served.certificate.look()
            return [*found, await asyncio.to_thread(fetched, address)]

    assert asyncio.run(serve()) == [old, new.der]


@contextmanager
def answering(certificate: ServedCertificate) -> Iterator[ListenAddress]:
    """A server of pages with this certificate."""
    pages = {"/": ServedPage(lambda _: PageResponse(HTTPStatus.OK, PLAIN, b"ok"))}
    with PageServer(ListenAddress(HOST, 0), pages, lambda: None, tls=certificate.context) as server:
        yield server.address


def fetched(address: ListenAddress) -> bytes:
    """The certificate that a server shows."""
    with socket.create_connection(address, timeout=DEADLINE_S) as connection:
        return certificate_of(connection)
