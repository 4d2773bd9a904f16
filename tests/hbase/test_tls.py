"""TLS to a gateway: its certificate and its name are checked, and a client's certificate is shown."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from storage.errors import StoreRefused, StoreUnavailable
from storage.hbase import HbaseOptions, TlsOptions, parse_place
from storage.hbase.store import HbaseStore
from storage.records import StoredVersion
from tests.builders import make_version

pytestmark = pytest.mark.servers


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate that signs itself for this name, and its key."""
    paths = folder / f"{name}.pem", folder / f"{name}.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    options = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-days", "2"]
    subprocess.run([*command, *options, "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True)
    return paths


@pytest.fixture
def tls_port(hbase_address: str, tmp_path: Path) -> Iterator[int]:
    """A port with TLS before the gateway, for clients that show the certificate named client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(tmp_path, "localhost"))
    context.load_verify_locations(certificate(tmp_path, "client")[0])
    context.verify_mode = ssl.CERT_REQUIRED
    host, port = hbase_address.split(":")
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while some := source.recv(1 << 16):
                target.sendall(some)
        for side in (source, target):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def serve(plain: socket.socket) -> None:
        with (
            suppress(OSError),
            context.wrap_socket(plain, server_side=True) as client,
            socket.create_connection((host, int(port))) as gateway,
        ):
            back = threading.Thread(target=pump, args=(gateway, client), daemon=True)
            back.start()
            pump(client, gateway)
            back.join()

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def test_a_store_is_used_over_tls(tls_port: int, hbase_namespace: str, tmp_path: Path) -> None:
    """With the authority and the client's certificate that were named."""
    tls = TlsOptions(*(str(tmp_path / name) for name in ("localhost.pem", "client.pem", "client.key")))
    store = HbaseStore.open(parse_place(f"hbase://localhost:{tls_port}/{hbase_namespace}"), HbaseOptions(tls=tls))
    version = make_version()
    assert store.create([version]) == [StoredVersion(version.record, None, None)]
    assert store.bodies([version.record.reference]) == [version.body]
    store.close()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_gateway_that_is_not_who_it_says_is_not_talked_to(
    tls_port: int, hbase_namespace: str, tmp_path: Path, host: str
) -> None:
    """Neither with a certificate of an unknown authority nor for another name."""
    ca = tmp_path / ("client.pem" if host == "localhost" else "localhost.pem")
    options = HbaseOptions(tls=TlsOptions(str(ca)), deadline_s=4)
    with pytest.raises(StoreUnavailable, match=r"CERTIFICATE_VERIFY_FAILED|certificate verify failed"):
        HbaseStore.open(parse_place(f"hbase://{host}:{tls_port}/{hbase_namespace}"), options)


def test_a_file_that_is_no_certificate_is_refused(tmp_path: Path) -> None:
    """At once, with a sentence."""
    (tmp_path / "ca.pem").write_text("no certificate")
    for name in ("ca.pem", "missing.pem"):
        with pytest.raises(StoreRefused, match="TLS to hbase://gateway:9090/feed cannot be set up"):
            HbaseStore.open(parse_place("hbase://gateway/feed"), HbaseOptions(tls=TlsOptions(str(tmp_path / name))))
