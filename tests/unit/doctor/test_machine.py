"""Findings on this machine and its TLS files."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from consumer.config.loading import load_config
from consumer.doctor.finding import DoctorCheck, Finding, examine
from consumer.doctor.machine import (
    EXPIRY_WARNING,
    check_address,
    check_descriptors,
    check_tls,
    descriptor_finding,
    descriptors_needed,
)
from consumer.web.certificates import validities
from deploy.local.ports import free_ports
from tests.unit.doctor.consumer_pages import served


def config(**overrides: Any) -> Any:  # noqa: ANN401  # whatever is to be set
    """Return a configuration with these sections."""
    return load_config(None, overrides)


def statuses(findings: Iterator[Finding]) -> list[str]:
    """Return the status of each finding."""
    return [finding.status for finding in findings]


def test_how_many_files_may_be_open() -> None:
    """A limit that is too low is wrong, a low one is a warning, and no limit is ok."""
    assert descriptor_finding(50, 84).status == "wrong"
    assert descriptor_finding(256, 84).status == "warning"
    assert descriptor_finding(1024, 84).status == descriptor_finding(-1, 84).status == "ok"
    assert descriptors_needed(config(workers=8)) > descriptors_needed(config())
    assert len(list(check_descriptors(config()))) == 1


def test_an_address_that_is_free_or_not_of_this_machine() -> None:
    """The check does not keep the address in use."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    free = config(http={"listen": f"127.0.0.1:{port}"})
    assert statuses(check_address(free)) == statuses(check_address(free)) == ["ok"]
    assert statuses(check_address(config(http={"listen": ""}))) == ["ok"]


def test_a_password_that_can_be_read_on_its_way(tmp_path: Path) -> None:
    """A password without TLS is a warning, except on loopback."""
    account = {"user": "ops", "password": "correct horse"}
    (port,) = free_ports(1)
    everywhere, here = {"listen": f"0.0.0.0:{port}"}, {"listen": f"127.0.0.1:{port}"}
    findings = list(check_address(config(http=everywhere | account)))
    assert statuses(iter(findings)) == ["warning", "ok"]
    assert "without TLS" in findings[0].found
    assert statuses(check_address(config(http=here | account))) == ["ok"]
    crt, key = certificate(tmp_path, "pages")
    tls = {"tls_certificate": crt, "tls_key": key}
    assert statuses(check_address(config(http=everywhere | account | tls))) == ["ok"]


def test_an_address_that_something_else_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something that does not answer, or is not a consumer, is wrong."""
    monkeypatch.setattr("consumer.doctor.machine.PAGE_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        # It accepts, by the system's own queue, and never says anything: the check has a bound of its own.
        listen = {"listen": f"127.0.0.1:{taken.getsockname()[1]}"}
        assert statuses(check_address(config(http=listen))) == ["wrong"]

    class Other(BaseHTTPRequestHandler):
        """A server that is not a consumer."""

        def do_GET(self) -> None:
            """Answer like any server."""
            self.send_response(HTTPStatus.OK)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it so
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Other) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        assert statuses(check_address(config(http={"listen": f"127.0.0.1:{server.server_port}"}))) == ["wrong"]
        server.shutdown()
        thread.join()


def test_an_address_that_a_consumer_has() -> None:
    """The finding says whether the consumer is ready, and why not."""
    with served() as pages:
        listen = config(http={"listen": f"127.0.0.1:{pages.port}"})
        assert statuses(check_address(listen)) == ["ok"]
        pages.answers["/readyz"] = (503, b'{"ready": false, "reasons": ["store: it is down"]}')
        (found,) = check_address(listen)
        assert found.status == "warning"
        assert "store: it is down" in found.found
        # With a password there may be no more than the status.
        pages.answers["/readyz"] = (503, b"")
        assert statuses(check_address(listen)) == ["warning"]


def certificate(folder: Path, name: str, *dates: str) -> tuple[str, str]:
    """Create a self-signed certificate that is not an authority, and its key."""
    paths = str(folder / f"{name}.pem"), str(folder / f"{name}.key")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    options = ["-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:FALSE", *dates]
    subprocess.run([*command, *options, "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True)
    return paths


def tls(ca: str, certificate: str | None = None, key: str | None = None) -> Any:  # noqa: ANN401  # a configuration
    """Return the configuration of a store with these files."""
    return config(
        store={"hbase": {"tls": True, "tls_ca": ca, "tls_certificate": certificate, "tls_key": key}},
    )


def test_dates_are_those_that_openssl_tells(tmp_path: Path) -> None:
    """Also for certificates that are not authorities, before and after 2050, where the notation changes."""
    for days in ("40", "20000"):
        path, _ = certificate(tmp_path, f"days{days}", "-days", days)
        (found,) = validities(Path(path).read_bytes())
        command = ["openssl", "x509", "-in", path, "-noout", "-enddate"]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip().partition("=")[2]
        assert found.ends == datetime.fromtimestamp(ssl.cert_time_to_seconds(printed), UTC)
        assert abs(found.begins - datetime.now(UTC)) < timedelta(hours=1)


def test_certificates_that_hold_end_soon_or_have_ended(tmp_path: Path) -> None:
    """The earliest end in a file counts."""
    good, key = certificate(tmp_path, "good", "-days", "400")
    soon, _ = certificate(tmp_path, "soon", "-days", str(EXPIRY_WARNING.days - 1))
    assert statuses(check_tls(tls(good, good, key))) == ["ok", "ok", "ok"]
    assert statuses(check_tls(tls(soon))) == ["warning"]
    both = tmp_path / "both.pem"
    both.write_text(Path(good).read_text() + Path(soon).read_text())
    assert statuses(check_tls(tls(str(both)))) == ["warning"]
    assert statuses(check_tls(config())) == ["ok"]


def test_an_expired_certificate_and_one_of_the_future(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are wrong, with their dates."""
    path, _ = certificate(tmp_path, "good", "-days", "40")

    def seen(days: int) -> Finding:
        monkeypatch.setattr("consumer.doctor.machine.current_time", lambda: datetime.now(UTC) + timedelta(days=days))
        (found,) = check_tls(tls(path))
        return found

    assert (seen(41).status, seen(-1).status, seen(1).status) == ("wrong", "wrong", "ok")
    assert "expired on" in seen(41).found


def test_files_that_are_missing_empty_damaged_or_of_another_key(tmp_path: Path) -> None:
    """Each is reported, and none stops the check."""
    good, _ = certificate(tmp_path, "good", "-days", "400")
    _, other_key = certificate(tmp_path, "other", "-days", "400")
    empty = tmp_path / "empty.pem"
    empty.touch()
    damaged = tmp_path / "damaged.pem"
    lines = Path(good).read_text().splitlines()
    damaged.write_text("\n".join([lines[0], lines[1], lines[-1]]) + "\n")
    assert statuses(check_tls(tls(str(tmp_path / "nowhere.pem")))) == ["wrong"]
    assert statuses(check_tls(tls(str(empty)))) == ["wrong"]
    assert statuses(check_tls(tls(str(damaged)))) == ["wrong"]
    (result,) = examine([DoctorCheck("TLS", lambda: check_tls(tls(good, good, other_key)))])
    assert [finding.status for finding in result.findings] == ["ok", "ok", "wrong"]
    assert "does not match its key" in result.findings[2].found
