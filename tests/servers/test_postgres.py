"""PostgreSQL as a process: killed and started again, and reached by who has its password alone."""

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from deploy.local.postgres import Postgres
from tests.postgres_server import PostgresDatabase

pytestmark = pytest.mark.servers


def rows(server: Postgres) -> list[int]:
    """What is in the table of the tests."""
    with psycopg.connect(server.url("postgres"), password=server.password) as connection:
        return [row[0] for row in connection.execute("SELECT number FROM kept ORDER BY number")]


def test_what_was_committed_outlives_kills(own_postgres: Callable[..., Postgres]) -> None:
    """Killed with clients connected it starts again at once, each time with all that was committed."""
    server = own_postgres()
    with psycopg.connect(server.url("postgres"), password=server.password) as connection:
        connection.execute("CREATE TABLE kept (number integer)")
    for number in range(3):
        client = psycopg.connect(server.url("postgres"), password=server.password)
        client.execute("INSERT INTO kept VALUES (%s)", [number])
        client.commit()
        server.kill9()
        assert not server.alive
        with pytest.raises(psycopg.OperationalError):
            client.execute("SELECT 1")
        client.close()
        server.start()
        assert rows(server) == list(range(number + 1))


def test_it_does_not_run_as_root(postgres_server: Postgres) -> None:
    """Its user is another one than root, whoever runs the tests, and owns the files."""
    assert postgres_server.process is not None
    status = Path(f"/proc/{postgres_server.process.pid}/status").read_text()
    (users,) = (line.split()[1:] for line in status.splitlines() if line.startswith("Uid:"))
    assert "0" not in users
    assert {str(postgres_server.data.stat().st_uid)} == set(users)


def test_a_password_is_needed(postgres_database: PostgresDatabase) -> None:
    """Another user of the machine does not get in."""
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(postgres_database.url, password="guessed").close()
    psycopg.connect(postgres_database.url, password=postgres_database.password).close()


def test_each_test_has_a_database_of_its_own(postgres_database: PostgresDatabase) -> None:
    """It has its own name, and no tables."""
    with psycopg.connect(postgres_database.url, password=postgres_database.password) as connection:
        found = connection.execute("SELECT current_database(), count(*) FROM pg_tables WHERE schemaname = 'public'")
        assert found.fetchone() == (postgres_database.url.rpartition("/")[2], 0)
