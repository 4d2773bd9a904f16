"""What people found out about pairs, for choosing thresholds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import Connection, func, select

from consumer.reviews.flag_row import UNDECIDED, Kind
from consumer.reviews.tables import FLAGS, PEOPLE, REVIEWS, SOURCES

_PORTION: Final = 1_000


@dataclass(frozen=True, slots=True)
class ReviewedPair:
    """A pair that somebody judged: ``right`` where the judge of dupwatch was, be it with a flag or without.

    A flag that was released elsewhere was wrong; nobody is named then.
    """

    kind: Kind
    similarity: float | None
    distance: int | None
    source: str | None
    original_source: str | None
    sampled_in: float
    decision: Literal["right", "wrong"]
    at_ms: int
    person: str


def reviewed_pairs(connection: Connection) -> Iterator[ReviewedPair]:
    """Yield all pairs about which a decision is in force, in the order in which their flags came."""
    source, original = SOURCES.alias("source_of_copy"), SOURCES.alias("source_of_original")
    after = 0
    while True:
        # By number, and not by state: no index has both, so each portion would sort all that were reviewed.
        pairs = select(FLAGS).where(FLAGS.c.flag_id > after).order_by(FLAGS.c.flag_id).limit(_PORTION).subquery("pairs")
        last = (
            select(REVIEWS.c.flag_id, func.max(REVIEWS.c.review_id).label("review_id"))
            .where(REVIEWS.c.undone_ms.is_(None), REVIEWS.c.flag_id.in_(select(pairs.c.flag_id)))
            .group_by(REVIEWS.c.flag_id)
            .subquery("last_reviews")
        )
        query = (
            select(pairs, source.c.name, original.c.name, REVIEWS.c.decision, REVIEWS.c.at_ms, PEOPLE.c.name)
            .select_from(pairs)
            .outerjoin(source, source.c.source_id == pairs.c.source_id)
            .outerjoin(original, original.c.source_id == pairs.c.original_source_id)
            .outerjoin(last, last.c.flag_id == pairs.c.flag_id)
            .outerjoin(REVIEWS, REVIEWS.c.review_id == last.c.review_id)
            .outerjoin(PEOPLE, PEOPLE.c.person_id == REVIEWS.c.person_id)
            .order_by(pairs.c.flag_id)
        )
        rows = connection.execute(query).all()
        for row in rows:
            after = row.flag_id
            if row.state in UNDECIDED:
                continue
            *_, source_name, original_name, decision, at_ms, person = row
            # A flag that was found right can be released elsewhere later.
            is_own = row.state == decision
            yield ReviewedPair(
                kind=row.kind,
                similarity=row.similarity,
                distance=row.distance,
                source=source_name,
                original_source=original_name,
                sampled_in=row.sampled_in,
                decision="right" if row.state == "right" else "wrong",
                at_ms=at_ms if is_own else row.released_ms,
                person=person if is_own else "",
            )
        if len(rows) < _PORTION:
            return
