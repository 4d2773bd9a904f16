"""Databases for tests: the same tests on SQLite and on a real PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.reviews.database import Database, opened_database
from deploy.local.postgres import Postgres
from tests.postgres_server import new_database
from tests.unit.reviews.made import Address, empty_database


@pytest.fixture(scope="session")
def with_tables(postgres_server: Postgres) -> Iterator[str]:
    """The name of an empty database with its tables, to be copied: making them takes longer than most tests."""
    with new_database(postgres_server) as made:
        opened_database(*made).close()
        yield made.url.rpartition("/")[2]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Address]:
    """Where an empty database is, of each kind; its tables are there for a test that also asks for ``database``."""
    has_tables = "database" in request.fixturenames
    if request.param == "sqlite":
        yield empty_database(tmp_path) if has_tables else Address(f"sqlite:///{tmp_path / 'console.db'}", None)
        return
    template = request.getfixturevalue("with_tables") if has_tables else "template1"
    with new_database(request.getfixturevalue("postgres_server"), template) as made:
        yield Address(*made)


@pytest.fixture
def database(address: Address) -> Iterator[Database]:
    """An empty database with its tables."""
    opened = opened_database(*address)
    yield opened
    opened.close()


@pytest.fixture
def second(address: Address, database: Database) -> Iterator[Database]:
    """The same database, as another process has it."""
    opened = opened_database(*address)
    yield opened
    opened.close()
