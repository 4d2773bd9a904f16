"""Findings on the HTTP service of a configuration."""

import resource
import socket
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import dupwatch
from consumer.config.loading import load_config
from consumer.doctor.examination import checks_of
from consumer.doctor.finding import Finding, examine
from consumer.doctor.machine import EXPIRY_WARNING, check_tls
from consumer.doctor.service import (
    check_audit,
    check_service_address,
    check_service_descriptors,
    check_tokens,
    configures_service,
    has_no_run,
    names_not_in,
    service_checks,
    token_findings,
)
from consumer.model.errors import SinkError
from consumer.web.token import Role, Token
from consumer.web.token_file import NewToken, add_token, read_tokens, revoke_token
from deploy.local.ports import free_ports
from tests.unit.doctor.test_machine import certificate
from tests.unit.service.serving import judging_of, served, wait_until_ready

NOW = datetime(2026, 11, 24, tzinfo=UTC)


def config(**service: Any) -> Any:  # noqa: ANN401  # a configuration
    """Return a configuration with this section."""
    return load_config(None, {"service": service} if service else {})


def statuses(findings: Iterable[Finding]) -> list[str]:
    """Return the status of each finding."""
    return [finding.status for finding in findings]


def file_of(folder: Path, *tokens: tuple[str, int]) -> Path:
    """Write a token file with tokens that are valid for so many days."""
    path = folder / "tokens.json"
    for name, days in tokens:
        wanted = NewToken(name, "An Na", [Role.READER], timedelta(days=days))
        add_token(path, wanted, datetime.now(UTC).replace(microsecond=0), lambda _: None)
    return path


def token(name: str, expires_at: datetime, revoked_at: datetime | None = None) -> Token:
    """A token that ends then."""
    return Token(
        name=name, owner="An Na", roles=(Role.READER,), sha256=f"{hash(name) & ((1 << 63) - 1):064x}",
        created_at=expires_at - timedelta(days=90), expires_at=expires_at, revoked_at=revoked_at,
    )  # fmt: skip


def test_a_configuration_without_a_service_gets_no_checks_of_it() -> None:
    """One with it does, and it may be of a service alone, whose verdicts go to topics though no topic is read."""
    nothing, alone = config(), config(threads=3)
    both = load_config(None, {"service": {"threads": 3}, "source": {"url": "kafka://h:1/a"}})
    assert [configures_service(nothing), configures_service(alone), configures_service(both)] == [False, True, True]
    assert [has_no_run(nothing), has_no_run(alone), has_no_run(both)] == [False, True, False]
    assert list(service_checks(nothing)) == []
    assert [check.name for check in service_checks(both)] == [
        "open files of the service",
        "address of the service",
        "tokens",
    ]
    topics = load_config(None, {"service": {"audit": "audit.jsonl"}, "sink": {"url": "kafka://h:1/p"}})
    names = ["open files of the service", "address of the service", "tokens", "audit log", "topics of verdicts"]
    assert [check.name for check in service_checks(topics)] == names
    (configuration, *_) = examine(checks_of(topics))
    assert set(statuses(configuration.findings)) == {"ok"}


def test_the_sink_of_a_service_is_asked_and_cannot_be_exactly_once() -> None:
    """The brokers are those of the sink; the service refuses exactly once."""
    (port,) = free_ports(1)
    sections = {"service": {"threads": 3}, "sink": {"url": f"kafka://127.0.0.1:{port}/p"}}
    chosen = load_config(None, sections | {"kafka": {"delivery": "exactly-once"}})
    found = {result.name: result.findings for result in examine(list(service_checks(chosen)))}["topics of verdicts"]
    assert statuses(found) == ["wrong", "wrong"]
    assert "at least once" in found[0].found
    assert "do not answer" in found[1].found
    assert found[1].run_error is SinkError
    assert "sink.url" in (found[1].remedy or "")


def test_where_the_service_listens() -> None:
    """Without tokens only on loopback; with them in the clear is a warning, as are names that nobody gave."""
    (port,) = free_ports(1)
    everywhere = f"0.0.0.0:{port}"
    assert statuses(check_service_address(config(listen=f"127.0.0.1:{port}").service)) == ["ok"]
    found = list(check_service_address(config(listen=everywhere).service))
    assert statuses(found) == ["wrong", "warning", "ok"]
    assert "service.tokens is not set" in found[0].found
    found = list(check_service_address(config(listen=everywhere, tokens="t").service))
    assert statuses(found) == ["warning", "warning", "ok"]
    assert "without TLS" in found[0].found
    assert "service.names is empty" in found[1].found
    assert statuses(check_service_address(config(listen=everywhere, tokens="t", names=["a"]).service)) == [
        "warning",
        "ok",
    ]
    assert statuses(check_service_address(config(listen="192.0.2.1:1", tokens="t", names=["a"]).service)) == [
        "warning",
        "wrong",
    ]


@pytest.mark.parametrize("name", ["https://a", "a:8750", "a/b", "*.example.org", "bücher.example"])
def test_a_name_that_no_request_has(name: str) -> None:
    """The header has a host name as it goes over the wire, and the service compares it as it is."""
    found = list(check_service_address(config(listen="127.0.0.1:0", names=["good.example", name]).service))
    assert statuses(found) == ["ok", "wrong"]
    assert name in found[1].found
    assert "good.example" not in found[1].found


def test_an_address_that_a_service_has(window: dupwatch.Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told whether the service is ready; whatever else is there is wrong."""
    with served(judging_of(window)) as client:
        wait_until_ready(client)
        chosen = config(listen=f"{client.address[0]}:{client.address[1]}").service
        (found,) = check_service_address(chosen)
        assert (found.status, "is ready" in found.found) == ("ok", True)
        monkeypatch.setattr("consumer.service.context.ServiceContext.unready_reasons", lambda _: ["store: it is down"])
        (found,) = check_service_address(chosen)
        assert (found.status, "store: it is down" in found.found) == ("warning", True)
    monkeypatch.setattr("consumer.doctor.machine.PAGE_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        chosen = config(listen=f"127.0.0.1:{taken.getsockname()[1]}").service
        (found,) = check_service_address(chosen)
        assert (found.status, "not by a service" in found.found) == ("wrong", True)


@pytest.fixture
def window() -> Iterable[dupwatch.Window]:
    """An open window on an empty store."""
    with dupwatch.open("memory:") as opened:
        yield opened


def test_tokens_that_are_valid_end_soon_or_are_none(tmp_path: Path) -> None:
    """A warning each; who has none to give lets in nobody."""
    assert statuses(check_tokens(config(threads=2).service)) == ["ok"]
    path = file_of(tmp_path, ("crawler", 90))
    chosen = config(tokens=str(path)).service
    assert statuses(check_tokens(chosen)) == ["ok"]
    file_of(tmp_path, ("desk", EXPIRY_WARNING.days - 1))
    (found,) = check_tokens(chosen)
    assert (found.status, "desk" in found.found, "crawler" in found.found) == ("warning", True, False)
    for name in ("crawler", "desk"):
        revoke_token(path, name, datetime.now(UTC))
    (found,) = check_tokens(chosen)
    assert (found.status, "lets nobody in" in found.found) == ("warning", True)
    assert len(read_tokens(path)) == 2


def test_tokens_that_have_expired() -> None:
    """They are named until they are revoked; at most five of them."""
    ended = [token(f"t{number}", NOW - timedelta(days=1)) for number in range(7)]
    good = token("good", NOW + timedelta(days=60))
    found = list(token_findings("f", [*ended, good], NOW))
    assert statuses(found) == ["warning", "ok"]
    assert found[0].found == "7 tokens have expired: t0, t1, t2, t3, t4 and 2 more."
    revoked = [token(f"t{number}", NOW - timedelta(days=1), NOW) for number in range(7)]
    assert statuses(token_findings("f", [*revoked, good], NOW)) == ["ok"]
    assert statuses(token_findings("f", ended, NOW)) == ["warning", "warning"]
    assert statuses(token_findings("f", [], NOW)) == ["warning"]


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [(None, 0o600, "cannot be read"), ("{}", 0o600, "invalid"), ("{}", 0o644, "other users"), ("{}", 0o620, "change")],
)
def test_a_token_file_that_cannot_be_used(tmp_path: Path, content: str | None, mode: int, why: str) -> None:
    """The service would not start with it."""
    path = tmp_path / "tokens.json"
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    (found,) = check_tokens(config(tokens=str(path)).service)
    assert (found.status, why in found.found) == ("wrong", True)
    assert found.run_error is not None
    assert found.run_error.exit_code == 2


def test_the_certificate_of_the_service(tmp_path: Path) -> None:
    """It is checked as others are: its dates, its key."""
    good, key = certificate(tmp_path, "good", "-days", "400")
    _, other = certificate(tmp_path, "other", "-days", "400")
    soon, soon_key = certificate(tmp_path, "soon", "-days", str(EXPIRY_WARNING.days - 1))
    assert statuses(check_tls(config(tls_certificate=good, tls_key=key))) == ["ok", "ok"]
    assert statuses(check_tls(config(tls_certificate=good, tls_key=other))) == ["ok", "wrong"]
    assert statuses(check_tls(config(tls_certificate=soon, tls_key=soon_key))) == ["warning", "ok"]


def test_names_that_the_certificate_is_not_for(tmp_path: Path) -> None:
    """As a client finds out: wildcards count, another name does not; expiry is another finding."""
    names = ("-addext", "subjectAltName=DNS:news.example,DNS:*.desk.example", "-days", "400")
    path, key = certificate(tmp_path, "named", *names)
    wanted = ["news.example", "a.desk.example", "other.example", "desk.example"]
    assert names_not_in(path, key, wanted) == ["other.example", "desk.example"]
    settings = {"listen": "127.0.0.1:0", "tls_certificate": path, "tls_key": key}
    assert statuses(check_service_address(config(names=wanted[:2], **settings).service)) == ["ok"]
    found = list(check_service_address(config(names=wanted, **settings).service))
    assert statuses(found) == ["ok", "warning"]
    assert "other.example, desk.example" in found[1].found
    # What is wrong with the files is told by their own check.
    assert statuses(check_service_address(config(names=wanted, **(settings | {"tls_key": "/none"})).service)) == ["ok"]


def test_an_expired_certificate_is_not_one_of_another_name(tmp_path: Path) -> None:
    """Only names are in question there."""
    _, key = certificate(tmp_path, "old")
    request, path = str(tmp_path / "old.csr"), str(tmp_path / "old.pem")
    named = ["-subj", "/CN=old", "-addext", "subjectAltName=DNS:a.example"]
    subprocess.run(["openssl", "req", "-new", "-key", key, *named, "-out", request], check=True, capture_output=True)
    signing = ["-signkey", key, "-days", "-1", "-copy_extensions", "copy", "-out", path]
    subprocess.run(["openssl", "x509", "-req", "-in", request, *signing], check=True, capture_output=True)
    assert statuses(check_tls(config(tls_certificate=path, tls_key=key))) == ["wrong", "ok"]
    assert names_not_in(path, key, ["a.example"]) == []


def test_an_audit_log_that_can_be_written_or_not(tmp_path: Path) -> None:
    """Its folder has to be there, and it has to be a file."""
    assert statuses(check_audit(tmp_path / "audit.jsonl")) == ["ok"]
    assert statuses(check_audit(tmp_path / "none" / "audit.jsonl")) == ["wrong"]
    (found,) = check_audit(tmp_path)
    assert (found.status, "audit log" in found.found, "service.audit" in (found.remedy or "")) == ("wrong", True, True)


def test_how_many_connections_may_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer open files than connections is a warning: the service starts, and refuses the ones beyond."""
    chosen = config(connections_max=100)
    for limit, status in ((100, "warning"), (5_000, "ok"), (resource.RLIM_INFINITY, "ok")):
        monkeypatch.setattr("resource.getrlimit", lambda _, limit=limit: (limit, limit))
        assert statuses(check_service_descriptors(chosen)) == [status]
