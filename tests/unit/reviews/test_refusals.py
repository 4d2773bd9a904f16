"""PostgreSQL as others have set it up: other encodings, rights, tables and defaults than the console expects."""

from collections.abc import Callable, Iterator
from typing import Any, LiteralString
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from consumer.model.errors import ConfigError
from consumer.reviews.database import Database, DatabaseUnavailable, open_database
from consumer.reviews.sources import source_ids
from deploy.local.postgres import Postgres
from tests.postgres_server import PostgresDatabase

pytestmark = pytest.mark.servers

Run = Callable[[LiteralString], None]


@pytest.fixture
def run(postgres_database: PostgresDatabase) -> Iterator[Run]:
    """Run statements in the database as its owner."""
    with psycopg.connect(postgres_database.url, password=postgres_database.password, autocommit=True) as connection:

        def run(statement: LiteralString) -> None:
            connection.execute(statement)

        yield run


@pytest.fixture
def weak(postgres_database: PostgresDatabase, run: Run) -> Iterator[str]:
    """The address of the database for a user who may do nothing in it; its password is ``weak``."""
    name: Any = f"weak_{uuid4().hex}"
    run(f"CREATE ROLE {name} LOGIN PASSWORD 'weak'")
    run(f"CREATE SCHEMA closed; ALTER ROLE {name} SET search_path = closed, public")
    yield postgres_database.url.replace("dupwatch@", f"{name}@")
    run(f"DROP OWNED BY {name}; DROP ROLE {name}")


def opened(place: PostgresDatabase, query: str = "") -> Database:
    """Open the database as its owner."""
    return open_database(place.url + query, place.password)


def store_name(database: Database, name: str = "李娜\U0001f600") -> dict[str, int]:
    """Write something, and close the database."""
    try:
        return database.write(lambda connection: source_ids(connection, [name]))
    finally:
        database.close()


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII", "none"])
def test_the_encoding_of_the_environment_does_not_matter(
    postgres_database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    """Texts are sent and read in UTF-8: otherwise one name that Latin-1 lacks would stop the intake for good."""
    monkeypatch.setenv("PGCLIENTENCODING", encoding)
    assert store_name(opened(postgres_database)) == {"李娜\U0001f600": 1}


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_of_another_encoding_is_refused(postgres_server: Postgres, encoding: str) -> None:
    """It could not hold every article's id."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(postgres_server.url("postgres"), password=postgres_server.password, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0".encode())
        try:
            with pytest.raises(ConfigError, match=f"its encoding is {encoding}; create a database with UTF8"):
                open_database(postgres_server.url(name), postgres_server.password)
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_a_user_without_rights_is_told_at_once(postgres_database: PostgresDatabase, run: Run, weak: str) -> None:
    """Whoever may not make tables, or not even read those of another user."""
    with pytest.raises(ConfigError, match=r"permission denied.*all rights on the database"):
        open_database(weak, "weak")
    opened(postgres_database).close()
    with pytest.raises(ConfigError, match=r"permission denied for table.*all rights on the database"):
        open_database(weak, "weak")
    run(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {make_url(weak).username}")
    with pytest.raises(DatabaseUnavailable, match=r"permission denied for table sources: .*all rights"):
        store_name(open_database(weak, "weak"))


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE TABLE flags (x int)", "not those of this version"),
        ("CREATE TABLE alembic_version (x int)", "not those of this version"),
        (
            "CREATE TABLE alembic_version (version_num text); INSERT INTO alembic_version VALUES ('a'), ('b')",
            r"changed it \(to a, b\)",
        ),
        ("DROP SCHEMA public", "search_path"),
    ],
)
def test_tables_of_another_program(
    postgres_database: PostgresDatabase, run: Run, statement: LiteralString, said: str
) -> None:
    """They are left alone, and the message says what to do."""
    run(statement)
    with pytest.raises(ConfigError, match=said):
        opened(postgres_database)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DROP TABLE sources CASCADE", 'relation "sources" does not exist.*not those of this version'),
        ("ALTER TABLE sources RENAME name TO called", "does not exist.*not those of this version"),
    ],
)
def test_tables_that_another_version_changes_meanwhile(
    postgres_database: PostgresDatabase, run: Run, statement: LiteralString, said: str
) -> None:
    """That is no defect of what was asked: it is waited for, and said."""
    database = opened(postgres_database)
    run(statement)
    with pytest.raises(DatabaseUnavailable, match=said):
        store_name(database)


def test_a_database_that_has_become_read_only_is_waited_for(postgres_database: PostgresDatabase, run: Run) -> None:
    """As a primary that others have taken over from; it answers, so it is not said that it does not."""
    opened(postgres_database).close()
    name = postgres_database.url.rpartition("/")[2]
    run(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(DatabaseUnavailable, match="refuses to work: cannot execute INSERT in a read-only transaction"):
        store_name(opened(postgres_database))


def test_whoever_waited_for_a_lock_sees_what_was_done_under_it(postgres_database: PostgresDatabase, run: Run) -> None:
    """Whatever isolation is the default: two admins could disable each other with an older view of the tables."""
    name = postgres_database.url.rpartition("/")[2]
    run(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
    database = opened(postgres_database)
    level = text("SHOW transaction_isolation")
    with database.write_transaction() as connection:
        assert connection.execute(level).scalar() == "read committed"
    with database.read_connection() as connection:
        assert connection.execute(level).scalar() == "read committed"
    database.close()


def test_options_of_the_address_are_added_to_ours(postgres_database: PostgresDatabase, run: Run) -> None:
    """A schema of one's own, and no limit is lost by it."""
    run("CREATE SCHEMA moderation")
    database = opened(postgres_database, f"?application_name=desk&options={quote('-c search_path=moderation')}")
    with database.read_connection() as connection:
        shown = [
            connection.execute(text(f"SHOW {name}")).scalar()
            for name in ("search_path", "lock_timeout", "statement_timeout", "application_name")
        ]
        found = connection.execute(text("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")).scalar()
    database.close()
    assert shown == ["moderation", "5s", "30s", "desk"]
    assert found == 0
