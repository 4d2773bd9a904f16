"""TLS to PostgreSQL, as the production overlay asks for it: the server has to have a certificate of that authority."""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from consumer.reviews.database import DatabaseUnavailable, open_database
from deploy.local.postgres import Postgres
from tests.hbase.test_tls import certificate

pytestmark = pytest.mark.servers


def test_a_server_is_checked_by_its_certificate(own_postgres: Callable[..., Postgres], tmp_path: Path) -> None:
    """With ``sslmode=verify-full`` neither one with another certificate is spoken to, nor one without TLS."""
    server = own_postgres()
    for name in ("localhost", "other"):
        certificate(tmp_path, name)

    def opened(authority: str) -> None:
        url = server.url("postgres").replace("127.0.0.1", "localhost")
        options = f"?sslmode=verify-full&sslrootcert={tmp_path / authority}.pem"
        with closing(open_database(url + options, server.password)) as database:
            database.check()

    with pytest.raises(DatabaseUnavailable, match="does not support SSL"):
        opened("localhost")
    for file in ("localhost.pem", "localhost.key"):
        placed = server.data / file
        shutil.copy(tmp_path / file, placed)
        placed.chmod(0o600)
        shutil.chown(placed, server.data.owner(), server.data.group())
    with (server.data / "postgresql.conf").open("a") as settings:
        settings.write("ssl = on\nssl_cert_file = 'localhost.pem'\nssl_key_file = 'localhost.key'\n")
    server.kill9()
    server.start()
    opened("localhost")
    with pytest.raises(DatabaseUnavailable, match="certificate verify failed"):
        opened("other")
