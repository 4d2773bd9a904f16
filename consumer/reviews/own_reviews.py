"""What somebody has just decided, as the line says that offers to undo it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Connection, select

from consumer.reviews.decisions import Decision
from consumer.reviews.flag_row import Kind
from consumer.reviews.tables import FLAGS, REVIEWS

AT_ONCE_MAX: Final = 10_000
"""Reviews that one decision may have made."""


@dataclass(frozen=True, slots=True)
class OwnReview:
    """A decision of one's own. ``is_sent``: its release is on its way, or sent, or was refused."""

    review_id: int
    flag_id: int
    kind: Kind
    article_id: str
    decision: Decision
    at_ms: int
    final_ms: int
    undone_ms: int | None
    is_sent: bool


def own_review(connection: Connection, person_id: int, review_id: int) -> OwnReview | None:
    """Return a review, None where there is none of this number or it is somebody else's."""
    found = _reviews(connection, [REVIEWS.c.review_id == review_id, REVIEWS.c.person_id == person_id], 1)
    return found[0] if found else None


def own_reviews_at(connection: Connection, person_id: int, story_id: int, at_ms: int) -> Sequence[OwnReview]:
    """Return what somebody decided about flags of one story at one moment, at most ``AT_ONCE_MAX``."""
    conditions = [REVIEWS.c.at_ms == at_ms, REVIEWS.c.person_id == person_id, FLAGS.c.story_id == story_id]
    return _reviews(connection, conditions, AT_ONCE_MAX)


def _reviews(connection: Connection, conditions: Sequence[ColumnElement[bool]], limit: int) -> list[OwnReview]:
    query = (
        select(
            REVIEWS.c.review_id,
            REVIEWS.c.flag_id,
            FLAGS.c.kind,
            FLAGS.c.article_id,
            REVIEWS.c.decision,
            REVIEWS.c.at_ms,
            REVIEWS.c.final_ms,
            REVIEWS.c.undone_ms,
            REVIEWS.c.claimed_ms.is_not(None) | REVIEWS.c.sent_ms.is_not(None) | REVIEWS.c.refused.is_not(None),
        )
        .join_from(REVIEWS, FLAGS, FLAGS.c.flag_id == REVIEWS.c.flag_id)
        .where(*conditions)
        .order_by(REVIEWS.c.review_id)
        .limit(limit)
    )
    return [OwnReview(*row) for row in connection.execute(query)]
