"""Identifies the sender of a request by the session cookie or by a proxy's header.

Anybody can send such a header, so it is ignored unless it comes from an address in ``console.proxy_addresses``.
"""

import ipaddress
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.requests import Request

from consumer.console.context import ConsoleContext
from consumer.console.faults import N_, PageError
from consumer.model.errors import ConfigError
from consumer.reviews import audit, people, sessions
from consumer.reviews.database import Connection
from consumer.reviews.people import NAME_CHARS_MAX, Person
from consumer.text.names import is_name
from consumer.web.access import is_loopback, parse_address

ADDRESS_CHARS_MAX: Final = 64
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Proxies:
    """The trusted proxies: addresses, or networks such as 10.1.0.0/16. Raises ``ConfigError`` for anything else."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._networks = [_network(address) for address in addresses]

    def is_from_proxy(self, request: Request) -> bool:
        """Return whether a request comes from a trusted proxy."""
        return self._contains(_parse_address(_peer(request)))

    def client(self, request: Request) -> str:
        """Return the address of the client: the peer, unless the peer is a trusted proxy that reports another address.

        A proxy reports the client as the last address in ``X-Forwarded-For`` that is not a trusted proxy.
        """
        peer = _peer(request)
        if not self.is_from_proxy(request):
            return peer
        forwarded = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
        for entry in reversed(forwarded):
            address = _parse_address(entry.strip())
            if address is None:
                break
            if not self._contains(address):
                return str(address)
        return peer

    def is_secure(self, request: Request, *, is_tls: bool) -> bool:
        """Return whether the browser is connected over TLS, to this process or to a proxy."""
        if is_tls or not self.is_from_proxy(request):
            return is_tls
        return request.headers.get("x-forwarded-proto", "").strip().lower() == "https"

    def _contains(self, address: _Address | None) -> bool:
        return address is not None and any(address in network for network in self._networks)


def _peer(request: Request) -> str:
    return request.client.host[:ADDRESS_CHARS_MAX] if request.client else ""


def _parse_address(text: str) -> _Address | None:
    """Return an address, or None if it is invalid. An IPv4-mapped IPv6 address becomes the IPv4 address."""
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
        raise ConfigError(f"console.proxy_addresses: {text!r} is neither an address nor a network: {error}") from error


class RequestSender(NamedTuple):
    """The sender of a request. ``names`` has the names that a trusted proxy sent, or is None if it sent none."""

    address: str
    secret: str | None
    names: list[str] | None


class SessionAuthentication:
    """Authentication by session or proxy. With ``fixed_person``, everybody is that person.

    Raises ``ConfigError`` if there is a fixed person and the console does not listen on a loopback address.
    """

    def __init__(self, context: ConsoleContext, proxies: Proxies, fixed_person: str | None) -> None:
        if fixed_person is not None and not is_loopback(parse_address(context.section.listen)):
            raise ConfigError(
                f"console.listen = {context.section.listen}: a console without sign-in must listen on a loopback "
                "address, such as 127.0.0.1"
            )
        self._context = context
        self._proxies = proxies
        self._fixed_person = fixed_person

    def sender(self, request: Request, secret: str | None) -> RequestSender:
        """Return the sender of a request; ``secret`` is the secret of its session."""
        header = self._context.section.proxy_header
        names = request.headers.getlist(header) if header and self._proxies.is_from_proxy(request) else []
        return RequestSender(self._proxies.client(request), secret, names or None)

    def person(self, sender: RequestSender, *, is_use: bool = True) -> Person | None:
        """Return the person, or None if nobody is signed in. With ``is_use``, the request keeps the session alive.

        Raises ``PageError`` if a proxy sent several names or an invalid one. Also raises it if the name from a proxy,
        or of the fixed person, has the ``name_key`` of another name, or if its account is disabled. Raises
        ``DatabaseUnavailable``.
        """
        if self._fixed_person is not None:
            return self._trusted_person(self._fixed_person, "admin", sender.address)
        if sender.names is not None:
            return self._trusted_person(_proxied_name(sender.names), "reviewer", sender.address)
        if sender.secret is None:
            return None
        idle_ms = round(self._context.section.idle_s * 1_000)
        return sessions.person_of(self._context.database, sender.secret, self._context.now_ms(), idle_ms, is_use=is_use)

    def _trusted_person(self, name: str, role: people.Role, address: str) -> Person:
        """Return the person with this name, who needs no password, and add an account for a new name.

        Raises ``PageError`` if the account is disabled, or if another name has the same ``name_key``.
        """
        with self._context.database.read_connection() as connection:
            person = people.person_named(connection, name)
        if person is None:
            person = self._context.database.write(lambda c: self._add_person(c, name, role, address))
        if person.disabled:
            message = N_("The account %(name)s is disabled. Ask an admin of this console.")
            raise PageError(HTTPStatus.FORBIDDEN, message, name=name)
        return person

    def _add_person(self, connection: Connection, name: str, role: people.Role, address: str) -> Person:
        now_ms = self._context.now_ms()
        try:
            person = people.ensure_person(connection, name, role, now_ms)
        except people.NameTaken as error:
            message = N_(
                "The name of another account differs from %(name)s only in case, width or invisible characters. Ask "
                "whoever runs the proxy in front of this console to send one spelling."
            )
            raise PageError(HTTPStatus.FORBIDDEN, message, name=name) from error
        audit.add_entry(
            connection, at_ms=now_ms, person=name, address=address, action="person.first_seen", subject=name, why=role
        )
        return person


def _proxied_name(names: list[str]) -> str:
    """Return the name that a proxy sent. Raises ``PageError`` unless there is exactly one valid name."""
    try:
        # Starlette decodes headers as Latin-1, whatever their encoding.
        name = names[0].encode("latin-1").decode().strip() if len(names) == 1 else ""
    except UnicodeError:
        name = ""
    if len(name) > NAME_CHARS_MAX or not is_name(name):
        message = N_(
            "The proxy in front of this console did not send exactly one valid name. Ask whoever runs the proxy."
        )
        raise PageError(HTTPStatus.FORBIDDEN, message)
    return name
