"""Access to pages: it depends on the server's address, on credentials and on host names."""

import binascii
import hashlib
import hmac
import ipaddress
import re
import socket
from base64 import b64decode
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from consumer.model.errors import ConfigError
from consumer.text.redaction import remember

HOST: Final = "127.0.0.1"
_PORT_MAX: Final = 65_535
_SCHEME: Final = "basic"
_LOCAL_NAME: Final = "localhost"
_HOST_PATTERN: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::([0-9]{1,5}))?")
_URL_PATTERN: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")


class ListenAddress(NamedTuple):
    """The address on which a server listens. Port 0 means any free port."""

    host: str
    port: int

    def url(self, *, is_secure: bool) -> str:
        """Return the URL of the server."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if is_secure else 'http'}://{host}:{self.port}"


class Account(NamedTuple):
    """The user name and password that give access to all pages."""

    user: str
    password: str


class BadHost(Exception):  # noqa: N818  # named for the host
    """A request has several ``Host`` headers or a malformed host. The answer must be 400 (RFC 9112, 3.2)."""


class Access:
    """The access rules of a server.

    Without an ``account``, requests need no credentials, but the server shows articles only under an IP address,
    ``localhost`` or one of ``names``. Without this rule, another site that is open in the same browser could point its
    own host name at this server and read its pages (DNS rebinding). On a loopback address, ``allows_page`` applies the
    rule to every page. On others it allows metrics and health under any name, because scrapers and probes use the names
    of services (decision 0040).
    """

    def __init__(self, account: Account | None = None, names: Collection[str] = ()) -> None:
        self._expected = None if account is None else _digest(f"{account.user}:{account.password}".encode())
        self._names = frozenset(name.casefold() for name in names)

    @property
    def needs_credentials(self) -> bool:
        """Whether credentials are required."""
        return self._expected is not None

    def accepts(self, authorization: str | None) -> bool:
        """Return whether an ``Authorization`` header is right, or credentials are not required.

        The time that this takes does not depend on what is wrong.
        """
        if self._expected is None:
            return True
        return hmac.compare_digest(_digest(_credentials(authorization or "")), self._expected)

    def allows_page(self, host: str | None, *, has_articles: bool, is_local: bool) -> bool:
        """Return whether a page may be shown under this host name, as returned by ``request_host``.

        ``is_local`` says that the server listens on a loopback address.
        """
        if has_articles:
            return self.allows_host(host)
        # Every browser sends a host; HTTP/1.0 probes may not.
        return not is_local or host is None or self.allows_host(host)

    def allows_host(self, host: str | None) -> bool:
        """Return whether articles may be shown under this host name, as returned by ``request_host``."""
        if self.needs_credentials:
            return True
        return host is not None and (host == _LOCAL_NAME or host in self._names or _is_address(host))


def request_host(headers: Sequence[str], target: str) -> str | None:
    """Return the host in these ``Host`` headers without its port, in lower case; None if there is none.

    The host in a target such as ``http://HOST/path`` takes precedence. Raises ``BadHost`` for several headers or a
    malformed host.
    """
    if len(headers) > 1:
        raise BadHost("The request has several Host headers. Send one.")
    # A client without a host sends an empty header, or in HTTP/1.0 no header.
    text = headers[0].strip(" \t") if headers else ""
    host = _host_in(text) if text else None
    url = _URL_PATTERN.match(target)
    return host if url is None else _host_in(url[1])


def parse_address(text: str) -> ListenAddress:
    """Parse ``HOST:PORT``, ``[IPV6]:PORT`` or ``PORT``. Raises ``ConfigError`` for anything else."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if colon else HOST
    if not host or not (port.isascii() and port.isdigit()) or int(port) > _PORT_MAX:
        raise ConfigError(f"{text!r} is not an address: write HOST:PORT, for example {HOST}:9464")
    return ListenAddress(host, int(port))


def check_exposure(address: ListenAddress, access: Access, *, is_open: bool) -> None:
    """Raise ``ConfigError`` if other machines could read the pages without a password, unless ``is_open`` allows it."""
    if is_open or access.needs_credentials or is_loopback(address):
        return
    raise ConfigError(
        f"http.listen = {address.host}:{address.port} lets other machines read articles and metrics without a "
        "password: set http.user and http.password_file, or http.open = true if the network keeps others out, "
        f"or listen on {HOST}:{address.port}"
    )


def read_password(path: str, setting: str = "http.password_file") -> str:
    """Read a password from the file that ``setting`` names, without the line end.

    Raises ``ConfigError`` if the file cannot be read or is empty.
    """
    try:
        password = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{setting}: cannot read {path}: {error}") from error
    if not password:
        raise ConfigError(f"{setting}: {path} is empty")
    remember(password)
    return password


def is_loopback(address: ListenAddress) -> bool:
    """Return whether only this machine can reach the address, or its host name cannot be resolved."""
    try:
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
    except OSError:
        # Listening on it fails, too, and reports the error.
        return True
    return all(ipaddress.ip_address(info[4][0]).is_loopback for info in found)


def _digest(credentials: bytes) -> bytes:
    """Return a digest. Comparing the texts would reveal the length of the password."""
    return hashlib.sha256(credentials).digest()


def _credentials(authorization: str) -> bytes:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != _SCHEME:
        return b""
    try:
        return b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _host_in(text: str) -> str:
    """Return the host in ``HOST``, ``HOST:PORT`` or ``[IPV6]:PORT``. Raises ``BadHost`` for anything else."""
    found = _HOST_PATTERN.fullmatch(text)
    if found is None or int(found[3] or 0) > _PORT_MAX:
        raise _bad_host()
    address, name, _ = found.groups()
    if address is None:
        return str(name).casefold()
    try:
        return str(ipaddress.IPv6Address(address))
    except ValueError as error:
        raise _bad_host() from error


def _bad_host() -> BadHost:
    return BadHost("The Host of the request is malformed. Send HOST, HOST:PORT or [IPV6]:PORT.")
