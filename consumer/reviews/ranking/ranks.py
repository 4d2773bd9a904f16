"""The ranks of sources that are in effect, as the page of sources shows them and as stories are ordered by them."""

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, func, select

from consumer.reviews.tables import PEOPLE, SOURCE_RANKS, SOURCES

RANK_MIN: Final = -1_000
RANK_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class SourceRank:
    """The rank of a source. ``person`` set it at ``at_ms``; None for a rank of the configuration.

    ``applied_to`` is the number of the story up to which stories have it, None once all have.
    """

    source_id: int
    source: str
    rank: int
    person: str | None
    at_ms: int
    applied_to: int | None

    @property
    def is_removed(self) -> bool:
        """Whether nobody gives the source a rank any more; the row is there until all stories are without it."""
        return self.rank == 0 and self.person is None


def ranks_in_effect(connection: Connection) -> dict[int, int]:
    """Return the rank of each source that has one, or had one that some stories still have."""
    query = select(SOURCE_RANKS.c.source_id, SOURCE_RANKS.c.rank)
    return {row.source_id: row.rank for row in connection.execute(query)}


def listed_ranks(connection: Connection, limit: int | None = None) -> list[SourceRank]:
    """Return the ranks, the highest first, up to ``limit``."""
    query = _rows().order_by(SOURCE_RANKS.c.rank.desc(), SOURCES.c.name).limit(limit)
    return [_rank(row) for row in connection.execute(query)]


def rank_of(connection: Connection, source_id: int) -> SourceRank | None:
    """Return the rank of a source, None where it has none."""
    row = connection.execute(_rows().where(SOURCE_RANKS.c.source_id == source_id)).one_or_none()
    return None if row is None else _rank(row)


def least_applied(connection: Connection) -> int | None:
    """Return the number of the story up to which all stories have all ranks; None where every story has them."""
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
