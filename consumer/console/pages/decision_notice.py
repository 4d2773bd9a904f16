"""The line that says what was just decided, and offers to undo it while that is possible."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from consumer.console.visit import SignedInVisit
from consumer.reviews.database import Connection
from consumer.reviews.decisions import Decision, OwnReview, own_review, own_reviews_at
from consumer.reviews.kinds.rules import RULES, Kind

ONE: Final = "decided"
"""The field of a query that has the number of the review."""
MANY: Final = "decided_at"
"""The field of a query that has the time of a decision about many flags."""
REFUSED: Final = "refused"
"""The field of a query that has how many of them had been decided before."""
GONE: Final = "gone"
"""The field of a query that has how many of them are no longer there."""


@dataclass(frozen=True, slots=True)
class DecisionNotice:
    """A decision that was just made. ``releases``: the articles count as unique. ``left_ms``: the time left to undo it.

    ``is_superseded``: it is undone because a later decision took its place.
    """

    decision: Decision
    kind: Kind
    flag_id: int
    article_id: str
    count: int
    at_ms: int
    final_ms: int
    left_ms: int
    releases: bool
    is_undone: bool
    is_superseded: bool
    undo_path: str
    refused_count: int
    gone_count: int

    @property
    def can_be_undone(self) -> bool:
        """Whether there is time left."""
        return self.left_ms > 0 and not self.is_undone


def decision_notice(asked: SignedInVisit, connection: Connection) -> DecisionNotice | None:
    """Return what the query says was decided; None where it says nothing, or it was somebody else."""
    return review_notice(asked, connection, asked.query.integer(ONE)) if asked.query.text(ONE) else None


def review_notice(asked: SignedInVisit, connection: Connection, review_id: int) -> DecisionNotice | None:
    """Return what was decided in a review of one's own; None where it is somebody else's."""
    review = own_review(connection, asked.person.person_id, review_id)
    return None if review is None else _said(asked, [review], f"/reviews/{review.review_id}/undo")


def bulk_decision_notice(
    asked: SignedInVisit, connection: Connection, story_id: int | None, undo_path: str
) -> DecisionNotice | None:
    """Return the same of a decision about flags of a story, or of several."""
    if not asked.query.text(MANY):
        return None
    at_ms = asked.query.integer(MANY)
    reviews = own_reviews_at(connection, asked.person.person_id, story_id, at_ms)
    if not reviews:
        return None
    return _said(asked, reviews, undo_path)


def _said(asked: SignedInVisit, reviews: Sequence[OwnReview], undo_path: str) -> DecisionNotice:
    first = reviews[0]
    is_undone = all(review.undone_ms is not None for review in reviews)
    is_sent = all(review.is_sent for review in reviews)
    return DecisionNotice(
        decision=first.decision,
        kind=first.kind,
        flag_id=first.flag_id,
        article_id=first.article_id,
        count=len(reviews),
        at_ms=first.at_ms,
        final_ms=first.final_ms,
        left_ms=0 if is_sent else max(first.final_ms - asked.desk.now_ms(), 0),
        releases=first.decision == "wrong" and any(RULES[review.kind].releases for review in reviews) and not is_undone,
        is_undone=is_undone,
        is_superseded=is_undone and any(review.is_superseded for review in reviews),
        undo_path=undo_path,
        refused_count=asked.query.integer(REFUSED, 0),
        gone_count=asked.query.integer(GONE, 0),
    )
