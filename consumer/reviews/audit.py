"""The audit log of the console: who did what, when, from where and why.

Entries are added in the transaction of the change they record, and never changed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, String, insert, or_, select

from consumer.reviews.paging import Cursor, decode_cursor, encode_cursor
from consumer.reviews.portable import storable_text
from consumer.reviews.tables import AUDIT

_INSERT: Final = insert(AUDIT)
_LENGTHS: Final = {column.name: column.type.length for column in AUDIT.c if isinstance(column.type, String)}


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An action in the log. ``person`` is "" if nobody was signed in."""

    entry_id: int
    at_ms: int
    person: str
    address: str
    action: str
    subject: str
    flag_id: int | None
    why: str


@dataclass(frozen=True, slots=True)
class AuditFilters:
    """The filters of a search of the log; None means any."""

    person: str | None = None
    action: str | None = None
    # A part of the subject or of ``why``, ignoring case.
    text: str | None = None
    from_ms: int | None = None
    # The end is not included.
    to_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Entries, latest first, and the cursor of the next page, or None on the last page."""

    rows: tuple[AuditEntry, ...]
    after: str | None


class NewAuditEntry(NamedTuple):
    """An action to add to the log. ``address`` is "" if no request caused it."""

    at_ms: int
    person: str
    address: str
    action: str
    subject: str = ""
    flag_id: int | None = None
    why: str = ""


def add_entry(  # noqa: PLR0913  # the columns of an entry
    connection: Connection,
    *,
    at_ms: int,
    person: str,
    address: str,
    action: str,
    subject: str = "",
    flag_id: int | None = None,
    why: str = "",
) -> None:
    """Add an entry. Long values are cut, so that no action is missing from the log."""
    add_entries(connection, [NewAuditEntry(at_ms, person, address, action, subject, flag_id, why)])


def add_entries(connection: Connection, entries: Sequence[NewAuditEntry]) -> None:
    """Add entries as ``add_entry`` does, all in one statement."""
    rows = [
        {
            name: _stored_text(name, value) if isinstance(value, str) else value
            for name, value in entry._asdict().items()
        }
        for entry in entries
    ]
    if rows:
        connection.execute(_INSERT, rows)


def has_entry(connection: Connection, action: str, person: str, address: str, since_ms: int) -> bool:
    """Return whether the log has this action by this person from this address since ``since_ms``."""
    # ``concat`` makes the database use the index of actions: a person has many entries, but few of one action.
    by_action = (
        AUDIT.c.action == _stored_text("action", action),
        AUDIT.c.person.concat("") == _stored_text("person", person),
    )
    by_address = (AUDIT.c.address == _stored_text("address", address), AUDIT.c.at_ms >= since_ms)
    query = select(AUDIT.c.entry_id).where(*by_action, *by_address).order_by(AUDIT.c.entry_id.desc()).limit(1)
    return connection.execute(query).first() is not None


def search(connection: Connection, filters: AuditFilters, after: str | None, rows_max: int) -> AuditPage:
    """Return a page of entries, latest first. Raises ``BadCursor`` if ``after`` is not a cursor."""
    cursor = None if after is None else decode_cursor(after)
    query = select(AUDIT).where(*_conditions(filters))
    if cursor is not None:
        query = query.where(AUDIT.c.entry_id < cursor.row_id)
    rows = connection.execute(query.order_by(AUDIT.c.entry_id.desc()).limit(rows_max + 1)).all()
    entries = tuple(AuditEntry(*row) for row in rows[:rows_max])
    more = len(rows) > rows_max
    return AuditPage(entries, encode_cursor(Cursor("after", entries[-1].at_ms, entries[-1].entry_id)) if more else None)


def _stored_text(column: str, text: str) -> str:
    return storable_text(text, _LENGTHS[column])


def _conditions(filters: AuditFilters) -> Iterator[ColumnElement[bool]]:
    if filters.person is not None:
        yield AUDIT.c.person == storable_text(filters.person)
    if filters.action is not None:
        yield AUDIT.c.action == storable_text(filters.action)
    if filters.text is not None:
        text = storable_text(filters.text)
        yield or_(AUDIT.c.subject.icontains(text, autoescape=True), AUDIT.c.why.icontains(text, autoescape=True))
    if filters.from_ms is not None:
        yield AUDIT.c.at_ms >= filters.from_ms
    if filters.to_ms is not None:
        yield AUDIT.c.at_ms < filters.to_ms
