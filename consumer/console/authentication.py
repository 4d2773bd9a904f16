"""Finds out who sends a request: by the session in the cookie, or by the header of a proxy.

Headers that say so count only from the addresses in ``console.proxy_addresses``: anybody can send them.
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


class RequestSender(NamedTuple):
    """The sender that a request names. ``named`` has the names that a proxy sent, None without such a header."""

    address: str
    secret: str | None
    named: list[str] | None


class SessionAuthentication:
    """Knows people. ``fixed_person`` is who everybody is where nobody has to sign in. Raises ``ConfigError``."""

    def __init__(self, desk: ConsoleContext, proxies: Proxies, fixed_person: str | None) -> None:
        if fixed_person is not None and not is_loopback(parse_address(desk.section.listen)):
            raise ConfigError(
                f"console.listen = {desk.section.listen}: where nobody has to sign in, the console listens on "
                "127.0.0.1 only"
            )
        self._desk = desk
        self._proxies = proxies
        self._fixed_person = fixed_person

    def arrival(self, request: Request, secret: str | None) -> RequestSender:
        """Return what a request says of its sender; ``secret`` is that of its session."""
        header = self._desk.section.proxy_header
        named = request.headers.getlist(header) if header and self._proxies.sent(request) else []
        return RequestSender(self._proxies.client(request), secret, named or None)

    def person(self, arrival: RequestSender, *, is_use: bool = True) -> Person | None:
        """Return who it is, None where nobody is signed in. Raises ``PageError`` for people who may not come in.

        Unless ``is_use``, the session is not kept alive.
        """
        if self._fixed_person is not None:
            return self._known(self._fixed_person, "admin", arrival.address)
        if arrival.named is not None:
            return self._known(_name(arrival.named), "reviewer", arrival.address)
        if arrival.secret is None:
            return None
        idle_ms = round(self._desk.section.idle_s * 1_000)
        return sessions.person_of(self._desk.database, arrival.secret, self._desk.now_ms(), idle_ms, is_use=is_use)

    def _known(self, name: str, role: people.Role, address: str) -> Person:
        """Return a person who needs no password; one who has not been here before is added."""
        with self._desk.database.reading() as connection:
            person = people.person_named(connection, name)
        if person is None:
            person = self._desk.database.written(lambda c: self._added(c, name, role, address))
        if person.disabled:
            message = N_("The account %(name)s is disabled. Ask an admin of this console.")
            raise PageError(HTTPStatus.FORBIDDEN, message, name=name)
        return person

    def _added(self, connection: Connection, name: str, role: people.Role, address: str) -> Person:
        now_ms = self._desk.now_ms()
        try:
            person = people.ensure_person(connection, name, role, now_ms)
        except people.NameTaken as error:
            message = N_(
                "There is another account whose name differs from %(name)s only in case. Ask whoever runs the proxy in "
                "front of this console to send one spelling."
            )
            raise PageError(HTTPStatus.FORBIDDEN, message, name=name) from error
        audit.note(
            connection, at_ms=now_ms, person=name, address=address, action="person.first_seen", subject=name, why=role
        )
        return person


def _name(sent: list[str]) -> str:
    """Return the name that a proxy sent. Raises ``PageError`` where there are several, or it is none."""
    try:
        # Headers arrive as Latin-1, whatever they are.
        name = sent[0].encode("latin-1").decode().strip() if len(sent) == 1 else ""
    except UnicodeError:
        name = ""
    if len(name) > NAME_CHARS_MAX or not is_name(name):
        message = N_("The proxy in front of this console names nobody, or several people. Ask whoever runs it.")
        raise PageError(HTTPStatus.FORBIDDEN, message)
    return name
