"""Translates errors of the database drivers into errors of this package."""

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
    "its tables are not those of this version of dupwatch; use one version, and a separate database for the console"
)
_REFUSALS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "42501": _RIGHTS,
        "3F000": "create a schema for the console, or name one with ?options=-c%20search_path=NAME in console.database",
        # An undefined table or column; a duplicate table or object.
        "42P01": _TABLES,
        "42703": _TABLES,
        "42P07": _TABLES,
        "42710": _TABLES,
    }
)
"""Advice by PostgreSQL error code, for errors of the database itself rather than of a request."""
# Serialization failure, deadlock, lock not available in time.
_CONFLICTS: Final = frozenset({"40001", "40P01", "55P03"})
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
# The bits of an extended SQLite error code that hold the primary code.
_PRIMARY_CODE: Final = 0xFF
# No input causes these, so they are defects. All other errors may be temporary.
_DEFECTS: Final = ("ProgrammingError", "IntegrityError", "DataError", "NotSupportedError")


class DatabaseUnavailable(DupwatchError):  # noqa: N818  # named for the database
    """The database does not answer, or refuses to work. Try again later.

    The failed transaction changed nothing, unless the connection broke while it was being committed.
    """


class Conflict(DatabaseUnavailable):
    """Another transaction held a lock for too long, or its changes conflict with this one."""


class Refusal(DatabaseUnavailable):
    """The database cannot be used until somebody changes its rights, its tables or its address."""


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise ``DatabaseUnavailable`` or a subclass for errors of the driver, except defects."""
    try:
        yield
    except PoolTimeoutError as error:
        raise DatabaseUnavailable("all connections to the console's database are in use") from error
    except DBAPIError as error:
        reason = str(error.orig).strip().partition("\n")[0]
        state: str = getattr(error.orig, "sqlstate", None) or ""
        if state in _REFUSALS:
            raise Refusal(f"the console's database cannot be used: {reason}: {_REFUSALS[state]}") from error
        if _is_address_error(error):
            raise Refusal(f"the console's database cannot be used: {reason}") from error
        if type(error).__name__ in _DEFECTS and not error.connection_invalidated:
            raise
        if state in _CONFLICTS or sqlite_code(error.orig) in _BUSY:
            raise Conflict(f"the console's database is locked by another transaction: {reason}") from error
        has_answered = state and not error.connection_invalidated
        problem = "refuses to work" if has_answered else "does not answer"
        raise DatabaseUnavailable(f"the console's database {problem}: {reason}") from error


def _is_address_error(error: DBAPIError) -> bool:
    """Return whether the driver rejected the address before it contacted a server or sent a statement."""
    is_unsent = error.statement is None and not getattr(error.orig, "sqlstate", None)
    return is_unsent and type(error).__name__ == "ProgrammingError"


def sqlite_code(error: BaseException | None) -> int:
    """Return the primary SQLite code of an error, 0 if it has none."""
    # Errors of Python's module itself have no code.
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE
