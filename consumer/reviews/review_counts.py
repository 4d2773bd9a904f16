"""How many pairs are alike in what a threshold is judged by: what a million of them come down to."""

from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, func, literal, select

from consumer.reviews.export import DECIDED, Decided
from consumer.reviews.flag_row import STATES, Kind
from consumer.reviews.tables import FLAGS, SOURCES

ROWS_MAX: Final = 200_000
"""Different combinations that are counted; similarities have four digits, so ordinary ones are far fewer."""


# What is sorted by is the similarity, and below 0 where there is none; unlike the similarity it is in the indexes.
_VERIFIED: Final = FLAGS.c.certainty >= 0


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
    # Every flag was sent: with nothing else to tell them apart, an index has all that is asked.
    flags = _alike(connection, "flag", literal(1.0), (), source_id)
    near_misses = _alike(connection, "near_miss", FLAGS.c.sampled_in, (FLAGS.c.sampled_in,), source_id)
    if len(flags) + len(near_misses) > ROWS_MAX:
        raise TooManyDifferent
    return [*flags, *near_misses]


def without_similarity(connection: Connection) -> int:
    """Return how many decided pairs have none, since nothing was verified."""
    unverified = (FLAGS.c.certainty < 0, FLAGS.c.state.in_(DECIDED))
    return connection.execute(select(func.count()).select_from(FLAGS).where(*unverified)).scalar_one()


def reviews_by_source(connection: Connection) -> list[SourceReviews]:
    """Return the sources that have reviews, those with the most first; "" is no source, or one not read yet."""
    query = (
        select(FLAGS.c.source_id, SOURCES.c.name, func.count())
        .outerjoin(SOURCES, SOURCES.c.source_id == FLAGS.c.source_id)
        .where(_VERIFIED, FLAGS.c.state.in_(DECIDED))
        .group_by(FLAGS.c.source_id, SOURCES.c.name)
    )
    found = [SourceReviews(source_id, name or "", reviews) for source_id, name, reviews in connection.execute(query)]
    return sorted(found, key=lambda each: (-each.reviews, each.name))


def _alike(
    connection: Connection,
    kind: Kind,
    sampled_in: ColumnElement[float],
    apart: tuple[ColumnElement[float], ...],
    source_id: int | None,
) -> list[PairCount]:
    """Count those of a kind; ``apart`` tells them apart beside state and similarity."""
    where = [FLAGS.c.kind == kind, _VERIFIED]
    if source_id is not None:
        where.append(FLAGS.c.source_id == source_id)
    first, last = func.min(FLAGS.c.arrived_ms), func.max(FLAGS.c.arrived_ms)
    columns = select(FLAGS.c.certainty, sampled_in, func.count(), first, last).where(*where)
    grouped = columns.group_by(FLAGS.c.certainty, *apart).limit(ROWS_MAX + 1)
    # State by state: the indexes have the similarities of one in order, so nothing is sorted.
    return [
        PairCount(kind, similarity, DECIDED.get(state), sampled, pairs, first_ms, last_ms)
        for state in STATES
        for similarity, sampled, pairs, first_ms, last_ms in connection.execute(grouped.where(FLAGS.c.state == state))
    ]
