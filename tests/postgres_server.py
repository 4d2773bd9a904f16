"""A real PostgreSQL for tests: shared by the run as in hbase_server.py, with a database for each test."""

import os
import secrets
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
def new_database(server: Postgres, template: str = "template1") -> Iterator[PostgresDatabase]:
    """Make a database that is a copy of another one, which nobody may be connected to; drop it afterwards."""
    name = f"test_{uuid4().hex}"
    with _administering(server) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
    yield PostgresDatabase(server.url(name), server.password)
    with _administering(server) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


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
