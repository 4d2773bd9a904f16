"""What is wrong with articles, and with bodies that should hold some, as clients are told."""

from collections.abc import Callable, Sequence
from typing import cast

from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits
from consumer.service.problems import (
    INVALID_ARTICLE,
    INVALID_REQUEST,
    ArticleFault,
    Fault,
    Limit,
    ProblemError,
    type_of,
)
from consumer.telemetry.metrics.requests import LimitMet, LimitName
from consumer.text.redaction import without_credentials

ARTICLES = "articles"
"""The one member of a body."""


def fault_of(reason: str, detail: str, limit: str, limits: DecodeLimits) -> Fault:
    """Return the fault of an article; ``limit`` names the limit that it has met, "" for none."""
    # It may quote what the client sent.
    told = without_credentials(detail)
    return Fault(type_of(INVALID_ARTICLE), INVALID_ARTICLE.title, reason, told, _limit(limit, limits))


def check_some_valid(faults: Sequence[ArticleFault], articles: int, report: Callable[[object], None]) -> None:
    """Report the limits that articles have met. Raises ``ProblemError`` where all of a request's are faulty."""
    are_all = len(faults) == articles
    # The limit of the first is counted with the problem that names it.
    for fault in faults[are_all:]:
        if fault.problem.limit is not None:
            report(LimitMet(fault.problem.limit.name))
    if not are_all:
        return
    first = faults[0].problem
    raise ProblemError(
        INVALID_ARTICLE,
        f"No article is valid. The first: {first.detail}.",
        limit=first.limit,
        reason=first.reason,
        articles=tuple(faults),
    )


def invalid_id(error: BadRecord, limits: DecodeLimits) -> ProblemError:
    """Return the problem of an id in a path that no article can have."""
    return ProblemError(INVALID_REQUEST, f"{error.detail}.", reason=error.reason, limit=_limit(error.limit, limits))


def unreadable(error: BadRecord, limits: DecodeLimits) -> ProblemError:
    """Return the problem of a body that cannot be read."""
    return ProblemError(
        INVALID_REQUEST,
        f"The body cannot be read: {error.detail}.",
        reason=error.reason,
        limit=_limit(error.limit, limits),
    )


def no_articles() -> ProblemError:
    """Return the problem of a body that is something else than a list of articles."""
    return ProblemError(
        INVALID_REQUEST, f'Send an object with "{ARTICLES}", a list of at least one article, and nothing else.'
    )


def too_many_articles(articles: int, articles_max: int) -> ProblemError:
    """Return the problem of a request with more articles than are allowed."""
    return ProblemError(
        INVALID_REQUEST,
        f"The request has {articles} articles. Send at most {articles_max} at a time.",
        limit=Limit("articles_max", articles_max),
    )


def _limit(name: str, limits: DecodeLimits) -> Limit | None:
    return Limit(cast("LimitName", name), getattr(limits, name)) if name else None
