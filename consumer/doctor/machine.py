"""What is wrong with this machine: files that may be open, the address of the pages, and TLS files."""

import errno
import json
import resource
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple

from consumer.config.config import Config
from consumer.doctor.certificates import validities
from consumer.doctor.finding import Finding, ok, warning, wrong
from consumer.kafka.client_settings import admin_settings
from consumer.model.errors import ConfigError
from consumer.pages.access import Address, is_loopback, parse_address
from consumer.pages.server import CONNECTIONS_MAX
from consumer.top.client import Access, PagesClient, Unanswered
from consumer.wiring.parts import kafka_options

DESCRIPTORS_COMFORTABLE: Final = 1024
_DESCRIPTORS_BASE: Final = 64
"""Libraries, the dictionary, logs, and a connection to each of some brokers from two clients."""
_DESCRIPTORS_WORKER: Final = 6
ENDS_SOON: Final = timedelta(days=14)
PAGE_S: Final = 3.0


class TlsFiles(NamedTuple):
    """PEM files that belong together, as the settings name them; the key's password where it has one."""

    setting: str
    authorities: str | None
    certificate: str | None
    key: str | None
    password: str | None = None


def descriptors_needed(config: Config) -> int:
    """How many files and connections one consumer may have open at once."""
    return (
        _DESCRIPTORS_BASE + CONNECTIONS_MAX + config.store.hbase.connections_max + _DESCRIPTORS_WORKER * config.workers
    )


def check_descriptors(config: Config) -> Iterator[Finding]:
    """Whether this process may open enough files."""
    yield descriptor_finding(resource.getrlimit(resource.RLIMIT_NOFILE)[0], descriptors_needed(config))


def descriptor_finding(limit: int, needed: int) -> Finding:
    """What a limit means for a process that needs so many."""
    if limit == resource.RLIM_INFINITY:
        return ok("Any number of files may be open.")
    found = f"{limit} files may be open, and about {needed} are needed"
    remedy = f"Raise the limit to {max(DESCRIPTORS_COMFORTABLE, 2 * needed)}: ulimit -n, or LimitNOFILE= of the unit."
    if limit < needed:
        return wrong(ConfigError, f"{found}.", remedy)
    if limit < DESCRIPTORS_COMFORTABLE:
        return warning(f"{found}, with few brokers.", remedy)
    return ok(f"{found}.")


def check_address(config: Config) -> Iterator[Finding]:
    """Whether the address of the pages is free, or a consumer has it."""
    if not config.http.listen:
        yield ok("No pages are served: http.listen is empty.")
        return
    address = parse_address(config.http.listen)
    if config.http.user and not config.http.tls_certificate and not is_loopback(address):
        yield warning(
            f"The pages at {config.http.listen} ask for a password without TLS: it can be read on its way.",
            "Set http.tls_certificate and http.tls_key, and let Prometheus ask by https.",
        )
    try:
        family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
            tried.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            yield _taken(address, config.http.model_dump().get("tls_certificate"))
        else:
            yield wrong(
                ConfigError,
                f"Nobody can listen at {config.http.listen}: {error.strerror or error}.",
                "Correct http.listen: an address of this machine and a port above 1023.",
            )
    else:
        yield ok(f"{config.http.listen} is free for the pages.")


def _taken(address: Address, certificate: str | None) -> Finding:
    """The address is in use: by a consumer, which says how it is, or by something else."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address.host, address.host)  # noqa: S104  # nothing listens here
    scheme, access = "http", Access()
    if certificate is not None:
        # Who shows the very certificate that is configured is the consumer, by whatever name it is asked for.
        scheme, access = "https", Access(authorities=certificate, checks_name=False)
    try:
        answer = PagesClient(f"{scheme}://{_bracketed(host)}:{address.port}", access, PAGE_S).get("/readyz")
    except Unanswered:
        return _other(address)
    if not answer.ours:
        return _other(address)
    if answer.status == HTTPStatus.OK:
        return ok(f"A consumer is at {address.host}:{address.port}, and is ready.")
    return warning(
        f"A consumer is at {address.host}:{address.port}, and is not ready{_reasons(answer.body)}.",
        "Look at its log; dupwatch top shows how it goes.",
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _reasons(body: bytes) -> str:
    try:
        return ": " + "; ".join(json.loads(body)["reasons"])
    except (ValueError, KeyError, TypeError):
        return ""


def _other(address: Address) -> Finding:
    return wrong(
        ConfigError,
        f"{address.host}:{address.port} is in use, and not by a consumer of these settings.",
        "Set http.listen to another port, or stop what has this one.",
    )


def tls_files(config: Config) -> list[TlsFiles]:
    """Every group of TLS files that is configured."""
    # With what stands in files of secrets.
    client = admin_settings("", kafka_options(config))
    given = {**client, **config.kafka.consumer, **config.kafka.producer}
    authorities, certificate, key, password = (
        None if (value := given.get(f"ssl.{name}")) is None else str(value)
        for name in ("ca.location", "certificate.location", "key.location", "key.password")
    )
    named = [TlsFiles("kafka", authorities, certificate, key, password)]
    store = config.store.hbase
    named.append(TlsFiles("store.hbase", store.tls_ca, store.tls_certificate, store.tls_key))
    pages = config.http.model_dump()
    named.append(TlsFiles("http", None, pages.get("tls_certificate"), pages.get("tls_key")))
    return [one for one in named if any(one[1:4])]


def today() -> datetime:
    """The time that certificates are looked at."""
    return datetime.now(UTC)


def check_tls(config: Config) -> Iterator[Finding]:
    """Whether TLS files can be read, hold today, and belong together."""
    files = tls_files(config)
    if not files:
        yield ok("No TLS files are configured.")
    for one in files:
        for path in (one.authorities, one.certificate):
            if path is not None and not Path(path).is_dir():
                yield from _dates(one.setting, Path(path), today())
        if one.certificate is not None:
            yield from _belong_together(one, one.certificate)


def _dates(setting: str, path: Path, now: datetime) -> Iterator[Finding]:
    try:
        found = validities(path.read_bytes())
    except OSError as error:
        yield wrong(
            ConfigError, f"{setting}: {path} cannot be read: {error.strerror}.", "Make it readable for this user."
        )
        return
    except ValueError as error:
        yield wrong(ConfigError, f"{setting}: {path} is damaged: {error}.", "Fetch it anew, as PEM.")
        return
    if not found:
        yield wrong(ConfigError, f"{setting}: {path} has no certificate.", "Name a file with certificates, as PEM.")
        return
    ends = min(one.ends for one in found)
    begins = max(one.begins for one in found)
    if ends <= now:
        yield wrong(ConfigError, f"{setting}: {path} has expired on {ends:%Y-%m-%d}.", "Renew it, and start again.")
    elif begins > now:
        yield wrong(
            ConfigError,
            f"{setting}: {path} holds from {begins:%Y-%m-%d %H:%M} UTC only.",
            "See whether this machine's clock is right.",
        )
    elif ends - now < ENDS_SOON:
        yield warning(f"{setting}: {path} expires on {ends:%Y-%m-%d}.", "Renew it before that.")
    else:
        yield ok(f"{setting}: {path} holds until {ends:%Y-%m-%d}.")


def _belong_together(files: TlsFiles, certificate: str) -> Iterator[Finding]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        # Without a password here OpenSSL would ask on the terminal for it.
        context.load_cert_chain(certificate, files.key, password=files.password or "")
    except OSError as error:
        # A file that cannot be read is told by its dates already, and SSLError is an OSError.
        why = error.reason if isinstance(error, ssl.SSLError) else error.strerror
        yield wrong(
            ConfigError,
            f"{files.setting}: the certificate {certificate} and its key do not go together: {why or error}.",
            "Name the key that the certificate was made for, readable for this user, and its password.",
        )
    else:
        yield ok(f"{files.setting}: the certificate and its key go together.")
