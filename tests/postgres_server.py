"""A real PostgreSQL for tests: shared by the run as in hbase_server.py, with a database for each test."""

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from uuid import uuid4

import psycopg
import pytest

from deploy.local.ports import free_ports
from deploy.local.postgres import Postgres
from deploy.local.process import Process
from tests.hbase_server import (
    OWNER_VARIABLE,
    server_state,
    servers_folder,
    servers_locked,
    servers_or_skip,
    write_server_state,
)

_NAME: Final = "postgres"
_TABLES: Final = "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"
_SHAPE: Final = """
    SELECT 'table', relname, relkind::text, relacl::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT 'column', attrelid::regclass::text, attname, concat_ws(' ', attnum, atttypid::regtype, attnotnull)
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace = 'public'::regnamespace AND attnum > 0
    UNION ALL SELECT 'index', indexrelid::regclass::text, pg_get_indexdef(indexrelid), ''
        FROM pg_index JOIN pg_class ON pg_class.oid = indrelid WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT 'constraint', conname, pg_get_constraintdef(oid), ''
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT 'default', adrelid::regclass::text, adnum::text, pg_get_expr(adbin, adrelid) FROM pg_attrdef
    UNION ALL SELECT 'trigger', tgrelid::regclass::text, tgname, '' FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT 'function', proname, '', '' FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT 'schema', nspname, nspacl::text, '' FROM pg_namespace WHERE nspname !~ '^pg_'
    UNION ALL SELECT 'setting', setrole::text, setconfig::text, ''
        FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase WHERE datname = current_database()
    ORDER BY 1, 2, 3, 4"""
"""Everything that a test could change about a database, except rows and sequences."""
_SEQUENCES: Final = "SELECT quote_ident(sequencename), last_value FROM pg_sequences WHERE schemaname = 'public'"
_OTHERS: Final = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


class PostgresDatabase(NamedTuple):
    """A database that nothing is in yet."""

    url: str
    """postgresql://USER@HOST:PORT/NAME"""
    password: str


@pytest.fixture(scope="session")
def postgres_server() -> Postgres:
    """PostgreSQL, which all tests of the run share: a test that harms it takes ``own_postgres``."""
    with servers_locked():
        state = server_state(_NAME)
        port, password = state["ports"] if state else (free_ports(1)[0], secrets.token_hex())
        server = _postgres(_NAME, port, password)
        if state:
            (server.process,) = (Process(*identity) for identity in state["processes"])
        else:
            server.start()
            write_server_state(_NAME, [port, password], [server])
    return server


@pytest.fixture
def postgres_database(postgres_server: Postgres) -> Iterator[PostgresDatabase]:
    """An empty database, this test's own."""
    with new_database(postgres_server) as made:
        yield made


@contextmanager
def new_database(server: Postgres) -> Iterator[PostgresDatabase]:
    """Make an empty database; drop it afterwards."""
    name = f"test_{uuid4().hex}"
    with _administering(server) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    yield PostgresDatabase(server.url(name), server.password)
    with _administering(server) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


class ReusedDatabase:
    """A database that several tests use in turn, each as it was at first: a new one costs ten times as much."""

    def __init__(self, database: PostgresDatabase) -> None:
        """Remember what is in a database."""
        self.database = database
        with self._connection() as connection:
            self._shape = connection.execute(_SHAPE).fetchall()
            self._tables = [str(table) for (table,) in connection.execute(_TABLES).fetchall()]
            self._rows = {table: _rows_of(connection, table) for table in self._filled(connection)}
            self._sequences = dict(connection.execute(_SEQUENCES).fetchall())

    def restore(self) -> bool:
        """Bring back rows and sequences; return False if the test has changed more than these.

        Also return False if somebody is still connected: a thread of the last test could write into the next one.
        """
        with self._connection() as connection:
            if _has_others(connection) or connection.execute(_SHAPE).fetchall() != self._shape:
                return False
            if filled := self._filled(connection):
                connection.execute(f"TRUNCATE {', '.join(filled)} CASCADE".encode())
            for sequence, value in dict(connection.execute(_SEQUENCES).fetchall()).items():
                before = self._sequences[sequence]
                if value != before:
                    connection.execute("SELECT setval(%s, %s, %s)", (sequence, before or 1, before is not None))
            # Rows may refer to tables that are still empty.
            connection.execute("SET session_replication_role = replica")
            for table, rows in self._rows.items():
                with connection.cursor().copy(f"COPY {table} FROM STDIN".encode()) as copy:
                    copy.write(rows)
        return True

    def _filled(self, connection: psycopg.Connection[tuple[Any, ...]]) -> list[str]:
        """Return the tables that have rows."""
        looks = " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})" for table in self._tables)
        return [str(table) for (table,) in connection.execute(looks.encode()).fetchall()]

    def _connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.database.url, password=self.database.password, autocommit=True)


def _has_others(connection: psycopg.Connection[tuple[Any, ...]]) -> bool:
    """Return whether others stay connected; a session ends a moment after its connection is closed."""
    for _ in range(20):
        if connection.execute(_OTHERS).fetchone() is None:
            return False
        time.sleep(0.05)
    return True


def _rows_of(connection: psycopg.Connection[tuple[Any, ...]], table: str) -> bytes:
    with connection.cursor().copy(f"COPY {table} TO STDOUT".encode()) as copy:
        return b"".join(bytes(block) for block in copy)


@pytest.fixture
def own_postgres() -> Iterator[Callable[..., Postgres]]:
    """Start a PostgreSQL, which is the test's to kill; it takes fields as keywords. Its database is ``postgres``."""
    started: list[Postgres] = []

    def start(**fields: Any) -> Postgres:  # noqa: ANN401  # whichever of the server's
        with servers_or_skip():
            server = _postgres(f"postgres-{uuid4().hex}", free_ports(1)[0], secrets.token_hex(), **fields)
            started.append(server)
            server.start()
        return server

    try:
        yield start
    finally:
        for server in started:
            server.kill9()


def _postgres(name: str, port: int, password: str, **fields: Any) -> Postgres:  # noqa: ANN401  # as above
    folder = servers_folder()
    # Below a folder of pytest's it would be out of reach for the user that it runs as.
    folder.chmod(0o711)
    return Postgres(folder=folder / name, port=port, password=password, owner=int(os.environ[OWNER_VARIABLE]), **fields)


def _administering(server: Postgres) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(server.url("postgres"), password=server.password, autocommit=True)
