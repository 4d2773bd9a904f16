"""Work on many rows at once, in portions that a statement can name; and inserts that others may have made already."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

PORTION: Final = 500
"""Rows that one statement names; SQLite takes no more than 32,766 values."""

_Item = TypeVar("_Item")


def portions(items: Iterable[_Item], size: int = PORTION) -> Iterator[Sequence[_Item]]:
    """Yield the items in lists of at most ``size``."""
    left = iter(items)
    while portion := list(islice(left, size)):
        yield portion


def insert_or(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """Return an insert that can say what becomes of a row that is there already: ``on_conflict_do_...``."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)
