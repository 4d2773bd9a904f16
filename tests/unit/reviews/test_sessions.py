"""Sessions: valid for so long, and for so long without use; the database does not know their secrets."""

from sqlalchemy import select

from consumer.reviews import people, sessions
from consumer.reviews.database import Database
from consumer.reviews.tables import SESSIONS
from tests.unit.reviews.made import NOW_MS, add_person, number_of, read, write

SESSION_MS = 1_000_000
IDLE_MS = 300_000


def begun(database: Database) -> tuple[str, people.Person]:
    """The secret of a new session, and whose it is."""
    person = add_person(database, "Ann", "admin")
    return write(database, sessions.begin_session, person.person_id, NOW_MS, SESSION_MS), person


def person_at(database: Database, secret: str, after_ms: int) -> people.Person | None:
    """Whose session it is so much later."""
    return sessions.person_of(database, secret, NOW_MS + after_ms, IDLE_MS)


def test_a_session_is_somebodys(database: Database) -> None:
    """Of the person who began it, and no other secret is."""
    secret, person = begun(database)
    assert person_at(database, secret, 1) == person
    assert person_at(database, secret + "x", 1) is None
    assert person_at(database, "", 1) is None


def test_what_is_stored_is_no_secret(database: Database) -> None:
    """Whoever reads the database cannot sign in with it."""
    secret, _ = begun(database)
    stored = read(database, lambda c: c.execute(select(SESSIONS.c.token_hash)).scalar_one())
    assert len(stored) == 64
    assert secret not in stored
    assert person_at(database, stored, 1) is None


def test_a_session_ends_where_it_is_not_used(database: Database) -> None:
    """Use prolongs it."""
    secret, person = begun(database)
    assert person_at(database, secret, IDLE_MS - 1) == person
    assert person_at(database, secret, 2 * IDLE_MS - 2) == person
    assert person_at(database, secret, 3 * IDLE_MS - 2) is None


def test_a_session_ends_in_any_case(database: Database) -> None:
    """However much it is used."""
    secret, person = begun(database)
    for after_ms in range(0, SESSION_MS, IDLE_MS // 2):
        assert person_at(database, secret, after_ms) == person
    assert person_at(database, secret, SESSION_MS - 1) == person
    assert person_at(database, secret, SESSION_MS) is None


def test_use_is_noted_once_a_minute(database: Database) -> None:
    """Not every page is a write."""
    secret, _ = begun(database)

    def seen() -> int:
        return int(read(database, lambda c: c.execute(select(SESSIONS.c.seen_ms)).scalar_one()))

    person_at(database, secret, sessions.SEEN_MS - 1)
    assert seen() == NOW_MS
    person_at(database, secret, sessions.SEEN_MS)
    assert seen() == NOW_MS + sessions.SEEN_MS


def test_whoever_is_disabled_has_no_session(database: Database) -> None:
    """At once, and not when it ends; enabling does not bring it back."""
    secret, person = begun(database)
    add_person(database, "Bob", "admin")
    write(database, people.disable, person.person_id, NOW_MS)
    assert person_at(database, secret, 1) is None
    write(database, people.enable, person.person_id)
    assert person_at(database, secret, 1) is None


def test_ending_sessions(database: Database) -> None:
    """One, and those that have ended by themselves."""
    secret, person = begun(database)
    other = write(database, sessions.begin_session, person.person_id, NOW_MS, SESSION_MS)
    write(database, sessions.end_session, secret)
    assert person_at(database, secret, 1) is None
    assert person_at(database, other, 1) == person
    write(database, sessions.end_session, other)
    write(database, sessions.begin_session, person.person_id, NOW_MS, 5)
    kept = write(database, sessions.begin_session, person.person_id, NOW_MS, 6)
    write(database, sessions.sweep, NOW_MS + 5)
    assert number_of(database, SESSIONS) == 1
    assert person_at(database, kept, 5) == person
