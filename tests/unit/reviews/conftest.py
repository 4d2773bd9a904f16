"""Databases for tests: the same tests on SQLite and on a real PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.reviews.database import Database, opened_database
from tests.unit.reviews.made import Address


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Address:
    """Where an empty database is, of each kind."""
    if request.param == "sqlite":
        return Address(f"sqlite:///{tmp_path / 'console.db'}", None)
    made = request.getfixturevalue("postgres_database")
    return Address(made.url, made.password)


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
