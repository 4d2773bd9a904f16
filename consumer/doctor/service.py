"""Findings on the HTTP service: its open files, address, names, tokens, audit log, and sink."""

import errno
import resource
import ssl
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final

import msgspec

from consumer.config.config import Config
from consumer.config.sections.service import ServiceSection
from consumer.doctor.brokers import Brokers
from consumer.doctor.console import configures_console
from consumer.doctor.finding import DoctorCheck, Finding, ok, sentence, warning, wrong
from consumer.doctor.kafka import cluster_findings, topic_findings
from consumer.doctor.machine import (
    EXPIRY_WARNING,
    cannot_listen,
    check_output_file,
    current_time,
    descriptors_needed,
    listening_error,
    readiness_at,
)
from consumer.kafka.client_settings import admin_settings, parse_prefix
from consumer.kafka.planned_topics import topic_plan
from consumer.model.errors import ConfigError, SinkError
from consumer.text.counts import counted
from consumer.web.access import ListenAddress, is_loopback, parse_address
from consumer.web.token import Token
from consumer.web.token_file import read_tokens
from consumer.wiring import components, kafka_parts
from consumer.wiring.feeds import is_followed

_LISTED_MAX: Final = 5
_ADD_COMMAND: Final = 'dupwatch tokens add NAME --role ROLE --owner "WHO" --tokens {path}'
_HOSTNAME_MISMATCH: Final = 62
"""X509_V_ERR_HOSTNAME_MISMATCH of OpenSSL."""


class _Readiness(msgspec.Struct, forbid_unknown_fields=True):
    """The answer of the service at /readyz."""

    ready: bool
    reasons: tuple[str, ...]


def configures_service(config: Config) -> bool:
    """Return whether the configuration sets anything for the service."""
    return bool(config.service.model_fields_set)


def has_no_run(config: Config) -> bool:
    """Return whether the configuration is for a service or a console, but not for a run: it names no source."""
    return (configures_service(config) or configures_console(config)) and "url" not in config.source.model_fields_set


def service_checks(config: Config) -> Iterator[DoctorCheck]:
    """Yield the checks of the service, if the configuration sets anything for it."""
    if not configures_service(config):
        return
    yield DoctorCheck("open files of the service", lambda: check_service_descriptors(config))
    yield DoctorCheck("address of the service", lambda: check_service_address(config.service))
    yield DoctorCheck("tokens", lambda: check_tokens(config.service))
    if config.service.audit is not None:
        audit = Path(config.service.audit)
        yield DoctorCheck("audit log", lambda: check_audit(audit))
    if has_no_run(config) and is_followed(config):
        yield DoctorCheck("topics of verdicts", lambda: _check_sink(config), silent_error=SinkError)


def check_service_descriptors(config: Config) -> Iterator[Finding]:
    """Check that the service may open its files and as many connections as it accepts."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    needed = descriptors_needed(config) + config.service.connections_max
    if limit == resource.RLIM_INFINITY or limit >= needed:
        yield ok(f"The service may open {needed} files and connections.")
        return
    yield warning(
        f"The limit is {limit} open files; with service.connections_max = {config.service.connections_max} connections "
        f"the service needs about {needed}.",
        "Raise the limit (ulimit -n, or LimitNOFILE= of the unit), or lower service.connections_max.",
    )


def check_service_address(section: ServiceSection) -> Iterator[Finding]:
    """Check that the service is protected, can listen or already runs, and has usable names."""
    address = parse_address(section.listen)
    if not is_loopback(address):
        yield from _exposure(section)
    error = listening_error(address)
    if error is None:
        yield ok(f"{section.listen} is free for the service.")
    elif error.errno == errno.EADDRINUSE:
        yield _used_address(address, section.tls_certificate)
    else:
        yield cannot_listen("service", section.listen, error)
    yield from _names(section)


def _exposure(section: ServiceSection) -> Iterator[Finding]:
    if section.tokens is None:
        yield wrong(
            ConfigError,
            f"service.listen = {section.listen} lets other machines in, but service.tokens is not set.",
            "Set service.tokens to a file that dupwatch tokens add has created, or listen on 127.0.0.1.",
        )
    elif section.tls_certificate is None:
        yield warning(
            f"The service at {section.listen} requires tokens without TLS: they are sent in the clear.",
            "Set service.tls_certificate and service.tls_key, or end TLS at a proxy on the same machine or pod.",
        )
    if not section.names:
        yield warning(
            "service.names is empty: requests to a host name get 421, and only requests to an address are answered.",
            "Add the names that clients, Prometheus and a proxy use.",
        )


def _names(section: ServiceSection) -> Iterator[Finding]:
    """Check that the names are host names that the certificate covers."""
    invalid = [name for name in section.names if not name.isascii() or set(name) & set(":/*@ ")]
    if invalid:
        yield wrong(
            ConfigError,
            f"service.names has entries that are not host names: {_name_list(invalid)}.",
            "Write host names alone, without scheme, port, path or wildcard.",
        )
    elif section.tls_certificate is not None and section.names:
        try:
            missing = names_not_in(section.tls_certificate, section.tls_key, section.names)
        except OSError:
            # The check of TLS files reports such faults. SSLError is an OSError.
            return
        if missing:
            yield warning(
                f"The certificate {section.tls_certificate} does not cover {_name_list(missing)}, so clients refuse "
                "it.",
                "Add these names to the certificate, or remove them from service.names.",
            )


def names_not_in(certificate: str, key: str | None, names: Iterable[str]) -> list[str]:
    """Return the names that a certificate does not cover, according to OpenSSL in a handshake in memory.

    Raises ``OSError`` if the certificate cannot be used.
    """
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # Without a password here, OpenSSL would prompt for it on the terminal.
    server.load_cert_chain(certificate, key, password="")
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The certificate is trusted whatever its issuer: only its names are checked.
    client.load_verify_locations(certificate)
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return [name for name in names if not _covers(name, server, client)]


def _covers(name: str, server: ssl.SSLContext, client: ssl.SSLContext) -> bool:
    """Return whether a certificate covers a name, according to a handshake. Ignores other faults of the certificate."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_end = client.wrap_bio(to_client, to_server, server_hostname=name)
    server_end = server.wrap_bio(to_server, to_client, server_side=True)
    try:
        # After these steps the client has verified the certificate.
        for end in (client_end, server_end, client_end):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    except ssl.SSLCertVerificationError as error:
        return error.verify_code != _HOSTNAME_MISMATCH
    return True


def _used_address(address: ListenAddress, certificate: str | None) -> Finding:
    """Return the finding on an address in use: by a service, with its state, or by another process."""
    place, answer = f"{address.host}:{address.port}", readiness_at(address, certificate)
    try:
        readiness = None if answer is None or answer.is_dupwatch else msgspec.json.decode(answer.body, type=_Readiness)
    except msgspec.DecodeError:
        readiness = None
    if answer is None or readiness is None:
        return wrong(
            ConfigError,
            f"{place} is in use, but not by a service with this configuration.",
            "Set service.listen to another port, or stop the process that uses this one.",
        )
    if answer.status == HTTPStatus.OK:
        return ok(f"A service is running at {place} and is ready.")
    reasons = "; ".join(readiness.reasons)
    return warning(f"A service is running at {place} but is not ready: {reasons}.", "Check its log.")


def check_tokens(section: ServiceSection) -> Iterator[Finding]:
    """Check that the token file can be used, and that its tokens do not expire soon."""
    if section.tokens is None:
        yield ok("service.tokens is not set: every program on this machine may check, store, retract and release.")
        return
    try:
        tokens = read_tokens(Path(section.tokens))
    except ConfigError as error:
        yield wrong(
            ConfigError,
            sentence(str(error)),
            "As the user that runs the service, correct the file, or name another one in service.tokens.",
        )
    else:
        yield from token_findings(section.tokens, tokens, current_time())


def token_findings(path: str, tokens: Sequence[Token], now: datetime) -> Iterator[Finding]:
    """Yield findings on valid tokens, expired tokens, and tokens that expire soon."""
    valid = sorted((token for token in tokens if token.state(now) == "valid"), key=lambda token: token.expires_at)
    if not valid:
        fault = "has no token" if not tokens else "has no valid token"
        yield warning(f"{path} {fault}: the service lets nobody in.", f"Add one: {_ADD_COMMAND.format(path=path)}")
    expired = [token.name for token in tokens if token.state(now) == "expired"]
    if expired:
        yield warning(
            f"{counted(len(expired), 'token has', 'tokens have')} expired: {_name_list(expired)}.",
            "Give their programs new tokens, and revoke the old ones: dupwatch tokens revoke NAME.",
        )
    soon = [token for token in valid if token.expires_at - now < EXPIRY_WARNING]
    if soon:
        yield warning(
            f"{counted(len(soon), 'token expires', 'tokens expire')} within {EXPIRY_WARNING.days} days, the first on "
            f"{soon[0].expires_at:%Y-%m-%d}: {_name_list([token.name for token in soon])}.",
            "Give their programs new tokens before that date.",
        )
    elif valid:
        first = f"the first expires on {valid[0].expires_at:%Y-%m-%d}"
        yield ok(f"{counted(len(valid), 'token is', 'tokens are')} valid; {first}.")


def check_audit(path: Path) -> Iterator[Finding]:
    """Check that lines can be appended to the audit log."""
    wrongs = list(check_output_file(path, "audit log", "service.audit"))
    yield from wrongs or [ok(f"The audit log {path} can be written.")]


def _check_sink(config: Config) -> Iterator[Finding]:
    """Check the delivery guarantee, the brokers, and the topics to which the service sends verdicts."""
    if config.kafka.delivery == "exactly-once":
        yield wrong(
            ConfigError,
            "dupwatch serve delivers verdicts at least once, but kafka.delivery is exactly-once.",
            'Start it with --set kafka.delivery="at-least-once".',
        )
    address, sink_topics = parse_prefix(config.sink.url), kafka_parts.sink_topics(config)
    settings = admin_settings(address.brokers, components.kafka_options(config))
    brokers = Brokers(address.brokers, settings, SinkError)
    yield from cluster_findings(brokers.cluster(), config.kafka, transactional=False)
    plans = [plan for plan in topic_plan(sink_topics) if plan.name in sink_topics.written_topics]
    init = f"dupwatch topics init --sink {config.sink.url}"
    yield from topic_findings(plans, brokers.topics(sink_topics.written_topics), init)


def _name_list(names: Sequence[str]) -> str:
    more = len(names) - _LISTED_MAX
    return ", ".join(names[:_LISTED_MAX]) + (f" and {more} more" if more > 0 else "")
