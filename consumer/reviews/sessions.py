"""Sessions of people who have signed in: the browser has a secret, the database its SHA-256."""

import hashlib
import secrets
from functools import cache
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Select, bindparam, delete, insert, update

from consumer.reviews.database import Database
from consumer.reviews.people import Person, people_columns, person_from_row
from consumer.reviews.tables import PEOPLE, SESSIONS

SEEN_MS: Final = 60_000
"""Resolution of ``Session.seen_ms``, so that not every page causes a write."""
_SECRET_BYTES: Final = 32


class Session(NamedTuple):
    """A valid session. ``seen_ms`` is when it was last used, accurate to ``SEEN_MS``."""

    person: Person
    seen_ms: int


def begin_session(connection: Connection, person_id: int, now_ms: int, session_ms: int) -> str:
    """Begin a session that expires after ``session_ms``, and return its secret, which is not stored."""
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    values = {
        "token_hash": _hash(secret),
        "person_id": person_id,
        "created_ms": now_ms,
        "seen_ms": now_ms,
        "expires_ms": now_ms + session_ms,
    }
    connection.execute(insert(SESSIONS).values(values))
    return secret


def person_of(database: Database, secret: str, now_ms: int, idle_ms: int, *, is_use: bool = True) -> Person | None:
    """Return the person of a session, and record its use. Return None if ``session_of`` finds no valid session.

    Unless ``is_use``, nothing is recorded, so that a page that refreshes itself does not keep a session alive.
    """
    with database.read_connection() as connection:
        session = session_of(connection, secret, now_ms, idle_ms)
    if session is None:
        return None
    if is_use and now_ms - session.seen_ms >= SEEN_MS:
        database.write(lambda c: mark_session_used(c, secret, now_ms))
    return session.person


def session_of(connection: Connection, secret: str, now_ms: int, idle_ms: int) -> Session | None:
    """Return a session. None if it has ended, expired or was unused for ``idle_ms``, or its person is disabled."""
    row = connection.execute(_session_query(), {"token_hash": _hash(secret)}).one_or_none()
    if row is None or now_ms >= row.expires_ms or now_ms - row.seen_ms >= idle_ms:
        return None
    person = person_from_row(row)
    return None if person.disabled else Session(person, row.seen_ms)


@cache
def _session_query() -> Select[*tuple[Any, ...]]:
    """Return the query for a session and its person. Cached, since every request runs it."""
    people_with_sessions = people_columns().join(SESSIONS, SESSIONS.c.person_id == PEOPLE.c.person_id)
    with_session = people_with_sessions.add_columns(SESSIONS.c.seen_ms, SESSIONS.c.expires_ms)
    return with_session.where(SESSIONS.c.token_hash == bindparam("token_hash"))


def mark_session_used(connection: Connection, secret: str, now_ms: int) -> None:
    """Record that a session was used."""
    unused_since = (SESSIONS.c.token_hash == _hash(secret), SESSIONS.c.seen_ms < now_ms)
    connection.execute(update(SESSIONS).where(*unused_since).values(seen_ms=now_ms))


def end_session(connection: Connection, secret: str) -> None:
    """End a session."""
    connection.execute(delete(SESSIONS).where(SESSIONS.c.token_hash == _hash(secret)))


def sweep(connection: Connection, now_ms: int) -> None:
    """Delete sessions that have expired."""
    connection.execute(delete(SESSIONS).where(SESSIONS.c.expires_ms <= now_ms))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
