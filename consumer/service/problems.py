"""The problems of the service's routes, and the faults of articles and bodies."""

from collections.abc import Callable, Sequence
from typing import Final, cast

from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits
from consumer.text.redaction import without_credentials
from consumer.web.problems import (
    BUSY,
    DEFECT,
    HEAD_TOO_LARGE,
    MALFORMED,
    STORE,
    TOO_SLOW,
    UNKNOWN_HOST,
    ArticleFault,
    Fault,
    Limit,
    ProblemError,
    ProblemKind,
    retry_later,
    type_of,
)
from consumer.web.requests import LimitExceeded, LimitName

UNAUTHORIZED: Final = ProblemKind("unauthorized", 401, "No valid token")
FORBIDDEN: Final = ProblemKind("forbidden", 403, "The token does not allow this")
NOT_FOUND: Final = ProblemKind("not-found", 404, "No such resource")
UNKNOWN_ARTICLE: Final = ProblemKind("unknown-article", 404, "No such article")
NO_BANKS: Final = ProblemKind("no-banks", 404, "No banks are configured")
UNKNOWN_BANK: Final = ProblemKind("unknown-bank", 404, "No such bank")
UNKNOWN_ITEM: Final = ProblemKind("unknown-item", 404, "No such item")
METHOD: Final = ProblemKind("method-not-allowed", 405, "Method not allowed")
NOT_FLAGGED: Final = ProblemKind("not-flagged", 409, "The article is not flagged")
OTHER_ACTION: Final = ProblemKind("other-action", 409, "The bank has another action")
TOO_LARGE: Final = ProblemKind("too-large", 413, "The request is too large")
MEDIA_TYPE: Final = ProblemKind("media-type", 415, "Unsupported media type")
INVALID_REQUEST: Final = ProblemKind("invalid-request", 422, "Invalid request")
INVALID_ARTICLE: Final = ProblemKind("invalid-article", 422, "Invalid article")
STARTING: Final = ProblemKind("starting", 503, "The service is starting")
NOT_READY: Final = ProblemKind("not-ready", 503, "Nothing can be stored now")
BANKS: Final = ProblemKind("banks", 503, "The banks do not answer")
OUTCOME_UNKNOWN: Final = ProblemKind("outcome-unknown", 503, "The request may or may not have taken effect")
UNCHECKED: Final = ProblemKind("unchecked", 503, "Tokens cannot be checked")

KINDS: Final = (
    MALFORMED, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, UNKNOWN_ARTICLE, NO_BANKS, UNKNOWN_BANK, UNKNOWN_ITEM, METHOD,
    TOO_SLOW, NOT_FLAGGED, OTHER_ACTION, TOO_LARGE, MEDIA_TYPE, UNKNOWN_HOST, INVALID_REQUEST, INVALID_ARTICLE,
    HEAD_TOO_LARGE, DEFECT, STARTING, BUSY, STORE, BANKS, NOT_READY, OUTCOME_UNKNOWN, UNCHECKED,
)  # fmt: skip
"""All problems, in the order of their statuses."""
ACCESS_PROBLEMS: Final = (UNAUTHORIZED, FORBIDDEN, UNKNOWN_HOST, UNCHECKED)
"""The problems of every route that needs a role."""
ARTICLES: Final = "articles"
"""The only member of a body with articles."""
_UNKNOWN_RETRY_S: Final = 5


def fault_of(reason: str, detail: str, limit: str, limits: DecodeLimits) -> Fault:
    """Return the fault of an article. ``limit`` names the exceeded limit, or "" if none."""
    # The detail may quote what the client sent.
    public_detail = without_credentials(detail)
    return Fault(type_of(INVALID_ARTICLE), INVALID_ARTICLE.title, reason, public_detail, _limit(limit, limits))


def check_some_valid(faults: Sequence[ArticleFault], articles: int, report: Callable[[object], None]) -> None:
    """Report the limits that articles exceeded. Raises ``ProblemError`` if all articles of a request are faulty."""
    is_every_one = len(faults) == articles
    # If all are faulty, the problem raised below names the limit of the first, which is counted when it is answered.
    for fault in faults[is_every_one:]:
        if fault.problem.limit is not None:
            report(LimitExceeded(fault.problem.limit.name))
    if not is_every_one:
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
    """Return the problem of an invalid id in a path."""
    return ProblemError(INVALID_REQUEST, f"{error.detail}.", reason=error.reason, limit=_limit(error.limit, limits))


def unreadable_body(error: BadRecord, limits: DecodeLimits) -> ProblemError:
    """Return the problem of a body that cannot be read."""
    return ProblemError(
        INVALID_REQUEST,
        f"The body cannot be read: {error.detail}.",
        reason=error.reason,
        limit=_limit(error.limit, limits),
    )


def no_articles() -> ProblemError:
    """Return the problem of a body that is not an object with a non-empty list of articles and nothing else."""
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


def outcome_unknown(what: str, limit: Limit | None = None) -> ProblemError:
    """Return the problem of a request that may have taken effect, or may still do so."""
    return retry_later(
        OUTCOME_UNKNOWN,
        f"{what} The request may have taken effect, or may still do so. Send it again after the seconds in "
        "Retry-After: that has no further effect, and returns the same answer.",
        _UNKNOWN_RETRY_S,
        limit,
    )


def _limit(name: str, limits: DecodeLimits) -> Limit | None:
    return Limit(cast("LimitName", name), getattr(limits, name)) if name else None
