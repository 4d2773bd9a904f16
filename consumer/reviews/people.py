"""People, their passwords and their roles."""

from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import Connection, Row, Select, delete, func, insert, select, update

from consumer.model.errors import DupwatchError
from consumer.model.verdict import RELEASED_BY_CHARS_MAX
from consumer.reviews import passwords
from consumer.reviews.portable import Lock, acquire_lock, is_storable
from consumer.reviews.standing.standing_decisions import end_all_of
from consumer.reviews.tables import PEOPLE, SESSIONS
from consumer.text.names import name_key

Role = Literal["reviewer", "admin"]

NAME_CHARS_MAX: Final = RELEASED_BY_CHARS_MAX
"""A release carries the person's name, so both have the same limit."""


@dataclass(frozen=True, slots=True)
class Person:
    """A person who may sign in, unless disabled."""

    person_id: int
    name: str
    role: Role
    # "en" or "zh"; None if the person has not chosen one.
    language: str | None
    disabled: bool
    # Without a password, a person can only sign in through a proxy.
    has_password: bool = False


class PersonError(DupwatchError):
    """A person cannot be added or changed. The message says why."""


class NameTaken(PersonError):  # noqa: N818  # named for the name
    """Another person has this name, or one with the same ``name_key``."""


class LastAdmin(PersonError):  # noqa: N818  # named for the person
    """Without this person, nobody could manage people."""


class UnknownPerson(PersonError):  # noqa: N818  # named for the person
    """Nobody has this number or name."""


def add_person(connection: Connection, name: str, role: Role, now_ms: int, *, password: str | None = None) -> Person:
    """Add a person. Raises ``PersonError`` for an invalid name or one that is taken."""
    acquire_lock(connection, Lock.PEOPLE)
    if not name or len(name) > NAME_CHARS_MAX or not is_storable(name):
        raise PersonError(f"a name must have 1 to {NAME_CHARS_MAX} characters of valid UTF-8, without NUL")
    key = name_key(name)
    for other in connection.execute(select(PEOPLE.c.name)).scalars():
        if name_key(other) == key:
            raise NameTaken(f"a person named {other} already exists; choose another name")
    values = {
        "name": name,
        "role": role,
        "created_ms": now_ms,
        "password_hash": None if password is None else passwords.hash_of(password),
    }
    person_id = connection.execute(insert(PEOPLE).values(values).returning(PEOPLE.c.person_id)).scalar_one()
    return Person(person_id, name, role, None, disabled=False, has_password=password is not None)


def ensure_person(connection: Connection, name: str, role: Role, now_ms: int) -> Person:
    """Return the person with this name, identified without a password. A new person is added with this role.

    Raises ``PersonError`` for an invalid name, and ``NameTaken`` if another name has the same ``name_key``.
    """
    acquire_lock(connection, Lock.PEOPLE)
    return person_named(connection, name) or add_person(connection, name, role, now_ms)


def people(connection: Connection) -> list[Person]:
    """Return everybody, sorted by name."""
    return [person_from_row(row) for row in connection.execute(people_columns().order_by(PEOPLE.c.name))]


def person_named(connection: Connection, name: str) -> Person | None:
    """Return the person with this name, or None."""
    if not is_storable(name):
        return None
    row = connection.execute(people_columns().where(PEOPLE.c.name == name)).one_or_none()
    return None if row is None else person_from_row(row)


def person_numbered(connection: Connection, person_id: int) -> Person | None:
    """Return the person with this number, or None."""
    row = connection.execute(people_columns().where(PEOPLE.c.person_id == person_id)).one_or_none()
    return None if row is None else person_from_row(row)


def person_with_password(connection: Connection, name: str, password: str) -> Person | None:
    """Return the person with this name and password; None if there is no such person, or the account is disabled.

    This takes the same time whether or not the name exists.
    """
    person = person_named(connection, name)
    query = select(PEOPLE.c.password_hash).where(PEOPLE.c.person_id == (person.person_id if person else -1))
    is_right = passwords.matches(connection.execute(query).scalar(), password)
    return person if is_right and person is not None and not person.disabled else None


def set_password(connection: Connection, person_id: int, password: str) -> None:
    """Set a person's password, and end their sessions. Raises ``UnknownPerson``."""
    _change(connection, person_id, password_hash=passwords.hash_of(password))
    connection.execute(delete(SESSIONS).where(SESSIONS.c.person_id == person_id))


def renew_hash(connection: Connection, person_id: int, password: str) -> None:
    """Store a new hash of a just-verified password if the stored hash has outdated parameters."""
    known = connection.execute(select(PEOPLE.c.password_hash).where(PEOPLE.c.person_id == person_id)).scalar()
    if known is not None and passwords.is_outdated(known):
        _change(connection, person_id, password_hash=passwords.hash_of(password))


def set_language(connection: Connection, person_id: int, language: str | None) -> None:
    """Set a person's language. Raises ``UnknownPerson``."""
    _change(connection, person_id, language=language)


def set_role(connection: Connection, person_id: int, role: Role) -> None:
    """Set a person's role. Raises ``LastAdmin`` and ``UnknownPerson``."""
    if role != "admin":
        _check_other_admins(connection, person_id)
    _change(connection, person_id, role=role)


def disable(connection: Connection, person_id: int, now_ms: int) -> None:
    """Disable an account, and end the person's sessions and standing decisions.

    Raises ``LastAdmin`` and ``UnknownPerson``.
    """
    _check_other_admins(connection, person_id)
    _change(connection, person_id, disabled_ms=now_ms)
    end_all_of(connection, person_id, now_ms)
    connection.execute(delete(SESSIONS).where(SESSIONS.c.person_id == person_id))


def enable(connection: Connection, person_id: int) -> None:
    """Enable an account again. Raises ``UnknownPerson``."""
    _change(connection, person_id, disabled_ms=None)


def people_columns() -> Select[*tuple[Any, ...]]:
    """Return the query for people with the columns that ``person_from_row`` needs."""
    return select(
        PEOPLE.c.person_id,
        PEOPLE.c.name,
        PEOPLE.c.role,
        PEOPLE.c.language,
        PEOPLE.c.disabled_ms,
        PEOPLE.c.password_hash,
    )


def person_from_row(row: Row[*tuple[Any, ...]]) -> Person:
    """Return the person in a row of the query ``people_columns``."""
    return Person(
        row.person_id, row.name, row.role, row.language, row.disabled_ms is not None, row.password_hash is not None
    )


def _change(connection: Connection, person_id: int, **values: object) -> None:
    changed = connection.execute(update(PEOPLE).where(PEOPLE.c.person_id == person_id).values(**values))
    if not changed.rowcount:
        raise UnknownPerson(f"no person has the number {person_id}")


def _check_other_admins(connection: Connection, person_id: int) -> None:
    """Raise ``LastAdmin`` if this person is the only enabled admin."""
    # Without the lock, two admins could disable each other at the same time.
    acquire_lock(connection, Lock.PEOPLE)
    admins = (PEOPLE.c.role == "admin", PEOPLE.c.disabled_ms.is_(None))
    is_admin = connection.execute(select(PEOPLE.c.name).where(PEOPLE.c.person_id == person_id, *admins)).scalar()
    others = select(func.count()).select_from(PEOPLE).where(PEOPLE.c.person_id != person_id, *admins)
    if is_admin is not None and not connection.execute(others).scalar_one():
        raise LastAdmin(f"{is_admin} is the last admin; make somebody else an admin first")
