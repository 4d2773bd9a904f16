"""Reviewed pairs: one by one for ``dupwatch reviews``, and counted for the evaluation of thresholds.

Of the queue entries, only flags and near misses are included, since the threshold does not separate the other kinds. A
pair decided by a standing decision counts as undecided, because nobody has looked at it. Repairs of stories are
exported but not counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, Select, func, literal, select

from consumer.reviews.decisions import is_standing
from consumer.reviews.flag_row import STATES
from consumer.reviews.kinds.rules import MEASURED_KINDS, MeasuredKind
from consumer.reviews.pairs.reports import reports_in_force
from consumer.reviews.repairs.repair_list import StoryMerge, VersionSplit, merges, splits
from consumer.reviews.tables import FLAGS, PEOPLE, REASONS, REVIEWS, SOURCES, STANDING_DECISIONS

_PORTION: Final = 1_000
PairDecision = Literal["right", "wrong"]
DECISIONS_BY_STATE: Final[dict[str, PairDecision]] = {"right": "right", "wrong": "wrong", "released": "wrong"}
"""The decision behind each state of a decided pair. Pairs in other states are undecided."""
ROWS_MAX: Final = 200_000
"""The maximum number of ``PairCount`` values. Similarities have four digits, so there are usually far fewer."""
# The certainty is the similarity, or below 0 without one. Unlike the similarity, it is indexed.
_VERIFIED: Final = FLAGS.c.certainty >= 0


class RepairedPair(NamedTuple):
    """The two articles of a repair. In a merge, they are originals, whose versions are unknown."""

    id: str
    version: str | None
    original: str
    original_version: str | None


@dataclass(frozen=True, slots=True)
class PairReview:
    """A flag, near miss, report or repair, and whether its two articles are copies of each other.

    ``decision`` is ``right`` for copies, and None if undecided. A flag released elsewhere is wrong, and names nobody. A
    report is always right, and is not a sample. A repair says whether the articles are one story: a merge is right, a
    split is wrong.
    """

    kind: MeasuredKind | Literal["report", "split", "merge"]
    similarity: float | None
    distance: int | None
    source: str | None
    original_source: str | None
    sampled_in: float
    # None for a merge.
    arrived_ms: int | None
    decision: PairDecision | None
    at_ms: int | None
    person: str | None
    # For *wrong*, from the list of reasons.
    reason: str | None
    # None unless it is a repair.
    repaired: RepairedPair | None = None


def pairs(connection: Connection) -> Iterator[PairReview]:
    """Yield all pairs in order of storage, with their decisions in force, then reports and repairs."""
    source, original = SOURCES.alias("source_of_copy"), SOURCES.alias("source_of_original")
    after = 0
    while True:
        # Each portion is found by the primary key.
        measured = (FLAGS.c.flag_id > after, FLAGS.c.kind.in_(MEASURED_KINDS))
        some = select(FLAGS).where(*measured).order_by(FLAGS.c.flag_id).limit(_PORTION).subquery("some")
        last = (
            select(REVIEWS.c.flag_id, func.max(REVIEWS.c.review_id).label("review_id"))
            .where(REVIEWS.c.undone_ms.is_(None), REVIEWS.c.flag_id.in_(select(some.c.flag_id)))
            .group_by(REVIEWS.c.flag_id)
            .subquery("last_reviews")
        )
        query = (
            select(
                some,
                source.c.name,
                original.c.name,
                REVIEWS.c.decision,
                REVIEWS.c.at_ms,
                REVIEWS.c.standing_id,
                PEOPLE.c.name,
                REASONS.c.name,
            )
            .select_from(some)
            .outerjoin(source, source.c.source_id == some.c.source_id)
            .outerjoin(original, original.c.source_id == some.c.original_source_id)
            .outerjoin(last, last.c.flag_id == some.c.flag_id)
            .outerjoin(REVIEWS, REVIEWS.c.review_id == last.c.review_id)
            .outerjoin(PEOPLE, PEOPLE.c.person_id == REVIEWS.c.person_id)
            .outerjoin(REASONS, REASONS.c.reason_id == REVIEWS.c.reason_id)
            .order_by(some.c.flag_id)
        )
        rows = connection.execute(query).all()
        for row in rows:
            after = row.flag_id
            yield _pair(row)
        if len(rows) < _PORTION:
            break
    for report in reports_in_force(connection):
        yield PairReview(
            kind="report",
            similarity=report.similarity,
            distance=report.distance,
            source=report.source,
            original_source=report.original_source,
            sampled_in=1.0,
            arrived_ms=report.arrived_ms,
            decision="right",
            at_ms=report.at_ms,
            person=report.person,
            reason=None,
        )
    yield from map(_split, splits(connection))
    yield from map(_merge, merges(connection))


def _split(repair: VersionSplit) -> PairReview:
    return PairReview(
        kind="split",
        similarity=repair.similarity,
        distance=repair.distance,
        source=repair.source,
        original_source=repair.original_source,
        sampled_in=1.0,
        arrived_ms=repair.arrived_ms,
        decision="wrong",
        at_ms=repair.at_ms,
        person=repair.person,
        reason=None,
        repaired=RepairedPair(repair.article_id, repair.version, repair.original_id, repair.original_version),
    )


def _merge(repair: StoryMerge) -> PairReview:
    return PairReview(
        kind="merge",
        similarity=None,
        distance=None,
        source=repair.source,
        original_source=repair.into_source,
        sampled_in=1.0,
        arrived_ms=None,
        decision="right",
        at_ms=repair.at_ms,
        person=repair.person,
        reason=None,
        repaired=RepairedPair(repair.root_id, None, repair.into_root_id, None),
    )


def _pair(row: Row[*tuple[Any, ...]]) -> PairReview:
    *_, source, original_source, decision, at_ms, standing_id, person, reason = row
    # A flag decided as right can later be released elsewhere.
    is_in_force = row.state == decision
    is_own = is_in_force and standing_id is None
    is_decided = row.state in DECISIONS_BY_STATE and (is_own or not is_in_force)
    return PairReview(
        kind=row.kind,
        similarity=row.similarity,
        distance=row.distance,
        source=source,
        original_source=original_source,
        sampled_in=row.sampled_in,
        arrived_ms=row.arrived_ms,
        decision=DECISIONS_BY_STATE[row.state] if is_decided else None,
        at_ms=at_ms if is_own else row.released_ms if is_decided else None,
        person=person if is_own else None,
        reason=reason if is_own else None,
    )


class TooManyCombinations(Exception):  # noqa: N818  # named for the pairs; it is not a failure
    """There are more than ``ROWS_MAX`` combinations of kind, similarity, sampling and state."""

    def __init__(self) -> None:
        super().__init__(f"pairs have more than {ROWS_MAX} different combinations")


class PairCount(NamedTuple):
    """The number of pairs with the same kind, similarity, sampling and decision, and their first and last arrival."""

    kind: MeasuredKind
    similarity: float
    decision: PairDecision | None
    sampled_in: float
    pairs: int
    first_ms: int
    last_ms: int


class SourceReviews(NamedTuple):
    """A source, and the number of decided pairs with a similarity whose later article it published."""

    source_id: int | None
    name: str
    reviews: int


def pair_counts(connection: Connection, source_id: int | None = None) -> list[PairCount]:
    """Return the counts of all pairs with a similarity, or only of one source. Raises ``TooManyCombinations``.

    Pairs in different states are counted separately, even if they have the same decision.
    """
    # Flags are not sampled, so an index covers all columns of this query.
    flags = _counts_of_kind(connection, "flag", literal(1.0), (), source_id)
    near_misses = _counts_of_kind(connection, "near_miss", FLAGS.c.sampled_in, (FLAGS.c.sampled_in,), source_id)
    if len(flags) + len(near_misses) > ROWS_MAX:
        raise TooManyCombinations
    return [*flags, *near_misses]


def count_unverified(connection: Connection) -> int:
    """Return how many decided pairs have no similarity, because they were not verified."""
    unverified = (FLAGS.c.certainty < 0, FLAGS.c.kind.in_(MEASURED_KINDS), *_decided_by_people(connection))
    return connection.execute(select(func.count()).select_from(FLAGS).where(*unverified)).scalar_one()


def reviews_by_source(connection: Connection) -> list[SourceReviews]:
    """Return the sources with reviews, most reviews first; "" stands for no source or an unknown one."""
    query = (
        select(FLAGS.c.source_id, SOURCES.c.name, func.count())
        .outerjoin(SOURCES, SOURCES.c.source_id == FLAGS.c.source_id)
        .where(_VERIFIED, FLAGS.c.kind.in_(MEASURED_KINDS), *_decided_by_people(connection))
        .group_by(FLAGS.c.source_id, SOURCES.c.name)
    )
    found = [SourceReviews(source_id, name or "", reviews) for source_id, name, reviews in connection.execute(query)]
    return sorted(found, key=lambda each: (-each.reviews, each.name))


def _counts_of_kind(
    connection: Connection,
    kind: MeasuredKind,
    sampled_in: ColumnElement[float],
    extra_keys: tuple[ColumnElement[float], ...],
    source_id: int | None,
) -> list[PairCount]:
    """Return the counts of a kind, grouped by state, similarity and ``extra_keys``."""
    where = [FLAGS.c.kind == kind, _VERIFIED]
    if source_id is not None:
        where.append(FLAGS.c.source_id == source_id)
    first, last = func.min(FLAGS.c.arrived_ms), func.max(FLAGS.c.arrived_ms)
    columns = select(FLAGS.c.certainty, sampled_in, func.count(), first, last).where(*where)
    grouped = columns.group_by(FLAGS.c.certainty, *extra_keys).limit(ROWS_MAX + 1)
    # Without standing decisions, an index covers all columns of the query.
    splits_standing = kind == "flag" and _has_standing(connection)
    counts: list[PairCount] = []
    # State by state: the indexes order the similarities within a state, so no sorting is needed.
    for state in STATES:
        of_state, decision = grouped.where(FLAGS.c.state == state), DECISIONS_BY_STATE.get(state)
        if splits_standing and decision is not None:
            counts += _read_counts(connection, kind, of_state.where(is_standing()), None)
            of_state = of_state.where(~is_standing())
        counts += _read_counts(connection, kind, of_state, decision)
    return counts


def _read_counts(
    connection: Connection, kind: MeasuredKind, query: Select[*tuple[Any, ...]], decision: PairDecision | None
) -> list[PairCount]:
    return [
        PairCount(kind, similarity, decision, sampled, pairs, first_ms, last_ms)
        for similarity, sampled, pairs, first_ms, last_ms in connection.execute(query)
    ]


def _decided_by_people(connection: Connection) -> list[ColumnElement[bool]]:
    """Return the conditions for pairs that people decided or that were released elsewhere."""
    decided = FLAGS.c.state.in_(DECISIONS_BY_STATE)
    return [decided, ~is_standing()] if _has_standing(connection) else [decided]


def _has_standing(connection: Connection) -> bool:
    """Return whether any standing decision has decided a flag."""
    query = select(STANDING_DECISIONS.c.standing_id).where(STANDING_DECISIONS.c.flags > 0).limit(1)
    return connection.execute(query).first() is not None
