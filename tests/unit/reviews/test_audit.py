"""The audit log: nothing is left out, and everything can be found."""

import pytest

from consumer.reviews import audit
from consumer.reviews.audit import AuditFilters
from consumer.reviews.database import Connection, Database
from consumer.reviews.paging import BadCursor
from tests.unit.reviews.made import NOW_MS, read

ANYTHING = AuditFilters()


@pytest.fixture
def logged(database: Database) -> Database:
    """A log with some entries, one each second."""
    with database.write_transaction() as connection:
        for number in range(25):
            audit.add_entry(
                connection,
                at_ms=NOW_MS + number * 1_000,
                person="Ann" if number % 2 else "Bob",
                address="127.0.0.1",
                action="flag.wrong" if number % 3 else "flag.right",
                subject=f"article-{number}",
                flag_id=number,
                why="100 % sure" if number == 7 else "Straße",
            )
    return database


def subjects(database: Database, filters: AuditFilters) -> list[int]:
    """The flags of all entries that match, in order."""
    with database.read_connection() as connection:
        return [int(entry.flag_id or 0) for entry in audit.search(connection, filters, None, 1_000).rows]


def test_entries_keep_what_was_said(database: Database) -> None:
    """With nobody signed in as well; what is too long or impossible is cut or replaced, and still there."""
    with database.write_transaction() as connection:
        audit.add_entry(
            connection,
            at_ms=1,
            person="",
            address="::1",
            action="session.refused",
            subject="\0<b>" * 400,
            why="w" * 9_999,
        )
    (entry,) = read(database, audit.search, ANYTHING, None, 9).rows
    assert (entry.at_ms, entry.person, entry.address, entry.action, entry.flag_id) == (
        1,
        "",
        "::1",
        "session.refused",
        None,
    )
    assert entry.subject.startswith("\ufffd<b>")
    assert (len(entry.subject), len(entry.why)) == (600, 2_000)


def test_pages_have_each_entry_once(logged: Database) -> None:
    """The latest first."""
    found, after = [], None
    while True:
        page = read(logged, audit.search, ANYTHING, after, 10)
        found += [entry.flag_id for entry in page.rows]
        after = page.after
        if after is None:
            break
    assert found == list(range(25))[::-1]
    with pytest.raises(BadCursor):
        read(logged, audit.search, ANYTHING, "nowhere", 10)


def test_filters(logged: Database) -> None:
    """By person, action, text within subject and reason, and time; all of them together as well."""
    assert subjects(logged, AuditFilters(person="Ann")) == list(range(1, 25, 2))[::-1]
    assert subjects(logged, AuditFilters(action="flag.right")) == list(range(0, 25, 3))[::-1]
    assert subjects(logged, AuditFilters(text="ARTICLE-2")) == [24, 23, 22, 21, 20, 2]
    assert subjects(logged, AuditFilters(text="0 % s")) == [7]
    assert subjects(logged, AuditFilters(text="_")) == []
    assert subjects(logged, AuditFilters(from_ms=NOW_MS + 3_000, to_ms=NOW_MS + 5_000)) == [4, 3]
    assert subjects(
        logged, AuditFilters(person="Ann", action="flag.right", text="article", from_ms=NOW_MS + 9_000)
    ) == [21, 15, 9]
    assert subjects(logged, AuditFilters(person="\0")) == []


def test_what_fails_is_in_no_log(database: Database) -> None:
    """An entry is of the transaction of what it tells."""

    def fail(connection: Connection) -> None:
        audit.add_entry(connection, at_ms=1, person="Ann", address="", action="x")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        database.write(fail)
    assert read(database, audit.search, ANYTHING, None, 9).rows == ()
