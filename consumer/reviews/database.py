"""The console's database: connections, transactions and migrations."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, unquote

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from consumer.model.errors import ConfigError
from consumer.reviews.failures import Conflict, DatabaseUnavailable, Refusal, sqlite_code, translate_errors
from consumer.reviews.idle_connections import replace_dead_connections
from consumer.reviews.portable import Lock, acquire_lock, is_storable
from consumer.reviews.tables import IDENTITY
from consumer.text.install_advice import install_command
from storage.backoff import Backoff

__all__ = [
    "Connection",
    "Database",
    "DatabaseUnavailable",
    "TableVersions",
    "identity",
    "open_database",
    "table_versions",
]

ATTEMPTS_MAX: Final = 6
"""The maximum number of attempts at a transaction that conflicts with others."""
WAIT_MS: Final = 5_000
"""How long a statement waits for locks of other transactions."""
STATEMENT_MS: Final = 30_000
"""How long a statement may take on PostgreSQL."""
CONNECTIONS_MAX: Final = 80
"""The maximum number of open connections per process. It must exceed the number of threads that need a connection."""
_CONNECT_S: Final = 5
_POOL_S: Final = 10.0
_PAUSES: Final = Backoff(0.06, 1.0, jitter=2 / 3)
_CACHE_KIB: Final = 16 * 1_024
_MAPPED_BYTES: Final = 4 << 30
_WAL_PAGES: Final = 16 * 1_024
_FILE_MODE: Final = 0o600
_WRITES: Final = "dupwatch_writes"
_WRITING: Final[Mapping[str, Any]] = {"sqlite": {_WRITES: True}, "postgresql": {"isolation_level": "READ COMMITTED"}}
"""The execution options of a transaction that writes, by dialect."""
_PASSWORDS: Final = frozenset({"password", "sslpassword"})

_Result = TypeVar("_Result")
_MIGRATIONS: Final = Path(__file__).with_name("migrations")


class Database:
    """Connections to one database, for any number of threads. Made by ``open_database``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._writing = _WRITING[engine.dialect.name]

    @contextmanager
    def write_transaction(self) -> Iterator[Connection]:
        """Enter a transaction that writes. It is committed unless the block raises.

        Raises ``DatabaseUnavailable``, or its subclass ``Conflict`` after a conflict with another transaction. Only
        ``write`` retries after a ``Conflict``.
        """
        with (
            translate_errors(),
            self._engine.connect() as connection,
            connection.execution_options(**self._writing).begin(),
        ):
            yield connection

    @contextmanager
    def read_connection(self) -> Iterator[Connection]:
        """Enter a block that only reads. Raises ``DatabaseUnavailable``.

        On SQLite, the block is a transaction. On PostgreSQL, each statement sees all earlier commits.
        """
        with translate_errors(), self._engine.connect() as connection:
            yield connection

    def write(self, work: Callable[[Connection], _Result]) -> _Result:
        """Do ``work`` in a transaction that writes, and return its result.

        Conflicts with other transactions are retried. Raises ``DatabaseUnavailable``.
        """
        for _, pause_s in zip(range(ATTEMPTS_MAX - 1), _PAUSES.pauses(), strict=False):
            try:
                return self._once(work)
            except Conflict:
                time.sleep(pause_s)
        return self._once(work)

    def check(self) -> None:
        """Raise ``DatabaseUnavailable`` unless the database answers."""
        with self.read_connection() as connection:
            connection.execute(select(1))

    def close(self) -> None:
        """Close all unused connections."""
        self._engine.dispose()

    def _once(self, work: Callable[[Connection], _Result]) -> _Result:
        with self.write_transaction() as connection:
            return work(connection)


def open_database(url: str, password: str | None = None) -> Database:
    """Open a database, ``sqlite:///PATH`` or ``postgresql://USER@HOST:PORT/NAME``, and bring its tables up to date.

    A new SQLite file is readable only by its owner. Raises ``ConfigError`` if the URL or the database cannot be used,
    for example because the tables are of a newer version, or the user may not change them. Raises
    ``DatabaseUnavailable`` if the database does not answer.
    """
    parsed = parse_url(url, password)
    engine = _sqlite(parsed) if parsed.get_backend_name() == "sqlite" else _postgresql(parsed)
    database = Database(engine)
    try:
        with _naming_setting(url):
            database.write(lambda connection: _prepare(connection, url))
    except BaseException:
        database.close()
        raise
    return database


class TableVersions(NamedTuple):
    """The version of the tables in a database, or None if it has none yet, and the version that this program uses."""

    stored: str | None
    used: str


def table_versions(url: str, password: str | None = None) -> TableVersions:
    """Return the versions of the tables in a database and in this program. Changes nothing; a SQLite file must exist.

    Raises the same errors as ``open_database``.
    """
    parsed = parse_url(url, password)
    database = Database(_sqlite_reader(parsed) if parsed.get_backend_name() == "sqlite" else _postgresql(parsed))
    try:
        with _naming_setting(url), database.read_connection() as connection:
            _check_encoding(connection, url)
            return _versions(connection, url, ScriptDirectory.from_config(_alembic()))
    finally:
        database.close()


@contextmanager
def _naming_setting(url: str) -> Iterator[None]:
    """Raise ``ConfigError`` with the name of the setting if the database cannot be used."""
    try:
        yield
    except Refusal as error:
        raise ConfigError(f"console.database = {url}: {error}") from error
    except DatabaseUnavailable as error:
        if sqlite_code(getattr(error.__cause__, "orig", None)) == sqlite3.SQLITE_NOTADB:
            raise ConfigError(
                f"console.database = {url}: the file is not a SQLite database; name another one"
            ) from error
        raise


def identity(connection: Connection) -> str:
    """Return the name of this database, 16 hexadecimal digits."""
    name: str = connection.execute(select(IDENTITY.c.name)).scalar_one()
    return name


def _prepare(connection: Connection, url: str) -> None:
    acquire_lock(connection, Lock.TABLES)
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL statement_timeout = 0"))
    _check_encoding(connection, url)
    migrate(connection, url)


def _check_encoding(connection: Connection, url: str) -> None:
    if connection.dialect.name == "postgresql":
        encoding = connection.execute(text("SHOW server_encoding")).scalar_one()
        if encoding != "UTF8":
            raise ConfigError(f"console.database = {url}: its encoding is {encoding}; create a database with UTF8")


def parse_url(url: str, password: str | None = None) -> URL:
    """Return the parsed URL of a database. Raises ``ConfigError`` for one that the console cannot use."""
    expected = "sqlite:///PATH or postgresql://USER@HOST:PORT/NAME"
    try:
        # The client would ignore everything after a NUL.
        parsed = make_url(url if is_storable(unquote(url)) else "")
    except (ArgumentError, ValueError):
        raise ConfigError(f"console.database = {url!r} is not the URL of a database; write {expected}") from None
    if parsed.password is not None or parsed.query.keys() & _PASSWORDS:
        raise ConfigError("console.database contains a password; write it into the file of console.password_file")
    if parsed.drivername == "sqlite" and parsed.database and parsed.database != ":memory:" and not parsed.query:
        return parsed
    if parsed.drivername in {"postgresql", "postgres"} and parsed.database:
        return parsed.set(drivername="postgresql+psycopg", password=password)
    raise ConfigError(f"console.database = {url!r} is not supported; write {expected}")


def _sqlite(url: URL) -> Engine:
    path = Path(str(url.database))
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE))
    except OSError as error:
        raise ConfigError(f"console.database = {url}: it cannot be opened: {error.strerror}") from error
    engine = create_engine(
        url,
        pool_size=CONNECTIONS_MAX,
        max_overflow=0,
        pool_timeout=_POOL_S,
        # Errors are logged, and parameters may contain secrets.
        hide_parameters=True,
        connect_args={"timeout": WAIT_MS / 1_000, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
        # The driver must not begin transactions itself: _begun does.
        connection.isolation_level = None
        for pragma in (
            "journal_mode = WAL",
            # Acknowledged reviews survive a power loss.
            "synchronous = FULL",
            "foreign_keys = ON",
            f"cache_size = -{_CACHE_KIB}",
            # Frequently read pages come from the system's page cache, without a copy and a system call for each.
            f"mmap_size = {_MAPPED_BYTES}",
            # Intake changes pages all over the indexes: larger checkpoints need fewer writes.
            f"wal_autocheckpoint = {_WAL_PAGES}",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        # A transaction that begins with a read can no longer write after another transaction has written.
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _sqlite_reader(url: URL) -> Engine:
    """Return an engine that only reads a file, and neither creates it nor changes its settings."""
    address = f"file:{quote(str(url.database))}?mode=ro"
    connect = partial(sqlite3.connect, address, uri=True, timeout=WAIT_MS / 1_000, check_same_thread=False)
    return create_engine("sqlite://", creator=connect, poolclass=NullPool)


def _postgresql(url: URL) -> Engine:
    try:
        supported = _connection_settings()
        engine = create_engine(
            url,
            pool_size=CONNECTIONS_MAX,
            max_overflow=0,
            pool_timeout=_POOL_S,
            hide_parameters=True,
            # For reading. A transaction that only reads would end with a rollback, after which the driver prepares all
            # statements again.
            isolation_level="AUTOCOMMIT",
            connect_args=_connect_args(url),
        )
    except (ImportError, NoSuchModuleError):
        raise ConfigError(
            "PostgreSQL needs a package that is not installed. Install it with:\n"
            f"{install_command('console-postgresql')}"
        ) from None
    if unknown := sorted(url.query.keys() - supported):
        raise ConfigError(
            f"console.database has {unknown[0]!r} after the question mark, which PostgreSQL's client does not know; "
            "see the parameter keywords in PostgreSQL's documentation of libpq"
        )
    replace_dead_connections(engine)
    return engine


def _connection_settings() -> set[str]:
    """Return the names that the query of a URL may set. Other names would change the driver's own behaviour."""
    from psycopg.pq import Conninfo  # noqa: PLC0415  # of an extra

    return {setting.keyword.decode() for setting in Conninfo.get_defaults()}


def _connect_args(url: URL) -> dict[str, Any]:
    """Return the settings of a connection. Settings in the URL take precedence, except over the encoding."""
    url_options = url.query.get("options", ())
    limits = f"-c lock_timeout={WAIT_MS} -c statement_timeout={STATEMENT_MS}"
    # Regardless of the server's default: a transaction that has waited for a lock must see what its holder changed.
    isolation = r"-c default_transaction_isolation=read\ committed"
    defaults = {"connect_timeout": _CONNECT_S, "application_name": "dupwatch console"}
    return {
        **{name: value for name, value in defaults.items() if name not in url.query},
        # Regardless of the environment: ids and notes have letters that other encodings lack.
        "client_encoding": "utf8",
        "options": " ".join([limits, isolation, *([url_options] if isinstance(url_options, str) else url_options)]),
    }


def migrate(connection: Connection, name: str) -> None:
    """Apply all missing migrations in the transaction of this connection. ``name`` names the database in errors.

    Raises ``ConfigError`` for the tables of a newer version.
    """
    settings = _alembic()
    settings.attributes["connection"] = connection
    versions = _versions(connection, name, ScriptDirectory.from_config(settings))
    if versions.stored != versions.used:
        command.upgrade(settings, "head")


def _alembic() -> Config:
    settings = Config()
    # Percent signs are special in this file format.
    settings.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    return settings


def _versions(connection: Connection, name: str, scripts: ScriptDirectory) -> TableVersions:
    # There may be several versions if another program has tables in the same database.
    current = MigrationContext.configure(connection).get_current_heads()
    used = scripts.get_current_head()
    if used is None or not _is_known(scripts, current):
        raise ConfigError(
            f"console.database = {name}: a newer dupwatch has changed it (to {', '.join(current)}). Use that version, "
            "or another database."
        )
    return TableVersions(current[0] if current else None, used)


def _is_known(scripts: ScriptDirectory, current: tuple[str, ...]) -> bool:
    """Return whether a database has no tables yet, or tables of this version or an earlier one."""
    try:
        return not current or (len(current) == 1 and scripts.get_revision(current[0]) is not None)
    except CommandError:
        return False
