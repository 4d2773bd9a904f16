"""Who may see the pages of a run: by where it listens, by name and password, and by the name it is asked under."""

import binascii
import hashlib
import hmac
import ipaddress
import socket
from base64 import b64decode
from collections.abc import Collection
from pathlib import Path
from typing import Final, NamedTuple

from consumer.model.errors import ConfigError
from consumer.text.redaction import remember

HOST: Final = "127.0.0.1"
_PORT_MAX: Final = 65_535
_SCHEME: Final = "basic"
_LOCAL_NAME: Final = "localhost"


class Address(NamedTuple):
    """Where pages are served; port 0 is any that is free."""

    host: str
    port: int


class Account(NamedTuple):
    """The one who may see everything."""

    user: str
    password: str


class Access:
    """What a request has to bring along.

    Without an ``account`` there is nothing to bring, but articles are shown under an address or ``localhost`` or one of
    ``names`` only. Else a page of another site, open in the same browser, could have its own name point here, and read
    as if it were this one (DNS rebinding). Where only this machine is listened to that holds for every page; elsewhere
    metrics and health answer any name, since scrapers and probes use those of services (decision 0040).
    """

    def __init__(self, account: Account | None = None, names: Collection[str] = ()) -> None:
        self._expected = None if account is None else _digest(f"{account.user}:{account.password}".encode())
        self._names = frozenset(name.casefold() for name in names)

    @property
    def asks(self) -> bool:
        """Whether name and password are asked for."""
        return self._expected is not None

    def lets_in(self, authorization: str | None) -> bool:
        """Whether the header ``Authorization`` names the account; takes as long whatever is wrong with it."""
        if self._expected is None:
            return True
        return hmac.compare_digest(_digest(_credentials(authorization or "")), self._expected)

    def answers(self, host: str | None, *, has_articles: bool, is_local: bool) -> bool:
        """Whether a page may be shown to a client that asked for the ``Host`` of this header.

        ``is_local`` says that only this machine is listened to.
        """
        if has_articles:
            return self.knows(host)
        # Every browser sends the header; probes that speak HTTP/1.0 may not.
        return not is_local or not host or self.knows(host)

    def knows(self, host: str | None) -> bool:
        """Whether articles may be shown to a client that asked for the ``Host`` of this header."""
        if self.asks:
            return True
        name = _without_port(host or "").casefold()
        return name == _LOCAL_NAME or name in self._names or _is_address(name)


def parse_address(text: str) -> Address:
    """The address that ``HOST:PORT``, ``[IPV6]:PORT`` or ``PORT`` names; ConfigError where it names none."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if colon else HOST
    if not host or not (port.isascii() and port.isdigit()) or int(port) > _PORT_MAX:
        raise ConfigError(f"{text!r} is no address: write it as HOST:PORT, for example {HOST}:9464")
    return Address(host, int(port))


def check_exposure(address: Address, access: Access, *, is_open: bool) -> None:
    """ConfigError where others than this machine could read along, and nobody has said that they may."""
    if is_open or access.asks or is_loopback(address):
        return
    raise ConfigError(
        f"http.listen = {address.host}:{address.port} lets other machines read articles and metrics, and asks for no "
        "password: set http.user and http.password_file, or http.open = true where the network lets in nobody else, "
        f"or listen on {HOST}:{address.port}"
    )


def read_password(path: str) -> str:
    """The password that stands in a file, without the line's end; ConfigError where there is none."""
    try:
        password = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"http.password_file: the password cannot be read from {path}: {error}") from error
    if not password:
        raise ConfigError(f"http.password_file: {path} is empty")
    remember(password)
    return password


def is_loopback(address: Address) -> bool:
    """Whether only this machine reaches the address."""
    try:
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
    except OSError:
        # It cannot be listened on either, which is told where that is tried.
        return True
    return all(ipaddress.ip_address(one[4][0]).is_loopback for one in found)


def _digest(credentials: bytes) -> bytes:
    """Of one length: a comparison of the texts themselves would tell how long the password is."""
    return hashlib.sha256(credentials).digest()


def _credentials(authorization: str) -> bytes:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != _SCHEME:
        return b""
    try:
        return b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
