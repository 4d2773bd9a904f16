"""The database itself: how it is opened, how transactions get along, and what happens when it is away."""

import re
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, insert, select, text, update
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import IntegrityError

from consumer.model.errors import ConfigError
from consumer.reviews import database as database_module
from consumer.reviews import idle_connections, queue
from consumer.reviews.database import Database, DatabaseUnavailable, open_database
from consumer.reviews.discussion import history
from consumer.reviews.flag_row import STATES, tally
from consumer.reviews.kinds.rules import KINDS
from consumer.reviews.moderation.reasons import add_reason
from consumer.reviews.pairs import reports
from consumer.reviews.portable import Lock, acquire_lock
from consumer.reviews.read_files import FileMark, marks_of, move_marks
from consumer.reviews.tables import METADATA, NOTES, REVIEWS, SOURCES, TALLY
from consumer.text.install_advice import install_command
from deploy.local.postgres import Postgres
from storage.backoff import Backoff
from tests.postgres_server import PostgresDatabase
from tests.unit.reviews.made import Address, at_once, check_counts, number_of, read, rows_of, write

RACES = 12


def source_names(database: Database) -> list[str]:
    """What a test has stored."""
    return read(database, lambda c: list(c.execute(select(SOURCES.c.name).order_by(SOURCES.c.source_id)).scalars()))


def test_migrations_make_the_tables(database: Database) -> None:
    """What the newest migration leaves is what the code expects, on both databases."""
    with database.read_connection() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, METADATA) == []
        indexes = {index.name for table in METADATA.sorted_tables for index in table.indexes}
        names = (
            "SELECT name FROM sqlite_master"
            if connection.dialect.name == "sqlite"
            else "SELECT indexname FROM pg_indexes"
        )
        assert indexes <= set(connection.execute(text(names)).scalars())
    assert number_of(database, TALLY) == len(KINDS) * len(STATES)


def test_opening_again_changes_nothing(address: Address, database: Database) -> None:
    """What is stored is there."""
    with database.write_transaction() as connection:
        connection.execute(insert(SOURCES).values(name="kept"))
    open_database(*address).close()
    assert source_names(database) == ["kept"]


EARLIER = (
    "INSERT INTO people (person_id, name, role, created_ms) VALUES (1, 'Ann', 'reviewer', 1)",
    "INSERT INTO stories (story_id, root_id, copies, open_copies, first_ms, last_ms) VALUES (1, 'o', 0, 0, 1, 1)",
    (
        "INSERT INTO flags (flag_id, kind, article_id, version, original_id, original_version, story_id, certainty, "
        "truncated, arrived_ms, decided_ms, state) "
        "VALUES (1, 'flag', 'a', 'aa', 'o', 'aa', 1, 0.9, false, 1, 1, 'wrong')"
    ),
    "INSERT INTO reviews (flag_id, person_id, decision, note, at_ms, final_ms) VALUES (1, 1, 'wrong', 'Why.', 1, 1)",
)
"""What a database with the first tables may hold."""


def migrated_to(revision: str, connection: Connection, _: str) -> None:
    """Make the tables of an earlier version."""
    settings = Config()
    settings.set_main_option("script_location", str(database_module._MIGRATIONS))
    settings.attributes["connection"] = connection
    command.upgrade(settings, revision)


def earlier_database(address: Address, monkeypatch: pytest.MonkeyPatch, revision: str) -> Database:
    """Return a database of an earlier version, with what was decided then."""
    with monkeypatch.context() as patch:
        patch.setattr(database_module, "migrate", partial(migrated_to, revision))
        earlier = open_database(*address)
    with earlier.write_transaction() as connection:
        for statement in EARLIER:
            connection.execute(text(statement))
    return earlier


def test_a_database_of_an_earlier_version_goes_on(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what was decided then; what has come since can be used."""
    earlier_database(address, monkeypatch, "0002").close()
    database = open_database(*address)
    (said,) = read(database, history, 1)
    assert (said.decision, said.text, said.reason) == ("wrong", "Why.", None)
    reason = write(database, add_reason, "Timetable")
    with database.write_transaction() as connection:
        connection.execute(update(REVIEWS).values(reason_id=reason.reason_id))
    assert [each.reason for each in read(database, history, 1)] == ["Timetable"]
    with pytest.raises(IntegrityError), database.write_transaction() as connection:
        connection.execute(update(REVIEWS).values(reason_id=4711))
    marks = (FileMark(1, 7, "ab"),)
    assert write(database, move_marks, "file", (), marks)
    assert read(database, marks_of, "file") == marks
    assert read(database, reports.latest_reports, 1) == []
    database.close()


def test_a_database_without_the_later_kinds_goes_on(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its flags stay, every kind of today can be stored, and no other; connections that were open see that, too."""
    earlier = earlier_database(address, monkeypatch, "0006")
    with earlier.write_transaction() as connection:
        connection.execute(text("UPDATE tally SET flags = 1 WHERE kind = 'flag' AND state = 'wrong'"))
    database = open_database(*address)
    assert rows_of(earlier)["a"].state == "wrong"
    of_kind = EARLIER[2].replace("VALUES (1, 'flag', 'a'", "VALUES (:number, :kind, 'b'")
    for opened, kinds in ((earlier, KINDS[:2]), (database, KINDS[2:])):
        for kind in kinds:
            with opened.write_transaction() as connection:
                connection.execute(text(of_kind), {"number": 10 + KINDS.index(kind), "kind": kind})
    for opened in (earlier, database):
        with pytest.raises(IntegrityError), opened.write_transaction() as connection:
            connection.execute(text(of_kind), {"number": 99, "kind": "other"})
    assert [row.kind for row in read(database, queue.flags, range(100))] == ["flag", *KINDS]
    assert read(database, tally)["flag", "wrong"] == 1
    assert number_of(database, TALLY) == len(KINDS) * len(STATES)
    with database.read_connection() as connection:
        if connection.dialect.name == "sqlite":
            assert connection.execute(text("PRAGMA integrity_check")).scalar_one() == "ok"
            assert connection.execute(text("PRAGMA foreign_key_check")).all() == []
    earlier.close()
    database.close()


def test_processes_that_open_a_new_database_at_once(address: Address) -> None:
    """One makes the tables, and the others wait for it."""
    for opened in at_once([lambda: open_database(*address)] * 6):
        assert number_of(opened, TALLY) == len(KINDS) * len(STATES)
        opened.close()


def test_a_newer_database_is_refused(address: Address, database: Database) -> None:
    """An older version would spoil it."""
    with database.write_transaction() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ConfigError, match="a newer dupwatch has changed it"):
        open_database(*address)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense", "is not the URL"),
        ("mysql://localhost/x", "is not supported"),
        ("sqlite://", "is not supported"),
        ("sqlite:///:memory:", "is not supported"),
        ("sqlite:///x.db?mode=ro", "is not supported"),
        ("sqlite:////nowhere/at/all.db", "cannot be opened"),
        ("postgresql://me@localhost", "is not supported"),
        ("postgresql://me:secret@localhost/x", "console.password_file"),
        ("postgresql://me@localhost/x?password=secret", "console.password_file"),
        ("postgresql://me@localhost/x?sslpassword=secret", "console.password_file"),
        # Others than PostgreSQL's would be arguments of the driver.
        ("postgresql://me@localhost/x?autocommit=1", "'autocommit' after the question mark"),
        ("postgresql://me@localhost/x?connect_timeout=soon", "bad value for connect_timeout"),
        # The client would ask for the database x, at its default port.
        ("postgresql://me@localhost:1/x%00y", "is not the URL"),
        ("postgresql://me@localhost/x\udcff", "is not the URL"),
    ],
)
def test_addresses_that_are_none(url: str, said: str) -> None:
    """Each is refused with what to write."""
    with pytest.raises(ConfigError, match=said) as refused:
        open_database(url)
    assert "secret" not in str(refused.value)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """It is said, and the file stays as it is."""
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 1_000)
    with pytest.raises(ConfigError, match="is not a SQLite database"):
        open_database(f"sqlite:///{path}")
    assert path.read_text().startswith("Dear reader")


def test_a_new_file_is_its_owners(tmp_path: Path) -> None:
    """Others of the machine do not read it."""
    open_database(f"sqlite:///{tmp_path / 'console.db'}").close()
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_the_package_for_postgresql(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said how to install it."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError, match=re.escape(install_command("console-postgresql"))):
        open_database("postgresql://me@127.0.0.1/x")


def test_what_an_error_leaves_was_never_written(database: Database) -> None:
    """A transaction is all or nothing."""

    def fail(connection: Connection) -> None:
        connection.execute(insert(SOURCES).values(name="lost"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        database.write(fail)
    assert source_names(database) == []


def test_defects_are_not_taken_for_a_database_that_is_away(database: Database) -> None:
    """They are tracebacks. Rows that belong to others are not made without them."""
    with pytest.raises(IntegrityError), database.write_transaction() as connection:
        connection.execute(insert(NOTES).values(flag_id=1, person_id=1, at_ms=1, text="of nothing"))


def test_errors_tell_no_secrets(database: Database) -> None:
    """They are logged, and what a statement writes may be what a webhook signs with."""
    with pytest.raises(IntegrityError) as defect, database.write_transaction() as connection:
        connection.execute(insert(NOTES).values(flag_id=1, person_id=1, at_ms=1, text="whsec_x"))
    assert "INSERT INTO notes" in str(defect.value)
    assert "whsec_x" not in str(defect.value)


def test_a_reader_sees_what_was_when_it_began_and_waits_for_nobody(database: Database, second: Database) -> None:
    """While another writes, also at length."""
    with second.write_transaction() as writing:
        writing.execute(insert(SOURCES).values(name="new"))
        assert source_names(database) == []
    assert source_names(database) == ["new"]


def test_whoever_reads_first_can_still_write(database: Database, second: Database) -> None:
    """Both read a number and write the next one: none is lost, and nobody gets an error."""

    def count(each: Database) -> None:
        def next_one(connection: Connection) -> None:
            acquire_lock(connection, Lock.FLAGS)
            known = connection.execute(
                select(TALLY.c.flags).where(TALLY.c.kind == "flag", TALLY.c.state == "open")
            ).scalar_one()
            connection.execute(update(TALLY).values(flags=known + 1))

        for _ in range(RACES):
            each.write(next_one)

    at_once([partial(count, each) for each in (database, second, database, second)])
    assert read(database, lambda c: c.execute(select(TALLY.c.flags).limit(1)).scalar_one()) == 4 * RACES


def test_a_transaction_that_began_with_reading_can_still_write(database: Database, second: Database) -> None:
    """Though another one wanted to write meanwhile: on SQLite that one waits from its beginning."""
    names = select(SOURCES.c.name)
    with database.write_transaction() as connection:
        assert connection.execute(names).all() == []
        other = threading.Thread(target=_store, args=(second, "second"))
        other.start()
        other.join(0.3)
        connection.execute(insert(SOURCES).values(name="first"))
    other.join(60)
    assert sorted(source_names(database)) == ["first", "second"]


def _store(database: Database, name: str) -> None:
    with database.write_transaction() as connection:
        connection.execute(insert(SOURCES).values(name=name))


def test_a_conflict_is_tried_again(database: Database, hasty: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another transaction holds what this one needs, for longer than a statement waits."""
    # However long the other transaction takes on a busy machine.
    monkeypatch.setattr(database_module, "ATTEMPTS_MAX", 10_000)
    tried = threading.Event()

    def work(connection: Connection) -> int:
        tried.set()
        connection.execute(update(TALLY).values(flags=5))
        return 7

    found: list[int] = []
    with database.write_transaction() as connection:
        connection.execute(update(TALLY).values(flags=1))
        thread = threading.Thread(target=lambda: found.append(hasty.write(work)))
        thread.start()
        # Until its first attempt has failed, where it begins at all before that.
        tried.wait(0.3)
        thread.join(0.3)
        assert found == []
    thread.join(60)
    assert found == [7]


def test_a_conflict_that_stays_ends(database: Database, hasty: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many attempts the database counts as away, and nothing was written."""
    monkeypatch.setattr(database_module, "_PAUSES", Backoff(0.001, 0.001))
    with database.write_transaction() as connection:
        connection.execute(update(TALLY).values(flags=1))
        with pytest.raises(DatabaseUnavailable):
            hasty.write(lambda c: c.execute(update(TALLY).values(flags=2)))
    assert read(database, lambda c: c.execute(select(TALLY.c.flags).limit(1)).scalar_one()) == 1


@pytest.fixture
def hasty(address: Address, database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """The same database as another process has it, which waits for others for a moment only."""
    monkeypatch.setattr(database_module, "WAIT_MS", 50)
    opened = open_database(*address)
    yield opened
    opened.close()


def test_more_threads_than_connections_wait_for_one(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none is given back in time, the database counts as away."""
    monkeypatch.setattr(database_module, "CONNECTIONS_MAX", 1)
    monkeypatch.setattr(database_module, "_POOL_S", 0.05)
    database = open_database(*address)
    with database.read_connection(), pytest.raises(DatabaseUnavailable, match="in use"), database.read_connection():
        pass
    database.check()
    database.close()


def test_check_tells_whether_it_answers(database: Database) -> None:
    """While it does, it returns."""
    database.check()


def test_a_locked_file_is_away_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program has it for itself."""
    path = tmp_path / "console.db"
    monkeypatch.setattr(database_module, "WAIT_MS", 50)
    database = open_database(f"sqlite:///{path}")
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseUnavailable, match="locked"), database.write_transaction():
            pass
        other.execute("ROLLBACK")
    with database.write_transaction() as connection:
        connection.execute(insert(SOURCES).values(name="again"))
    assert source_names(database) == ["again"]
    database.close()


@pytest.mark.servers
def test_a_server_that_is_killed_is_away_and_comes_back(own_postgres: Callable[..., Postgres]) -> None:
    """Connections that died with it are replaced, and nobody notices."""
    server = own_postgres()
    database = open_database(server.url("postgres"), server.password)
    with database.write_transaction() as connection:
        connection.execute(insert(SOURCES).values(name="before"))

    def killed_meanwhile(connection: Connection) -> None:
        connection.execute(insert(SOURCES).values(name="lost"))
        server.kill9()
        connection.execute(insert(SOURCES).values(name="lost as well"))

    with pytest.raises(DatabaseUnavailable):
        database.write(killed_meanwhile)
    for call in (database.check, lambda: database.write(lambda c: c.execute(select(1)))):
        with pytest.raises(DatabaseUnavailable):
            call()
    with pytest.raises(DatabaseUnavailable):
        open_database(server.url("postgres"), server.password)
    server.start()
    assert source_names(database) == ["before"]
    server.kill9()
    server.start()
    assert source_names(database) == ["before"]
    database.close()


@pytest.mark.servers
def test_connections_that_died_while_idle_are_replaced(
    postgres_database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A moment after their last use, without asking the server each time."""
    database, other = (open_database(*postgres_database) for _ in range(2))
    dialect, pings = database._engine.dialect, []
    ping = dialect.do_ping

    def counted(connection: DBAPIConnection) -> bool:
        pings.append(connection)
        return ping(connection)

    monkeypatch.setattr(dialect, "do_ping", counted)
    for _ in range(3):
        database.check()
    assert pings == []
    # Without backends of the server itself, such as autovacuum.
    others = "datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    with other.read_connection() as connection:
        ended = connection.execute(
            text(f"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE {others}")
        )
        assert ended.scalars().all() == [True]
    database.check()
    assert len(pings) == 1
    monkeypatch.setattr(idle_connections, "PING_S", -1.0)
    database.check()
    assert len(pings) == 2
    database.close()
    other.close()


@pytest.mark.servers
def test_what_is_read_often_is_prepared(postgres_database: PostgresDatabase) -> None:
    """So that the server does not plan it again each time."""
    database = open_database(*postgres_database)
    for _ in range(9):
        source_names(database)
    with database.read_connection() as connection:
        prepared = connection.execute(text("SELECT statement FROM pg_prepared_statements")).scalars().all()
    assert any("FROM sources" in each for each in prepared)
    database.close()


_KILLED = """
import sys
from consumer.reviews.database import open_database
from consumer.reviews.flag_events import add_events
from tests.unit.reviews.made import flagged, released
database = open_database(*(word or None for word in sys.argv[1:3]))
for number in range(int(sys.argv[3]), 100_000):
    flags = [flagged(f"{number}-{n}", f"{number - 1}-{n}" if number % 5 else f"root-{n}") for n in range(20)]
    events = [*flags, *map(released, flags[::7])]
    database.write(lambda connection: add_events(connection, events))
    print(number, flush=True)
"""


@pytest.mark.parametrize("kills", [2, pytest.param(12, marks=pytest.mark.load)])
def test_killed_at_any_moment_nothing_that_was_acknowledged_is_lost(
    address: Address, database: Database, kills: int
) -> None:
    """Each batch is there as a whole or not at all, and counts are right, after each of the kills."""
    acknowledged = -1
    for kill in range(kills):
        command = [sys.executable, "-c", _KILLED, address.url, address.password or "", str(acknowledged + 1)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(3 + kill):
                acknowledged = int(process.stdout.readline())
            process.kill()
            acknowledged = max([acknowledged, *map(int, process.stdout.read().split())])
        rows = rows_of(database)
        batches = {int(name.partition("-")[0]) for name in rows}
        # The last one may have been committed and not acknowledged.
        assert batches in (set(range(acknowledged + 1)), set(range(acknowledged + 2)))
        assert len(rows) == 20 * len(batches)
        check_counts(database)
