"""Checks this machine: the limit on open files, output files, the address of the pages, and TLS files."""

import errno
import json
import os
import resource
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple

from consumer.config.config import Config
from consumer.doctor.finding import Finding, ok, warning, wrong
from consumer.doctor.pages_client import ClientAccess, FetchedPage, PagesClient, PageUnavailable, local_url
from consumer.kafka.client_settings import admin_settings
from consumer.model.errors import ConfigError, SinkError
from consumer.web.access import ListenAddress, is_loopback, parse_address
from consumer.web.certificates import validities
from consumer.web.page_server import CONNECTIONS_MAX
from consumer.wiring import stores
from consumer.wiring.components import kafka_options
from storage.kinds import needs_of_all

DESCRIPTORS_COMFORTABLE_MIN: Final = 1024
"""If the limit on open files is below this number, it is a reason for a warning, even if a run needs fewer."""
_DESCRIPTORS_BASE: Final = 64
"""The open files of every run: libraries, the dictionary, logs, and connections of two clients to a few brokers."""
_DESCRIPTORS_WORKER: Final = 6
EXPIRY_WARNING: Final = timedelta(days=14)
"""A certificate or token that expires within this time is a reason for a warning."""
PAGE_S: Final = 3.0
_RELOADING_SECTIONS: Final = frozenset({"http", "service"})
"""The sections whose certificate is reloaded when its file changes."""


class TlsFiles(NamedTuple):
    """PEM files that belong together, the section of the settings that names them, and the key's password if any."""

    section: str
    authorities: str | None
    certificate: str | None
    key: str | None
    password: str | None = None


def descriptors_needed(config: Config) -> int:
    """Return the approximate maximum of files and connections that one consumer has open."""
    of_stores = sum(needs.connections for needs in needs_of_all(stores.configured_opening(config)))
    return _DESCRIPTORS_BASE + CONNECTIONS_MAX + of_stores + _DESCRIPTORS_WORKER * config.workers


def check_descriptors(config: Config) -> Iterator[Finding]:
    """Check that this process may open enough files."""
    yield descriptor_finding(resource.getrlimit(resource.RLIMIT_NOFILE)[0], descriptors_needed(config))


def descriptor_finding(limit: int, needed: int) -> Finding:
    """Return the finding on a limit of open files, given the number that the process needs."""
    if limit == resource.RLIM_INFINITY:
        return ok("The number of open files is unlimited.")
    found = f"The limit is {limit} open files; a run needs about {needed}"
    remedy = (
        f"Raise the limit to {max(DESCRIPTORS_COMFORTABLE_MIN, 2 * needed)}: ulimit -n, or LimitNOFILE= of the unit."
    )
    if limit < needed:
        return wrong(ConfigError, f"{found}.", remedy)
    if limit < DESCRIPTORS_COMFORTABLE_MIN:
        return warning(f"{found}, and more with many brokers.", remedy)
    return ok(f"{found}.")


def check_output_file(path: Path, description: str, setting: str) -> Iterator[Finding]:
    """Yield a finding if a run could not write the file of this ``setting``; nothing if it could.

    Messages call the file ``description``.
    """
    folder = path.parent
    if not folder.is_dir():
        yield wrong(
            SinkError,
            f"The directory {folder} of the {description} {path} does not exist.",
            f"Create it, or correct {setting}.",
        )
    elif not os.access(folder, os.W_OK | os.X_OK):
        yield wrong(
            SinkError,
            f"No permission to write in {folder}, the directory of the {description}.",
            f"Give this user write permission, or name a different {description}.",
        )
    elif path.exists() and not path.is_file():
        yield wrong(SinkError, f"The {description} {path} is not a regular file.", f"Name a file in {setting}.")
    elif path.exists() and not os.access(path, os.W_OK):
        yield wrong(
            SinkError,
            f"No permission to write to the {description} {path}.",
            f"Give this user write permission, or name a different {description}.",
        )


def check_address(config: Config) -> Iterator[Finding]:
    """Check that the address of the pages is free or used by a consumer, and that no password is sent in the clear."""
    if not config.http.listen:
        yield ok("http.listen is empty: no pages are served.")
        return
    address = parse_address(config.http.listen)
    if config.http.user and not config.http.tls_certificate and not is_loopback(address):
        yield warning(
            f"The pages at {config.http.listen} require a password without TLS: it is sent in the clear.",
            "Set http.tls_certificate and http.tls_key, and scrape with https.",
        )
    error = listening_error(address)
    if error is None:
        yield ok(f"{config.http.listen} is free for the pages.")
    elif error.errno == errno.EADDRINUSE:
        yield _used_address(address, config.http.tls_certificate)
    else:
        yield cannot_listen("http", config.http.listen, error)


def listening_error(address: ListenAddress) -> OSError | None:
    """Return the error that prevents a server from listening on this address, or None if the address is free."""
    try:
        family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        return error
    return None


def cannot_listen(section: str, listen: str, error: OSError) -> Finding:
    """Return the finding that this machine cannot listen on the address ``listen`` of a section."""
    return wrong(
        ConfigError,
        f"Cannot listen on {listen}: {error.strerror or error}.",
        f"Set {section}.listen to an address of this machine and a port above 1023.",
    )


def readiness_at(address: ListenAddress, certificate: str | None) -> FetchedPage | None:
    """Return a server's answer at /readyz, or None if it does not answer.

    With a ``certificate``, use TLS and trust it. Raises ``ConfigError`` if the certificate cannot be read.
    """
    access = ClientAccess()
    if certificate is not None:
        # A server with the configured certificate is ours, under any host name.
        access = ClientAccess(authorities=certificate, checks_name=False)
    try:
        return PagesClient(local_url(address, is_secure=certificate is not None), access, PAGE_S).get("/readyz")
    except PageUnavailable:
        return None


def _used_address(address: ListenAddress, certificate: str | None) -> Finding:
    """Return the finding on an address in use: by a consumer, with its state, or by another process."""
    answer = readiness_at(address, certificate)
    if answer is None or not answer.is_dupwatch:
        return wrong(
            ConfigError,
            f"{address.host}:{address.port} is in use, but not by a consumer with this configuration.",
            "Set http.listen to another port, or stop the process that uses this one.",
        )
    if answer.status == HTTPStatus.OK:
        return ok(f"A consumer is running at {address.host}:{address.port} and is ready.")
    return warning(
        f"A consumer is running at {address.host}:{address.port} but is not ready{_reasons(answer.body)}.",
        "Check its log; dupwatch top shows its progress.",
    )


def _reasons(body: bytes) -> str:
    try:
        return ": " + "; ".join(json.loads(body)["reasons"])
    except (ValueError, KeyError, TypeError):
        return ""


def tls_files(config: Config) -> list[TlsFiles]:
    """Return every group of TLS files that is configured."""
    # Includes the settings from secret files.
    client = admin_settings("", kafka_options(config))
    settings = {**client, **config.kafka.consumer, **config.kafka.producer}
    authorities, certificate, key, password = (
        None if (value := settings.get(f"ssl.{name}")) is None else str(value)
        for name in ("ca.location", "certificate.location", "key.location", "key.password")
    )
    groups = [TlsFiles("kafka", authorities, certificate, key, password)]
    needs_of_stores = needs_of_all(stores.configured_opening(config))
    groups += [TlsFiles(*needs.tls) for needs in needs_of_stores if needs.tls is not None]
    groups += [
        TlsFiles(name, None, section.tls_certificate, section.tls_key)
        for name, section in (("http", config.http), ("service", config.service))
    ]
    return [files for files in groups if any((files.authorities, files.certificate, files.key))]


def current_time() -> datetime:
    """Return the current time, for comparison with the dates of certificates."""
    return datetime.now(UTC)


def check_tls(config: Config) -> Iterator[Finding]:
    """Check that TLS files can be read, that certificates are valid now, and that they match their keys."""
    groups = tls_files(config)
    if not groups:
        yield ok("No TLS files are configured.")
    for files in groups:
        for path in (files.authorities, files.certificate):
            if path is not None and not Path(path).is_dir():
                yield from _dates(files.section, Path(path), current_time())
        if files.certificate is not None:
            yield from _key_match(files, files.certificate)


def _dates(section: str, path: Path, now: datetime) -> Iterator[Finding]:
    try:
        found = validities(path.read_bytes())
    except OSError as error:
        yield wrong(
            ConfigError, f"{section}: {path} cannot be read: {error.strerror}.", "Make the file readable for this user."
        )
        return
    except ValueError as error:
        yield wrong(ConfigError, f"{section}: {path} is damaged: {error}.", "Replace it with a valid PEM file.")
        return
    if not found:
        yield wrong(ConfigError, f"{section}: {path} has no certificate.", "Name a PEM file with certificates.")
        return
    ends = min(validity.ends for validity in found)
    begins = max(validity.begins for validity in found)
    if ends <= now:
        then = "; the server loads the new one within seconds" if section in _RELOADING_SECTIONS else " and restart"
        yield wrong(ConfigError, f"{section}: {path} expired on {ends:%Y-%m-%d}.", f"Renew it{then}.")
    elif begins > now:
        yield wrong(
            ConfigError,
            f"{section}: {path} is not valid before {begins:%Y-%m-%d %H:%M} UTC.",
            "Check the clock of this machine.",
        )
    elif ends - now < EXPIRY_WARNING:
        yield warning(f"{section}: {path} expires on {ends:%Y-%m-%d}.", "Renew it before that date.")
    else:
        yield ok(f"{section}: {path} is valid until {ends:%Y-%m-%d}.")


def _key_match(files: TlsFiles, certificate: str) -> Iterator[Finding]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        # Without a password here, OpenSSL would prompt for it on the terminal.
        context.load_cert_chain(certificate, files.key, password=files.password or "")
    except OSError as error:
        # SSLError is an OSError. An unreadable certificate is reported here too, after the check of its dates.
        reason = error.reason if isinstance(error, ssl.SSLError) else error.strerror
        yield wrong(
            ConfigError,
            f"{files.section}: the certificate {certificate} does not match its key: {reason or error}.",
            "Name the key of this certificate, make it readable for this user, and set its password if it has one.",
        )
    else:
        yield ok(f"{files.section}: the certificate matches its key.")
