"""How many pairs are alike in what a threshold is judged by: what a million of them come down to."""

from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, func, select

from consumer.reviews.export import DECIDED, Decided
from consumer.reviews.flag_row import Kind
from consumer.reviews.tables import FLAGS, SOURCES

ROWS_MAX: Final = 200_000
"""Different combinations that are counted; similarities have four digits, so ordinary ones are far fewer."""


class TooManyDifferent(Exception):  # noqa: N818  # named for the pairs: nothing failed
    """There are more than ``ROWS_MAX`` combinations."""

    def __init__(self) -> None:
        super().__init__(f"pairs differ in more than {ROWS_MAX} ways")


class PairCount(NamedTuple):
    """So many pairs of a kind with the same similarity, sampling and decision; when the first and the last came."""

    kind: Kind
    similarity: float
    decision: Decided | None
    sampled_in: float
    pairs: int
    first_ms: int
    last_ms: int


class SourceReviews(NamedTuple):
    """A source of later articles, and how many of its pairs are decided and have a similarity."""

    source_id: int | None
    name: str
    reviews: int


def pair_counts(connection: Connection, source_id: int | None = None) -> list[PairCount]:
    """Count all pairs that have a similarity, or those of a source. Raises ``TooManyDifferent``."""
    alike = (FLAGS.c.kind, FLAGS.c.state, FLAGS.c.similarity, FLAGS.c.sampled_in)
    query = (
        select(*alike, func.count(), func.min(FLAGS.c.arrived_ms), func.max(FLAGS.c.arrived_ms))
        .where(*_verified(source_id))
        .group_by(*alike)
        .limit(ROWS_MAX + 1)
    )
    rows = connection.execute(query).all()
    if len(rows) > ROWS_MAX:
        raise TooManyDifferent
    return [
        PairCount(kind, similarity, DECIDED.get(state), sampled_in, pairs, first_ms, last_ms)
        for kind, state, similarity, sampled_in, pairs, first_ms, last_ms in rows
    ]


def without_similarity(connection: Connection) -> int:
    """Return how many decided pairs have none, since nothing was verified."""
    unverified = (FLAGS.c.similarity.is_(None), FLAGS.c.state.in_(DECIDED))
    return connection.execute(select(func.count()).select_from(FLAGS).where(*unverified)).scalar_one()


def reviews_by_source(connection: Connection) -> list[SourceReviews]:
    """Return the sources that have reviews, those with the most first; "" is no source, or one not read yet."""
    query = (
        select(FLAGS.c.source_id, SOURCES.c.name, func.count())
        .outerjoin(SOURCES, SOURCES.c.source_id == FLAGS.c.source_id)
        .where(FLAGS.c.similarity.is_not(None), FLAGS.c.state.in_(DECIDED))
        .group_by(FLAGS.c.source_id, SOURCES.c.name)
    )
    found = [SourceReviews(source_id, name or "", reviews) for source_id, name, reviews in connection.execute(query)]
    return sorted(found, key=lambda each: (-each.reviews, each.name))


def _verified(source_id: int | None) -> list[ColumnElement[bool]]:
    of_source = [] if source_id is None else [FLAGS.c.source_id == source_id]
    return [FLAGS.c.similarity.is_not(None), *of_source]
