"""Decisions and notes about a flag."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, Select, bindparam, insert, select

from consumer.reviews.decisions import NOTE_CHARS_MAX, Decision
from consumer.reviews.portable import portions, storable_text
from consumer.reviews.tables import NOTES, PEOPLE, REASONS, REVIEWS


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscussionEntry:
    """A decision or a note. Fields that only decisions have are None in a note."""

    kind: Literal["review", "note"]
    # The number of the review or the note.
    entry_id: int
    at_ms: int
    person_id: int
    person: str
    text: str
    decision: Decision | None = None
    # From the list of reasons, under its current name.
    reason: str | None = None
    final_ms: int | None = None
    undone_ms: int | None = None
    sent_ms: int | None = None
    # Why its release could not be sent, and never will be.
    refused: str | None = None
    is_claimed: bool = False
    # Made by a standing decision of the person.
    is_standing: bool = False


class Decider(NamedTuple):
    """The person who decided a flag. ``is_standing``: by a standing decision."""

    person: str
    is_standing: bool


def history(connection: Connection, flag_id: int) -> list[DiscussionEntry]:
    """Return the decisions and notes of a flag in order of time, including undone decisions."""
    of_flag = {"of_flag": flag_id}
    reviews, notes = connection.execute(_reviews(), of_flag), connection.execute(_notes(), of_flag)
    entries = [
        DiscussionEntry(
            kind="review",
            entry_id=row.review_id,
            at_ms=row.at_ms,
            person_id=row.person_id,
            person=row.name,
            text=row.note,
            decision=row.decision,
            reason=row.reason,
            final_ms=row.final_ms,
            undone_ms=row.undone_ms,
            sent_ms=row.sent_ms,
            refused=row.refused,
            is_claimed=row.claimed_ms is not None,
            is_standing=row.standing_id is not None,
        )
        for row in reviews
    ]
    entries += [
        DiscussionEntry(
            kind="note", entry_id=row.note_id, at_ms=row.at_ms, person_id=row.person_id, person=row.name, text=row.text
        )
        for row in notes
    ]
    return sorted(entries, key=lambda entry: (entry.at_ms, entry.kind, entry.entry_id))


@cache
def _reviews() -> Select[*tuple[Any, ...]]:
    """Return the query for the decisions about a flag. Cached, like ``_notes``, since pages of flags run both."""
    return (
        select(REVIEWS, PEOPLE.c.name, REASONS.c.name.label("reason"))
        .join_from(REVIEWS, PEOPLE, PEOPLE.c.person_id == REVIEWS.c.person_id)
        .outerjoin(REASONS, REASONS.c.reason_id == REVIEWS.c.reason_id)
        .where(REVIEWS.c.flag_id == bindparam("of_flag"))
    )


@cache
def _notes() -> Select[*tuple[Any, ...]]:
    """Return the query for the notes of a flag."""
    joined = select(NOTES, PEOPLE.c.name).join_from(NOTES, PEOPLE, PEOPLE.c.person_id == NOTES.c.person_id)
    return joined.where(NOTES.c.flag_id == bindparam("of_flag"))


def add_note(connection: Connection, flag_id: int, person_id: int, text: str, now_ms: int) -> int:
    """Store a note, and return its id. A note that is too long is cut, but pages already refuse it."""
    values = {"flag_id": flag_id, "person_id": person_id, "at_ms": now_ms, "text": storable_text(text, NOTE_CHARS_MAX)}
    return int(connection.execute(insert(NOTES).values(values).returning(NOTES.c.note_id)).scalar_one())


def deciders(connection: Connection, flag_ids: Sequence[int]) -> dict[int, Decider]:
    """Return who decided each flag last, by flag. Undone decisions do not count; flags without others are left out."""
    found: dict[int, Decider] = {}
    for portion in portions(flag_ids):
        query = (
            select(REVIEWS.c.flag_id, PEOPLE.c.name, REVIEWS.c.standing_id)
            .join_from(REVIEWS, PEOPLE, PEOPLE.c.person_id == REVIEWS.c.person_id)
            .where(REVIEWS.c.flag_id.in_(portion), REVIEWS.c.undone_ms.is_(None))
            .order_by(REVIEWS.c.review_id)
        )
        rows = connection.execute(query)
        found |= {row.flag_id: Decider(row.name, row.standing_id is not None) for row in rows}
    return found
