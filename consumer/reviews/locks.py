"""What only one transaction may do at a time."""

from enum import IntEnum
from typing import Final

from sqlalchemy import Connection, text

_SPACE: Final = 0x64757077
"""Of all numbers that programs lock in a database, ours begin with it: "dupw"."""


class Lock(IntEnum):
    """What is done by one at a time. The numbers are the same in all versions."""

    TABLES = 0
    FLAGS = 1
    """Changing flags: their states, their stories, and what is counted of them."""
    PEOPLE = 2
    """Adding people, and changing who is an admin."""
    ATTEMPTS = 3
    """Counting attempts to sign in."""


def one_at_a_time(connection: Connection, what: Lock) -> None:
    """Wait until no other transaction that asked for the same is open.

    On SQLite only one can write anyway.
    """
    if connection.dialect.name == "postgresql":
        # Both as constants: a prepared statement would take them for numbers of another size.
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_SPACE}, {what.value})"))
