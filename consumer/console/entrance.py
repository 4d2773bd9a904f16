"""Finds out who sends a request: by the session in the cookie, or by the header of a proxy."""

from http import HTTPStatus
from typing import NamedTuple

from starlette.requests import Request

from consumer.console.addresses import Proxies
from consumer.console.context import Desk
from consumer.console.faults import N_, PageError
from consumer.model.errors import ConfigError
from consumer.reviews import audit, people, sessions
from consumer.reviews.database import Connection
from consumer.reviews.people import NAME_CHARS_MAX, Person
from consumer.web.access import is_loopback, parse_address


class Arrival(NamedTuple):
    """What a request says of its sender. ``named`` is what a proxy says, None where no proxy says anything."""

    address: str
    secret: str | None
    named: list[str] | None


class Entrance:
    """Knows people. ``fixed_person`` is who everybody is where nobody has to sign in. Raises ``ConfigError``."""

    def __init__(self, desk: Desk, proxies: Proxies, fixed_person: str | None) -> None:
        if fixed_person is not None and not is_loopback(parse_address(desk.section.listen)):
            raise ConfigError(
                f"console.listen = {desk.section.listen}: where nobody has to sign in, the console listens on "
                "127.0.0.1 only"
            )
        self._desk = desk
        self._proxies = proxies
        self._fixed_person = fixed_person

    def arrival(self, request: Request, secret: str | None) -> Arrival:
        """Return what a request says of its sender; ``secret`` is that of its session."""
        header = self._desk.section.proxy_header
        named = request.headers.getlist(header) if header and self._proxies.sent(request) else []
        return Arrival(self._proxies.client(request), secret, named or None)

    def person(self, arrival: Arrival) -> Person | None:
        """Return who it is, None where nobody is signed in. Raises ``PageError`` for people who may not come in."""
        if self._fixed_person is not None:
            return self._known(self._fixed_person, "admin", arrival.address)
        if arrival.named is not None:
            return self._known(_name(arrival.named), "reviewer", arrival.address)
        if arrival.secret is None:
            return None
        return self._of_session(arrival.secret)

    def _of_session(self, secret: str) -> Person | None:
        now_ms, idle_ms = self._desk.now_ms(), round(self._desk.section.idle_s * 1_000)
        return sessions.person_of(self._desk.database, secret, now_ms, idle_ms)

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
        person = people.ensure_person(connection, name, role, now_ms)
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
    if not name or len(name) > NAME_CHARS_MAX or not name.isprintable():
        message = N_("The proxy in front of this console names nobody, or several people. Ask who runs it.")
        raise PageError(HTTPStatus.FORBIDDEN, message)
    return name
