"""Marks that say how far event files have been read. They are stored in the transaction of the events."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import Connection, delete, select, update

from consumer.reviews.portable import dialect_insert
from consumer.reviews.tables import READ_FILES


class FileMark(NamedTuple):
    """A place after a line of a file: the number of lines and bytes before it, and the hex SHA-256 of the last bytes.

    The digest shows whether the file still has the content that was read.
    """

    line: int
    offset: int
    sha256: str


FileMarks = tuple[FileMark, ...]
"""The place up to which a file was read, and some earlier places, the latest first; empty for an unread file."""


def marks_of(connection: Connection, path_sha256: str) -> FileMarks:
    """Return the marks of a file."""
    query = select(READ_FILES.c.marks).where(READ_FILES.c.path_sha256 == path_sha256)
    found = connection.execute(query).scalar()
    return () if found is None else msgspec.json.decode(found, type=FileMarks)


def move_marks(connection: Connection, path_sha256: str, before: FileMarks, after: FileMarks) -> bool:
    """Replace the marks of a file and return True, or change nothing and return False if they are not ``before``.

    On PostgreSQL, this waits for other transactions that replace the same marks.
    """
    moved = (
        update(READ_FILES)
        .where(READ_FILES.c.path_sha256 == path_sha256, READ_FILES.c.marks == _encoded(before))
        .values(marks=_encoded(after))
        .returning(READ_FILES.c.path_sha256)
    )
    if connection.execute(moved).scalar() is not None:
        return True
    if before:
        return False
    made = dialect_insert(connection, READ_FILES).values(path_sha256=path_sha256, marks=_encoded(after))
    inserted = made.on_conflict_do_nothing().returning(READ_FILES.c.path_sha256)
    return connection.execute(inserted).scalar() is not None


def forget_marks(connection: Connection, paths_sha256: Sequence[str]) -> None:
    """Delete the marks of files, so that they are read from the beginning."""
    connection.execute(delete(READ_FILES).where(READ_FILES.c.path_sha256.in_(paths_sha256)))


def _encoded(marks: FileMarks) -> str:
    return msgspec.json.encode(marks).decode()
