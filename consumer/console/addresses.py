"""Who is at the other end: a browser, or a proxy that speaks for one.

Headers that say so count only from the addresses in ``console.proxy_addresses``: anybody can send them.
"""

import ipaddress
from collections.abc import Sequence
from typing import Final

from starlette.requests import Request

from consumer.model.errors import ConfigError

ADDRESS_CHARS_MAX: Final = 64
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Proxies:
    """The proxies that are believed: addresses, or networks such as 10.1.0.0/16. Raises ``ConfigError``."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._networks = [_network(address) for address in addresses]

    def sent(self, request: Request) -> bool:
        """Return whether a request comes from a proxy."""
        return self._has(_parsed(_peer(request)))

    def client(self, request: Request) -> str:
        """Return the address of the client: the last one in X-Forwarded-For that is no proxy, or the peer."""
        peer = _peer(request)
        if not self.sent(request):
            return peer
        forwarded = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
        for entry in reversed(forwarded):
            address = _parsed(entry.strip())
            if address is None:
                break
            if not self._has(address):
                return str(address)
        return peer

    def is_secure(self, request: Request, *, is_tls: bool) -> bool:
        """Return whether the browser is connected over TLS, to this process or to a proxy."""
        if is_tls or not self.sent(request):
            return is_tls
        return request.headers.get("x-forwarded-proto", "").strip().lower() == "https"

    def _has(self, address: _Address | None) -> bool:
        return address is not None and any(address in network for network in self._networks)


def _peer(request: Request) -> str:
    return request.client.host[:ADDRESS_CHARS_MAX] if request.client else ""


def _parsed(text: str) -> _Address | None:
    """Return an address; an IPv4 address within an IPv6 one is the former."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _network(text: str) -> _Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise ConfigError(f"console.proxy_addresses: {text!r} is no address and no network: {error}") from error
