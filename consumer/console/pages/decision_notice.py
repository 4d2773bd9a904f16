"""The notice after a decision, which offers to undo it while that is possible."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from consumer.console.visit import SignedInVisit
from consumer.reviews.database import Connection
from consumer.reviews.decisions import Decision, OwnReview, own_review, own_reviews_at
from consumer.reviews.kinds.rules import RULES, Kind

REVIEW_FIELD: Final = "decided"
"""Query field: the number of the review."""
DECIDED_AT_FIELD: Final = "decided_at"
"""Query field: the time of a decision about several flags."""
REFUSED_FIELD: Final = "refused"
"""Query field: how many of the flags had already been decided or released."""
GONE_FIELD: Final = "gone"
"""Query field: how many of the flags no longer exist."""


@dataclass(frozen=True, slots=True)
class DecisionNotice:
    """A decision of this person. ``releases``: the articles count as unique. ``left_ms``: the time left to undo it.

    ``is_superseded``: a later decision replaced it.
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
        """Whether there is time left, and the decision has not been undone."""
        return self.left_ms > 0 and not self.is_undone


def decision_notice(visit: SignedInVisit, connection: Connection) -> DecisionNotice | None:
    """Return the notice for the review in the query, or None if there is no review or somebody else made it."""
    if not visit.query.text(REVIEW_FIELD):
        return None
    return review_notice(visit, connection, visit.query.integer(REVIEW_FIELD))


def review_notice(visit: SignedInVisit, connection: Connection, review_id: int) -> DecisionNotice | None:
    """Return the notice for a review, or None if somebody else made it."""
    review = own_review(connection, visit.person.person_id, review_id)
    return None if review is None else _notice_of(visit, [review], f"/reviews/{review.review_id}/undo")


def bulk_decision_notice(
    visit: SignedInVisit, connection: Connection, story_id: int | None, undo_path: str
) -> DecisionNotice | None:
    """Return the notice for the query's decision about several flags, or None without one.

    Only decisions of this person count and, if ``story_id`` is given, only flags of this story.
    """
    if not visit.query.text(DECIDED_AT_FIELD):
        return None
    at_ms = visit.query.integer(DECIDED_AT_FIELD)
    reviews = own_reviews_at(connection, visit.person.person_id, story_id, at_ms)
    if not reviews:
        return None
    return _notice_of(visit, reviews, undo_path)


def _notice_of(visit: SignedInVisit, reviews: Sequence[OwnReview], undo_path: str) -> DecisionNotice:
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
        left_ms=0 if is_sent else max(first.final_ms - visit.context.now_ms(), 0),
        releases=first.decision == "wrong" and any(RULES[review.kind].releases for review in reviews) and not is_undone,
        is_undone=is_undone,
        is_superseded=is_undone and any(review.is_superseded for review in reviews),
        undo_path=undo_path,
        refused_count=visit.query.integer(REFUSED_FIELD, 0),
        gone_count=visit.query.integer(GONE_FIELD, 0),
    )
