"""The pages as a configuration wants them."""

import shutil
import socket
import ssl
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry

from consumer.config.loading import load_config
from consumer.model.hooks import Hooks
from consumer.telemetry.metrics import Metrics
from consumer.web.certificates import validities
from consumer.wiring.page_server import serve_pages
from tests.cli.command import wait_for
from tests.unit.web.pair import Pair

TIMEOUT_S = 60


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    """The value of a metric."""
    found = registry.get_sample_value(name, labels)
    assert found is not None
    return found


def test_the_certificate_is_in_the_metrics(tmp_path: Path) -> None:
    """When it expires, and that a new one cannot be used; the pages are served all the while."""
    pair, other = Pair(tmp_path / "served"), Pair(tmp_path / "other", days=30)
    pages = {"listen": "127.0.0.1:0", "tls_certificate": str(pair.certificate), "tls_key": str(pair.key)}
    metrics = Metrics()
    registry, hooks = metrics.registry, Hooks(metrics)

    def expiry() -> float:
        return value(registry, "dupwatch_certificate_expiry_timestamp_seconds")

    def failures() -> float:
        return value(registry, "dupwatch_errors_total", type="certificate")

    with ExitStack() as resources:
        assert expiry() == 0
        url = serve_pages(load_config(None, {"http": pages}), resources, {}, hooks.report)
        assert url is not None
        pem = pair.certificate.read_bytes()
        assert expiry() == validities(pem)[0].ends.timestamp()
        assert validities(pem.replace(b" CERTIFICATE", b" TRUSTED CERTIFICATE")) == validities(pem)
        before = shown(url)
        assert before == pair.der
        shutil.copyfile(other.certificate, pair.certificate)
        wait_for(lambda: failures() >= 1, TIMEOUT_S)
        assert shown(url) == before
        shutil.copyfile(other.key, pair.key)
        wait_for(lambda: shown(url) == other.der, TIMEOUT_S)
        assert expiry() == validities(other.certificate.read_bytes())[0].ends.timestamp()


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
