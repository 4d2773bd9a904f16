"""Fetches the pages of a running consumer over HTTP or HTTPS, with time limits.

The standard library is enough: ``requests`` and ``httpx`` add pools, redirects and proxies, which are not needed here,
and each would be one more package to keep patched.
"""

import base64
import ssl
import time
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from consumer.config.config import Config
from consumer.model.errors import ConfigError
from consumer.web.access import ListenAddress, parse_address

BODY_BYTES_MAX: Final = 16 << 20
"""Limit on the size of a page. The metrics of several thousand partitions take a few hundred kilobytes."""
_CHUNK_BYTES: Final = 1 << 16
_SERVER: Final = "dupwatch"
_LOOPBACK_OF: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # only compared


class PageUnavailable(Exception):  # noqa: N818  # the state of a request
    """A page could not be fetched; the message says why."""


class FetchedPage(NamedTuple):
    """The status and body of an answer.

    ``is_dupwatch`` says whether the pages of a run sent it. It is false for the HTTP service and the console.
    """

    status: int
    body: bytes
    is_dupwatch: bool


class ClientAccess(NamedTuple):
    """Credentials for the pages, if they need any, and the certificates to trust.

    ``authorities`` is a PEM file of certificates to trust, which need not be those of authorities. None stands for the
    system's authorities. Without ``checks_name``, a certificate is accepted for any host name.
    """

    user: str | None = None
    password: str | None = None
    authorities: str | None = None
    checks_name: bool = True


class PagesClient:
    """A client for the pages of one consumer, usable from any thread.

    ``wait_s`` limits each of these: the connection, every read, and the whole body. Raises ``ConfigError`` for an
    invalid URL or an unreadable file of certificates.
    """

    def __init__(self, url: str, access: ClientAccess, wait_s: float) -> None:
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError as error:
            raise ConfigError(f"{url!r} is not the address of a consumer: {error}") from error
        # A port alone is not an address, although http.listen accepts one.
        is_address = "://" in url or self._port is not None
        if parts.scheme not in {"http", "https"} or not self._host or parts.username is not None or not is_address:
            raise ConfigError(f"{url!r} is not the address of a consumer: write http://HOST:PORT or https://HOST:PORT")
        self._path = parts.path.rstrip("/")
        self._wait_s = wait_s
        self._headers = _authorization(access)
        self._context = ssl_context(access) if parts.scheme == "https" else None

    def get(self, path: str) -> FetchedPage:
        """Fetch the page at this path. Raises ``PageUnavailable`` if there is no answer or it is too slow or large."""
        try:
            with closing(self._connection()) as connection:
                connection.request("GET", self._path + path, headers=self._headers)
                answer = connection.getresponse()
                server = answer.getheader("Server") or ""
                return FetchedPage(answer.status, self._body(answer), server.startswith(_SERVER))
        except (OSError, HTTPException) as error:
            raise PageUnavailable(failure_reason(error)) from error

    def _connection(self) -> HTTPConnection:
        if self._context is None:
            return HTTPConnection(self._host, self._port, timeout=self._wait_s)
        return HTTPSConnection(self._host, self._port, timeout=self._wait_s, context=self._context)

    def _body(self, answer: HTTPResponse) -> bytes:
        """Return the whole body. Raises ``PageUnavailable`` if it is too large or too slow.

        The connection's own time-out limits single reads, not the whole body.
        """
        until_s = time.monotonic() + self._wait_s
        body = bytearray()
        while part := answer.read1(_CHUNK_BYTES):
            body += part
            if len(body) > BODY_BYTES_MAX:
                raise PageUnavailable(f"the page is larger than {BODY_BYTES_MAX} bytes")
            if time.monotonic() > until_s:
                raise PageUnavailable(f"the page did not arrive within {self._wait_s:g} s")
        return bytes(body)


def configured_url(config: Config) -> str:
    """Return the URL at which this machine reaches the pages of the configured consumer.

    Raises ``ConfigError`` if there are no pages, or if their port is not fixed.
    """
    if not config.http.listen:
        raise ConfigError("http.listen is empty, so this consumer has no pages; name a consumer: dupwatch top URL")
    address = parse_address(config.http.listen)
    if not address.port:
        raise ConfigError(
            f"http.listen is {config.http.listen}, without a fixed port; take the port from the consumer's log, and "
            "name it: dupwatch top URL"
        )
    return local_url(address, is_secure=config.http.tls_certificate is not None)


def local_url(address: ListenAddress, *, is_secure: bool) -> str:
    """Return the URL at which this machine reaches a server that listens on this address."""
    return ListenAddress(_LOOPBACK_OF.get(address.host, address.host), address.port).url(is_secure=is_secure)


def with_own_certificate(access: ClientAccess, config: Config) -> ClientAccess:
    """Return access that trusts the configured certificate, if any, under any host name."""
    certificate = config.http.tls_certificate
    return access if certificate is None else access._replace(authorities=certificate, checks_name=False)


def _authorization(access: ClientAccess) -> dict[str, str]:
    if access.user is None:
        return {}
    pair = base64.b64encode(f"{access.user}:{access.password or ''}".encode()).decode("ascii")
    return {"Authorization": f"Basic {pair}"}


def ssl_context(access: ClientAccess) -> ssl.SSLContext:
    """Return the context for these authorities. Raises ``ConfigError`` if they cannot be read."""
    if access.authorities is not None and not Path(access.authorities).is_file():
        raise ConfigError(f"the file of authorities {access.authorities} does not exist")
    try:
        context = ssl.create_default_context(cafile=access.authorities)
    except OSError as error:
        raise ConfigError(f"cannot read the authorities in {access.authorities}: {error}") from error
    context.check_hostname = access.checks_name
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def failure_reason(error: Exception) -> str:
    """Return why a request failed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {error}"
