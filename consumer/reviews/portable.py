"""Bulk statements, locks and texts that work on both SQLite and PostgreSQL."""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import islice
from typing import Final, TypeVar

from sqlalchemy import Connection, Table, text
from sqlalchemy.dialects import postgresql, sqlite

from consumer.text.visible import MARK, cut

PORTION: Final = 500
"""Rows per statement; SQLite accepts at most 32,766 values."""

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
    """Return an insert in the dialect of the connection, which has ``on_conflict_do_...``."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


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
    return _UNSTORABLE.search(text) is None


def is_storable_id(text: str) -> bool:
    """Return whether a text can be the id or the version of an article."""
    return 0 < len(text.encode("utf-8", "surrogatepass")) <= ID_BYTES_MAX and is_storable(text)
