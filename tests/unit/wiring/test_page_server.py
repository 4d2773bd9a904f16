"""The pages as a configuration wants them."""

import shutil
import socket
import ssl
import subprocess
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from prometheus_client import CollectorRegistry

from consumer.config.loading import load_config
from consumer.model.hooks import Hooks
from consumer.telemetry.metrics import Metrics
from consumer.tls import served_certificate
from consumer.tls.validity import validities
from consumer.wiring.page_server import served

TIMEOUT_S = 60


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate that signs itself, and its key."""
    folder.mkdir()
    paths = folder / "tls.crt", folder / "tls.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    options = ["-subj", "/CN=localhost", "-days", "3", "-out", str(paths[0]), "-keyout", str(paths[1])]
    subprocess.run([*command, *options], check=True, capture_output=True)
    return paths


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    """The value of a metric."""
    found = registry.get_sample_value(name, labels)
    assert found is not None
    return found


def test_the_certificate_is_in_the_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it expires, and that a new one cannot be used; the pages are served all the while."""
    monkeypatch.setattr(served_certificate, "CHECK_S", 0.0)
    crt, key = certificate(tmp_path / "served")
    other, other_key = certificate(tmp_path / "other")
    pages = {"listen": "127.0.0.1:0", "tls_certificate": str(crt), "tls_key": str(key)}
    metrics = Metrics()
    registry, hooks = metrics.registry, Hooks(metrics)

    def expiry() -> float:
        return value(registry, "dupwatch_certificate_expiry_timestamp_seconds")

    def failures() -> float:
        return value(registry, "dupwatch_errors_total", type="certificate")

    with ExitStack() as resources:
        assert expiry() == 0
        url = served(load_config(None, {"http": pages}), resources, {}, hooks.report)
        assert url is not None
        assert expiry() == validities(crt.read_bytes())[0].ends.timestamp()
        before = shown(url)
        assert before == ssl.PEM_cert_to_DER_cert(crt.read_text())
        shutil.copyfile(other, crt)
        assert shown(url) == before
        assert failures() >= 1
        shutil.copyfile(other_key, key)
        assert shown(url) == ssl.PEM_cert_to_DER_cert(other.read_text())
        assert expiry() == validities(other.read_bytes())[0].ends.timestamp()


def shown(url: str) -> bytes:
    """The certificate that a server shows."""
    place = urlsplit(url)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection((place.hostname, place.port), timeout=TIMEOUT_S) as connection,
        context.wrap_socket(connection) as secured,
    ):
        return secured.getpeercert(binary_form=True) or b""
