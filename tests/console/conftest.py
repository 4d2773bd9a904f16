"""The places that every test of the console's way through Kafka runs with."""

from pathlib import Path

import pytest

from tests.console.consoles import Place, postgres_place, sqlite_place
from tests.examples import drawn
from tests.kafka.topics import Topics, make_topics


@pytest.fixture
def topics(kafka_address: str) -> Topics:
    """Topics of the test's own."""
    return make_topics(kafka_address)


@pytest.fixture(params=drawn(["sqlite", "postgresql"], 2))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A database with nothing in it; ``make test-load`` runs the tests with both kinds, other runs with one."""
    if request.param == "sqlite":
        return sqlite_place(tmp_path)
    database = request.getfixturevalue("postgres_database")
    return postgres_place(database.url, database.password, tmp_path)
