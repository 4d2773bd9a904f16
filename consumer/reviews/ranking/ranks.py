"""The ranks of sources in effect, for the sources page and for ordering the members of stories."""

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, func, select

from consumer.reviews.tables import PEOPLE, SOURCE_RANKS, SOURCES

RANK_MIN: Final = -1_000
RANK_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class SourceRank:
    """The rank of a source, set at ``at_ms`` by a ``person``. A configured rank has no person.

    ``applied_to`` is the id of the last story to which it has been applied, None once it has been applied to all.
    """

    source_id: int
    source: str
    rank: int
    person: str | None
    at_ms: int
    applied_to: int | None

    @property
    def is_removed(self) -> bool:
        """Whether the rank was removed. The row remains until the removal has been applied to all stories."""
        return self.rank == 0 and self.person is None


def ranks_in_effect(connection: Connection) -> dict[int, int]:
    """Return the rank of each source that has one, and 0 for removed ranks not yet applied to all stories."""
    query = select(SOURCE_RANKS.c.source_id, SOURCE_RANKS.c.rank)
    return {row.source_id: row.rank for row in connection.execute(query)}


def listed_ranks(connection: Connection, limit: int | None = None) -> list[SourceRank]:
    """Return up to ``limit`` ranks, or all, highest first, including removed ones (``is_removed``)."""
    query = _rows().order_by(SOURCE_RANKS.c.rank.desc(), SOURCES.c.name).limit(limit)
    return [_rank(row) for row in connection.execute(query)]


def rank_of(connection: Connection, source_id: int) -> SourceRank | None:
    """Return the rank of a source, or None."""
    row = connection.execute(_rows().where(SOURCE_RANKS.c.source_id == source_id)).one_or_none()
    return None if row is None else _rank(row)


def rank_progress(connection: Connection) -> int | None:
    """Return the id of the last story to which all ranks have been applied; None once all stories are done."""
    return connection.execute(select(func.min(SOURCE_RANKS.c.applied_to))).scalar()


def _rows() -> Select[Any]:
    return (
        select(
            SOURCE_RANKS.c.source_id,
            SOURCES.c.name.label("source"),
            SOURCE_RANKS.c.rank,
            PEOPLE.c.name.label("person"),
            SOURCE_RANKS.c.at_ms,
            SOURCE_RANKS.c.applied_to,
        )
        .join_from(SOURCE_RANKS, SOURCES, SOURCES.c.source_id == SOURCE_RANKS.c.source_id)
        .outerjoin(PEOPLE, PEOPLE.c.person_id == SOURCE_RANKS.c.person_id)
    )


def _rank(row: Row[Any]) -> SourceRank:
    return SourceRank(**row._asdict())
