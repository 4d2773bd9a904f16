"""Turns errors of the database's drivers into errors of this package."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from consumer.model.errors import DupwatchError

_RIGHTS: Final = "give the console's user all rights on the database"
_TABLES: Final = (
    "its tables are not those of this version of dupwatch; use one version, and a database of its own for the console"
)
_REFUSALS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "42501": _RIGHTS,
        "3F000": "make a schema for the console, or name one with ?options=-c%20search_path=NAME in console.database",
        # A table or column that is not there; a table or something else of that name that is.
        "42P01": _TABLES,
        "42703": _TABLES,
        "42P07": _TABLES,
        "42710": _TABLES,
    }
)
"""Advice by the code of PostgreSQL, for errors of the database itself rather than of a request."""
# Serialization failure, deadlock, lock not to be had in time.
_CONFLICTS: Final = frozenset({"40001", "40P01", "55P03"})
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
# Of an error of SQLite, the kind without what is special about it.
_PRIMARY_CODE: Final = 0xFF
# Nothing that a person or an event says makes these, so they are defects: everything else may pass.
_DEFECTS: Final = ("ProgrammingError", "IntegrityError", "DataError", "NotSupportedError")


class DatabaseUnavailable(DupwatchError):  # noqa: N818  # named for the database, as its siblings are for their things
    """The database does not answer, or refuses to work. Try again later.

    Nothing was changed by this transaction, unless the connection broke while it was being committed.
    """


class Conflict(DatabaseUnavailable):
    """Another transaction was in the way."""


class Refusal(DatabaseUnavailable):
    """The database answers, but cannot be used as it is: somebody has to change its rights, tables or address."""


@contextmanager
def translated() -> Iterator[None]:
    """Turn errors that are not ours into ``DatabaseUnavailable``."""
    try:
        yield
    except PoolTimeoutError as error:
        raise DatabaseUnavailable("all connections to the console's database are in use") from error
    except DBAPIError as error:
        reason = str(error.orig).strip().partition("\n")[0]
        state: str = getattr(error.orig, "sqlstate", None) or ""
        if state in _REFUSALS:
            raise Refusal(f"the console's database cannot be used: {reason}: {_REFUSALS[state]}") from error
        if _is_of_the_address(error):
            raise Refusal(f"the console's database cannot be used: {reason}") from error
        if type(error).__name__ in _DEFECTS and not error.connection_invalidated:
            raise
        if state in _CONFLICTS or sqlite_code(error.orig) in _BUSY:
            raise Conflict(f"others keep the console's database busy: {reason}") from error
        is_answer = state and not error.connection_invalidated
        what = "refuses to work" if is_answer else "does not answer"
        raise DatabaseUnavailable(f"the console's database {what}: {reason}") from error


def _is_of_the_address(error: DBAPIError) -> bool:
    """Return whether the driver takes an address to make no sense: no server was asked, and no statement sent."""
    unasked = error.statement is None and not getattr(error.orig, "sqlstate", None)
    return unasked and type(error).__name__ == "ProgrammingError"


def sqlite_code(error: BaseException | None) -> int:
    """Return which error of SQLite it is, 0 for another one."""
    # Errors of the module itself have none.
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE
