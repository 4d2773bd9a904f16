"""Statements about many rows, locks, and texts that work on SQLite and on PostgreSQL alike."""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import islice
from typing import Final, TypeVar

from sqlalchemy import Connection, Table, text
from sqlalchemy.dialects import postgresql, sqlite

from consumer.text.visible import MARK, cut

PORTION: Final = 500
"""Rows that one statement names; SQLite takes no more than 32,766 values."""

_Item = TypeVar("_Item")
_SPACE: Final = 0x64757077
"""Of all numbers that programs lock in a database, ours begin with it: "dupw"."""
ID_BYTES_MAX: Final = 512
"""Ids of articles are no longer; what is longer is in no store."""
# PostgreSQL holds no NUL, and neither holds halves of surrogate pairs.
_IMPOSSIBLE: Final = re.compile("[\0\ud800-\udfff]")


def portions(items: Iterable[_Item], size: int = PORTION) -> Iterator[Sequence[_Item]]:
    """Yield the items in lists of at most ``size``."""
    left = iter(items)
    while portion := list(islice(left, size)):
        yield portion


def insert_or(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """Return an insert that can say what becomes of a row that is there already: ``on_conflict_do_...``."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


class Lock(IntEnum):
    """The work that one transaction does at a time. The numbers are the same in all versions."""

    TABLES = 0
    FLAGS = 1
    """Changing flags: their states, their stories, and what is counted of them."""
    PEOPLE = 2
    """Adding people, and changing who is an admin."""
    ATTEMPTS = 3
    """Counting attempts to sign in."""
    REASONS = 4
    """Changing the list of reasons."""
    LOOKING = 5
    """Giving people the next flag."""


def one_at_a_time(connection: Connection, what: Lock) -> None:
    """Wait until no other transaction that asked for the same is open.

    On SQLite only one can write anyway.
    """
    if connection.dialect.name == "postgresql":
        # Both as constants: a prepared statement would take them for numbers of another size.
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_SPACE}, {what.value})"))


def storable(text: str, chars_max: int | None = None) -> str:
    """Return a text with ``MARK`` for what cannot be held, cut to at most so many characters."""
    held = _IMPOSSIBLE.sub(MARK, text)
    return held if chars_max is None else cut(held, chars_max)


def is_storable(text: str) -> bool:
    """Tell whether a text can be held as it is."""
    return _IMPOSSIBLE.search(text) is None


def is_storable_id(text: str) -> bool:
    """Tell whether a text can be the id or the version of an article."""
    return 0 < len(text.encode("utf-8", "surrogatepass")) <= ID_BYTES_MAX and is_storable(text)
