"""Asks a running consumer for its pages: over HTTP or HTTPS, with a password or without, never for long.

The standard library does that. ``requests`` and ``httpx`` would bring pools, redirects and proxies, none of which a
question to a consumer next door has a use for, and each is one more package to be kept patched.
"""

import base64
import ssl
import time
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from consumer.model.errors import ConfigError

BODY_BYTES_MAX: Final = 16 << 20
"""The metrics of some thousand partitions have a few hundred kilobytes."""
_CHUNK_BYTES: Final = 1 << 16
_SERVER: Final = "dupwatch"


class Unanswered(Exception):  # noqa: N818  # it is what became of the question
    """A page could not be had; the message says why, for a person."""


class Page(NamedTuple):
    """What was answered; ``ours`` says whether it was a consumer."""

    status: int
    body: bytes
    ours: bool


class Access(NamedTuple):
    """How pages are asked for: name and password where they want one, and who is trusted to vouch for them.

    ``authorities`` is a PEM file, the system's when None; a certificate that is in it need not be an authority's.
    """

    user: str | None = None
    password: str | None = None
    authorities: str | None = None
    checks_name: bool = True


class PagesClient:
    """Asks one consumer, by any number of threads. ConfigError where the URL or the file of authorities is none."""

    def __init__(self, url: str, access: Access, wait_s: float) -> None:
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError as error:
            raise ConfigError(f"{url!r} is no address of a consumer: {error}") from error
        # A word alone is nobody's address as it stands in http.listen.
        is_address = "://" in url or self._port is not None
        if parts.scheme not in {"http", "https"} or not self._host or parts.username is not None or not is_address:
            raise ConfigError(f"{url!r} is no address of a consumer: write it as http://HOST:PORT or https://HOST:PORT")
        self._path = parts.path.rstrip("/")
        self._wait_s = wait_s
        self._headers = _authorization(access)
        self._context = _context(access) if parts.scheme == "https" else None

    def get(self, path: str) -> Page:
        """The page at this path; ``Unanswered`` where nobody answers, or not in time."""
        try:
            with closing(self._connection()) as connection:
                connection.request("GET", self._path + path, headers=self._headers)
                answer = connection.getresponse()
                server = answer.getheader("Server") or ""
                return Page(answer.status, self._body(answer), server.startswith(_SERVER))
        except (OSError, HTTPException) as error:
            raise Unanswered(_why(error)) from error

    def _connection(self) -> HTTPConnection:
        if self._context is None:
            return HTTPConnection(self._host, self._port, timeout=self._wait_s)
        return HTTPSConnection(self._host, self._port, timeout=self._wait_s, context=self._context)

    def _body(self, answer: HTTPResponse) -> bytes:
        """All of the body, in bounded time: each part of it may take as long as a whole answer may."""
        until_s = time.monotonic() + self._wait_s
        body = bytearray()
        while part := answer.read1(_CHUNK_BYTES):
            body += part
            if len(body) > BODY_BYTES_MAX:
                raise Unanswered(f"the page has more than {BODY_BYTES_MAX} bytes")
            if time.monotonic() > until_s:
                raise Unanswered(f"the page did not come within {self._wait_s:g} s")
        return bytes(body)


def _authorization(access: Access) -> dict[str, str]:
    if access.user is None:
        return {}
    pair = base64.b64encode(f"{access.user}:{access.password or ''}".encode()).decode("ascii")
    return {"Authorization": f"Basic {pair}"}


def _context(access: Access) -> ssl.SSLContext:
    if access.authorities is not None and not Path(access.authorities).is_file():
        raise ConfigError(f"there is no file {access.authorities} of authorities")
    try:
        context = ssl.create_default_context(cafile=access.authorities)
    except OSError as error:
        raise ConfigError(f"the authorities in {access.authorities} cannot be read: {error}") from error
    context.check_hostname = access.checks_name
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {error}"
