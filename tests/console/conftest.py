"""The places that every test of the console's way through Kafka runs with."""

from pathlib import Path

import pytest

from tests.console.consoles import Place, postgres_place, sqlite_place
from tests.kafka.topics import Topics, make_topics


@pytest.fixture
def topics(kafka_address: str) -> Topics:
    """Topics of the test's own."""
    return make_topics(kafka_address)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A database with nothing in it, of each kind."""
    if request.param == "sqlite":
        return sqlite_place(tmp_path)
    database = request.getfixturevalue("postgres_database")
    return postgres_place(database.url, database.password, tmp_path)
