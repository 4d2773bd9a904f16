"""Queue entries (flags and other kinds) as pages, decisions and exports read them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Final, Literal

from sqlalchemy import Connection, Row, Select, bindparam, select, update

from consumer.reviews.kinds.rules import KINDS, Kind
from consumer.reviews.tables import FLAGS, SOURCES, STORIES, TALLY

State = Literal["open", "skipped", "right", "wrong", "released"]

STATES: Final[tuple[State, ...]] = ("open", "skipped", "right", "wrong", "released")
IN_FORCE: Final[tuple[State, ...]] = ("open", "skipped", "right")
"""The states in which a flag is a copy of its story."""
UNDECIDED: Final[tuple[State, ...]] = ("open", "skipped")

# Built once: every decision executes it.
_TALLY_CHANGE: Final = (
    update(TALLY)
    .where(TALLY.c.kind == bindparam("this_kind"), TALLY.c.state == bindparam("this_state"))
    .values(flags=TALLY.c.flags + bindparam("more"))
)
_SOURCE = SOURCES.alias("source_of_copy")
_ORIGINAL_SOURCE = SOURCES.alias("source_of_original")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFigures:
    """The judge's findings about a pair of articles. Each is a column, explained at ``FLAGS``."""

    similarity: float | None
    distance: int | None
    certainty: float
    sampled_in: float
    truncated: bool
    arrived_ms: int
    decided_ms: int


FIGURES: Final = tuple(field.name for field in fields(PairFigures))


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagRow(PairFigures):
    """A queue entry, and the story that shows it. In an entry without an original, the article is its own original."""

    flag_id: int
    kind: Kind
    article_id: str
    version: str
    original_id: str
    original_version: str
    story_id: int
    # None until read from the store, or "" if the article names none.
    source: str | None
    original_source: str | None
    state: State
    # When it was released, or None if no release is known.
    released_ms: int | None
    root_id: str
    copies: int


@cache
def flag_rows() -> Select[Any]:
    """Return the query for entries with the columns that ``flag_row`` needs. Cached, since building it is slow."""
    return (
        select(
            FLAGS.c.flag_id,
            FLAGS.c.kind,
            FLAGS.c.article_id,
            FLAGS.c.version,
            FLAGS.c.original_id,
            FLAGS.c.original_version,
            FLAGS.c.story_id,
            _SOURCE.c.name.label("source"),
            _ORIGINAL_SOURCE.c.name.label("original_source"),
            *(FLAGS.c[name] for name in FIGURES),
            FLAGS.c.state,
            FLAGS.c.released_ms,
            STORIES.c.root_id,
            STORIES.c.copies,
        )
        .join_from(FLAGS, STORIES, STORIES.c.story_id == FLAGS.c.story_id)
        .outerjoin(_SOURCE, _SOURCE.c.source_id == FLAGS.c.source_id)
        .outerjoin(_ORIGINAL_SOURCE, _ORIGINAL_SOURCE.c.source_id == FLAGS.c.original_source_id)
    )


def flag_row(row: Row[Any]) -> FlagRow:
    """Return a row of the query ``flag_rows`` as a value."""
    return FlagRow(**row._asdict())


def add_to_tally(connection: Connection, changes: Mapping[tuple[Kind, State], int]) -> None:
    """Add to the number of entries of each kind and state.

    The caller must hold ``Lock.FLAGS``, so nobody else changes the same rows.
    """
    rows = [{"this_kind": kind, "this_state": state, "more": more} for (kind, state), more in changes.items() if more]
    if rows:
        connection.execute(_TALLY_CHANGE, rows)


def tally(connection: Connection) -> dict[tuple[Kind, State], int]:
    """Return the number of entries of each kind and state."""
    found = {(row.kind, row.state): row.flags for row in connection.execute(select(TALLY))}
    return {(kind, state): found.get((kind, state), 0) for kind in KINDS for state in STATES}
