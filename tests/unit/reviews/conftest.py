"""Databases for tests: the same tests on SQLite and on a real PostgreSQL."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from consumer.reviews.database import Database, open_database
from deploy.local.postgres import Postgres
from tests.examples import drawn
from tests.postgres_server import ReusedDatabase, new_database
from tests.shared_statements import shared_statements
from tests.unit.reviews.made import Address, empty_database

KINDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)]


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test one kind of database, others in another run; ``make test-load`` runs it with both.

    Without servers there is only one.
    """
    test = metafunc.definition
    chosen = any("address" in mark.args[0] for mark in test.iter_markers("parametrize"))
    if "address" in metafunc.fixturenames and not chosen and "not servers" not in metafunc.config.option.markexpr:
        test.add_marker(pytest.mark.parametrize("address", drawn(KINDS, 2, test.nodeid), indirect=True))


class LentDatabases:
    """Lends an empty database with its tables, the same one again unless a test has changed its tables."""

    def __init__(self, made: ExitStack, server: Postgres) -> None:
        """Remember the server. ``made`` drops the databases."""
        self._made = made
        self._server = server
        self._free: ReusedDatabase | None = None

    @contextmanager
    def lent(self) -> Iterator[Address]:
        """Yield where the database is."""
        reused = self._free or self._new()
        self._free = None
        yield Address(*reused.database)
        if reused.restore():
            self._free = reused

    def _new(self) -> ReusedDatabase:
        made = self._made.enter_context(new_database(self._server))
        open_database(*made).close()
        return ReusedDatabase(made)


@pytest.fixture(scope="session", autouse=True)
def statements() -> Iterator[None]:
    """Compile each statement once for all databases."""
    with shared_statements():
        yield


@pytest.fixture(scope="session")
def with_tables(postgres_server: Postgres) -> Iterator[LentDatabases]:
    """This worker's databases with tables: making them takes longer than most tests."""
    with ExitStack() as made:
        yield LentDatabases(made, postgres_server)


@pytest.fixture(params=KINDS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Address]:
    """Where an empty database is, of each kind; its tables are there for a test that also asks for ``database``."""
    has_tables = "database" in request.fixturenames
    if request.param == "sqlite":
        yield empty_database(tmp_path) if has_tables else Address(f"sqlite:///{tmp_path / 'console.db'}", None)
    elif has_tables:
        with request.getfixturevalue("with_tables").lent() as lent:
            yield lent
    else:
        with new_database(request.getfixturevalue("postgres_server")) as made:
            yield Address(*made)


@pytest.fixture
def database(address: Address) -> Iterator[Database]:
    """An empty database with its tables."""
    opened = open_database(*address)
    yield opened
    opened.close()


@pytest.fixture
def second(address: Address, database: Database) -> Iterator[Database]:
    """The same database, as another process has it."""
    opened = open_database(*address)
    yield opened
    opened.close()
