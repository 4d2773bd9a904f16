"""Parses the URLs of webhooks. Unusual URLs are refused, because programs interpret them differently."""

import re
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

from consumer.model.errors import DupwatchError

URL_CHARS_MAX: Final = 2_000
UrlFault = Literal["form", "scheme", "person", "host", "port"]
"""The wrong part of a URL; *person* is a user name or password before the host.

*form* stands for the whole URL: it is too long, or has a character that is not allowed.
"""
_CHARACTERS: Final = re.compile(r"[!$-;=?-\[\]_a-z~]+")
"""The allowed characters: printable ASCII, except the space and ``" # < > \\ ^ ` { | }``."""
_HOST: Final = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*|[0-9a-f]*:[0-9a-f:.]+")
"""ASCII names, as in DNS, and IP addresses."""
_BRACKETS: Final = re.compile(r"\[[^\[\]]*\](:[0-9]*)?")
"""An IPv6 address in brackets, with or without a port."""
_PORTS: Final = {"https": 443, "http": 80}


class UrlError(DupwatchError):
    """A webhook cannot have this URL. ``fault`` names the wrong part of the URL."""

    def __init__(self, fault: UrlFault) -> None:
        super().__init__(f"the URL cannot be used: {fault}")
        self.fault = fault


class Endpoint(NamedTuple):
    """The parts of a URL: ``host`` is without brackets, ``target`` is the path with the query."""

    is_tls: bool
    host: str
    port: int
    target: str

    @property
    def host_header(self) -> str:
        """The value of the header ``Host``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS["https" if self.is_tls else "http"] else f"{host}:{self.port}"


def endpoint_of(url: str, *, allows_http: bool = False) -> Endpoint:
    """Parse a URL. Raises ``UrlError``."""
    if len(url) > URL_CHARS_MAX or not _CHARACTERS.fullmatch(url):
        raise UrlError("form")
    try:
        parts = urlsplit(url)
    except ValueError:
        # An unbalanced bracket.
        raise UrlError("host") from None
    try:
        port = parts.port
    except ValueError:
        # Not a number up to 65535.
        raise UrlError("port") from None
    if parts.scheme != "https" and not (allows_http and parts.scheme == "http"):
        raise UrlError("scheme")
    if "@" in parts.netloc:
        raise UrlError("person")
    host = (parts.hostname or "").removesuffix(".")
    # Python ignores text before or after the brackets of an address.
    is_malformed = "[" in parts.netloc and not _BRACKETS.fullmatch(parts.netloc)
    if is_malformed or not _HOST.fullmatch(host):
        raise UrlError("host")
    if port == 0:
        raise UrlError("port")
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    return Endpoint(parts.scheme == "https", host, port or _PORTS[parts.scheme], target)
