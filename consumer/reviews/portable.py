"""Bulk statements, locks and texts that work on both SQLite and PostgreSQL."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    Row,
    Table,
    TableValuedAlias,
    Text,
    Update,
    any_,
    bindparam,
    cast,
    column,
    func,
    literal,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.types import TypeEngine

from consumer.text.visible import MARK, cut

PORTION: Final = 500
"""Rows per statement; SQLite accepts at most 32,766 values."""
_TEXT_ROWS_MAX: Final = 10_000
"""Rows per statement in PostgreSQL, which gets all rows of a statement in one text parameter."""

_Item = TypeVar("_Item")
_LOCK_SPACE: Final = 0x64757077
"""The first key of our advisory locks, "dupw" in ASCII. It keeps them apart from those of other programs."""
ID_BYTES_MAX: Final = 512
"""The maximum length of an article's id in UTF-8. Stores have the same limit."""
# PostgreSQL stores no NUL, and neither database stores lone surrogates.
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


def portions(items: Iterable[_Item], size: int = PORTION) -> Iterator[Sequence[_Item]]:
    """Yield the items in lists of at most ``size``."""
    left = iter(items)
    while portion := list(islice(left, size)):
        yield portion


def dialect_insert(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """Return an insert in the dialect of the connection. Unlike a generic insert, it has ``on_conflict_do_...``."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


def among(connection: Connection, of: ColumnElement[_Item], values: Collection[_Item]) -> ColumnElement[bool]:
    """Return the condition that a column has one of these values.

    In PostgreSQL the values are one array: client and server take much longer to read a parameter for each value.
    """
    if connection.dialect.name == "postgresql":
        return of == any_(literal(list(values), postgresql.ARRAY(of.type)))
    return of.in_(values)


def among_parameter(dialect: str, of: ColumnElement[_Item], name: str) -> ColumnElement[bool]:
    """Return the condition of ``among`` for a parameter whose value is a list."""
    if dialect == "postgresql":
        return of == any_(bindparam(name, type_=postgresql.ARRAY(of.type)))
    return of.in_(bindparam(name, expanding=True))


def insert_rows(connection: Connection, statement: Insert, rows: Iterable[Mapping[str, object]]) -> list[Row[Any]]:
    """Insert rows that all have the same columns; return the rows that the statement returns."""
    found: list[Row[Any]] = []
    is_text = connection.dialect.name == "postgresql"
    for portion in portions(rows, _TEXT_ROWS_MAX if is_text else PORTION):
        if is_text:
            names = list(portion[0])
            new = _rows_of_text({name: statement.table.c[name].type for name in names})
            whole = statement.from_select(names, select(*new.c))
            result = connection.execute(whole, {"rows": _text_of_rows(portion)})
        else:
            result = connection.execute(statement, portion)
        if result.returns_rows:
            found += result
    return found


def update_rows(
    connection: Connection,
    types: Mapping[str, TypeEngine[Any]],
    rows: Iterable[Mapping[str, object]],
    statement_of: Callable[[Mapping[str, ColumnElement[Any]]], Update],
) -> None:
    """Execute an update for each row. ``statement_of`` returns the update, given the values of a row by name.

    No two rows may change the same row of the table.
    """
    if connection.dialect.name != "postgresql":
        changes = list(rows)
        if changes:
            connection.execute(
                statement_of({name: bindparam(name, type_=type_) for name, type_ in types.items()}), changes
            )
        return
    statement = statement_of({**_rows_of_text(types).c})
    for portion in portions(rows, _TEXT_ROWS_MAX):
        connection.execute(statement, {"rows": _text_of_rows(portion)})


def _rows_of_text(types: Mapping[str, TypeEngine[Any]]) -> TableValuedAlias:
    """Return PostgreSQL's table of the rows in the parameter ``rows``, which ``_text_of_rows`` makes.

    The text of all statements is the same, however many rows there are, so that the server prepares it only once.
    """
    columns = [column(name, type_) for name, type_ in types.items()]
    rows = func.json_to_recordset(cast(bindparam("rows", type_=Text), postgresql.JSON))
    return rows.table_valued(*columns, name="new_rows").render_derived(with_types=True)


def _text_of_rows(rows: Sequence[Mapping[str, object]]) -> str:
    return msgspec.json.encode(rows).decode()


class Lock(IntEnum):
    """Work that only one transaction does at a time. The numbers must never change."""

    TABLES = 0
    """Bringing the tables up to date."""
    FLAGS = 1
    """Changing flags: their states, stories and counts."""
    PEOPLE = 2
    """Adding people, and changing who is an admin."""
    ATTEMPTS = 3
    """Counting attempts to sign in."""
    REASONS = 4
    """Changing the list of reasons."""
    LOOKING = 5
    """Giving people the next flag."""


# Both keys are constants: as parameters of a prepared statement they would be integers of another size.
_ACQUIRE: Final = {lock: text(f"SELECT pg_advisory_xact_lock({_LOCK_SPACE}, {lock.value})") for lock in Lock}


def acquire_lock(connection: Connection, lock: Lock) -> None:
    """Wait for a lock, and hold it until the transaction ends.

    On SQLite this does nothing: only one transaction can write at a time.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_ACQUIRE[lock])


def storable_text(text: str, chars_max: int | None = None) -> str:
    """Return a text with ``MARK`` in place of characters that cannot be stored, cut to ``chars_max`` characters."""
    stored = _UNSTORABLE.sub(MARK, text)
    return stored if chars_max is None else cut(stored, chars_max)


def is_storable(text: str) -> bool:
    """Return whether a text can be stored unchanged."""
    return "\0" not in text if text.isascii() else _UNSTORABLE.search(text) is None


def is_storable_id(text: str) -> bool:
    """Return whether a text can be the id or the version of an article."""
    return 0 < len(text.encode("utf-8", "surrogatepass")) <= ID_BYTES_MAX and is_storable(text)
