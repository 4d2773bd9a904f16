"""All pairs with what people decided about them, for choosing thresholds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import Connection, Row, func, select

from consumer.reviews.flag_row import Kind
from consumer.reviews.tables import FLAGS, PEOPLE, REVIEWS, SOURCES

_PORTION: Final = 1_000
Decided = Literal["right", "wrong"]
DECIDED: Final[dict[str, Decided]] = {"right": "right", "wrong": "wrong", "released": "wrong"}
"""What a state of a pair says of it; nobody has decided about pairs in other states."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A flag or a near miss, and whether the two are copies of each other: ``right`` where somebody said so.

    A flag that was released elsewhere was wrong; nobody is named then. ``decision`` is None where nobody has decided.
    """

    kind: Kind
    similarity: float | None
    distance: int | None
    source: str | None
    original_source: str | None
    sampled_in: float
    arrived_ms: int
    decision: Decided | None
    at_ms: int | None
    person: str | None


def pairs(connection: Connection) -> Iterator[Pair]:
    """Yield all pairs in the order in which they came, with the decision that is in force."""
    source, original = SOURCES.alias("source_of_copy"), SOURCES.alias("source_of_original")
    after = 0
    while True:
        # By number: each portion is found by the index of the primary key.
        some = select(FLAGS).where(FLAGS.c.flag_id > after).order_by(FLAGS.c.flag_id).limit(_PORTION).subquery("some")
        last = (
            select(REVIEWS.c.flag_id, func.max(REVIEWS.c.review_id).label("review_id"))
            .where(REVIEWS.c.undone_ms.is_(None), REVIEWS.c.flag_id.in_(select(some.c.flag_id)))
            .group_by(REVIEWS.c.flag_id)
            .subquery("last_reviews")
        )
        query = (
            select(some, source.c.name, original.c.name, REVIEWS.c.decision, REVIEWS.c.at_ms, PEOPLE.c.name)
            .select_from(some)
            .outerjoin(source, source.c.source_id == some.c.source_id)
            .outerjoin(original, original.c.source_id == some.c.original_source_id)
            .outerjoin(last, last.c.flag_id == some.c.flag_id)
            .outerjoin(REVIEWS, REVIEWS.c.review_id == last.c.review_id)
            .outerjoin(PEOPLE, PEOPLE.c.person_id == REVIEWS.c.person_id)
            .order_by(some.c.flag_id)
        )
        rows = connection.execute(query).all()
        for row in rows:
            after = row.flag_id
            yield _pair(row)
        if len(rows) < _PORTION:
            return


def _pair(row: Row[*tuple[Any, ...]]) -> Pair:
    *_, source, original_source, decision, at_ms, person = row
    # A flag that was found right can be released elsewhere later.
    is_own, is_decided = row.state == decision, row.state in DECIDED
    return Pair(
        kind=row.kind,
        similarity=row.similarity,
        distance=row.distance,
        source=source,
        original_source=original_source,
        sampled_in=row.sampled_in,
        arrived_ms=row.arrived_ms,
        decision=DECIDED.get(row.state),
        at_ms=at_ms if is_own else row.released_ms if is_decided else None,
        person=person if is_own else None,
    )
