"""The one format of errors: problem details (RFC 9457), ``application/problem+json``.

``docs/http_api.md`` lists the types. Clients tell problems apart by ``type`` and ``limit``; sentences may change.
"""

from collections.abc import Mapping
from typing import Annotated, Final, NamedTuple

import msgspec
from starlette.responses import Response

from consumer.telemetry.metrics.requests import LimitName
from consumer.text.redaction import without_credentials

CONTENT_TYPE: Final = "application/problem+json"
TYPE_PREFIX: Final = "urn:dupwatch:problem:"


class Kind(NamedTuple):
    """A type of problem: the end of its URN, its status and its title."""

    name: str
    status: int
    title: str


MALFORMED: Final = Kind("malformed", 400, "Not an HTTP request")
UNAUTHORIZED: Final = Kind("unauthorized", 401, "No valid token")
FORBIDDEN: Final = Kind("forbidden", 403, "The token does not allow this")
NOT_FOUND: Final = Kind("not-found", 404, "No such resource")
UNKNOWN_ARTICLE: Final = Kind("unknown-article", 404, "No such article")
METHOD: Final = Kind("method-not-allowed", 405, "Method not allowed")
TOO_SLOW: Final = Kind("too-slow", 408, "The request took too long to arrive")
NOT_FLAGGED: Final = Kind("not-flagged", 409, "The article is not flagged")
TOO_LARGE: Final = Kind("too-large", 413, "The request is too large")
MEDIA_TYPE: Final = Kind("media-type", 415, "Unsupported media type")
UNKNOWN_HOST: Final = Kind("unknown-host", 421, "Unknown host name")
INVALID_REQUEST: Final = Kind("invalid-request", 422, "Invalid request")
INVALID_ARTICLE: Final = Kind("invalid-article", 422, "Invalid article")
HEAD_TOO_LARGE: Final = Kind("head-too-large", 431, "The head of the request is too large")
DEFECT: Final = Kind("defect", 500, "A defect of the service")
STARTING: Final = Kind("starting", 503, "The service is starting")
BUSY: Final = Kind("busy", 503, "The service is busy")
STORE: Final = Kind("store", 503, "The store does not answer")
NOT_READY: Final = Kind("not-ready", 503, "Nothing can be stored now")
OUTCOME_UNKNOWN: Final = Kind("outcome-unknown", 503, "Whether the request has had its effect is not known")
UNCHECKED: Final = Kind("unchecked", 503, "Tokens cannot be checked")

KINDS: Final = (
    MALFORMED, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, UNKNOWN_ARTICLE, METHOD, TOO_SLOW, NOT_FLAGGED, TOO_LARGE,
    MEDIA_TYPE, UNKNOWN_HOST, INVALID_REQUEST, INVALID_ARTICLE, HEAD_TOO_LARGE, DEFECT, STARTING, BUSY, STORE,
    NOT_READY, OUTCOME_UNKNOWN, UNCHECKED,
)  # fmt: skip
"""All of them, in the order of their status."""
OF_ACCESS: Final = (UNAUTHORIZED, FORBIDDEN, UNKNOWN_HOST, UNCHECKED)
"""Those of every route that needs a role."""


_UNKNOWN_RETRY_S: Final = 5


class Limit(msgspec.Struct, frozen=True):
    """A limit that was met: its name and its value."""

    name: LimitName
    value: float


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an article cannot be checked: one of the reasons of dead letters, and a sentence."""

    type: str
    title: str
    reason: Annotated[str, msgspec.Meta(description="One of the reasons of dead letters, such as missing_body.")]
    detail: str
    limit: Limit | None = None


class ArticleFault(msgspec.Struct, frozen=True):
    """The fault of one article of a request, counted from 0."""

    place: int
    problem: Fault


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """A problem as clients get it; ``detail`` says what to do."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    limit: Limit | None = None
    reason: str | None = None
    articles: tuple[ArticleFault, ...] = ()


class ProblemError(Exception):
    """Ends a request with a problem. ``headers`` are sent with it."""

    def __init__(
        self,
        kind: Kind,
        detail: str,
        *,
        limit: Limit | None = None,
        reason: str | None = None,
        articles: tuple[ArticleFault, ...] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.limit = limit
        self.reason = reason
        self.articles = articles
        self.headers = dict(headers or {})

    def problem(self, request_id: str) -> Problem:
        """Return what the client gets."""
        return Problem(
            type=type_of(self.kind),
            title=self.kind.title,
            status=self.kind.status,
            # It may quote what the client sent.
            detail=without_credentials(self.detail),
            request_id=request_id,
            limit=self.limit,
            reason=self.reason,
            articles=self.articles,
        )


def type_of(kind: Kind) -> str:
    """Return the URN of a type of problem."""
    return f"{TYPE_PREFIX}{kind.name}"


def retry_later(kind: Kind, detail: str, after_s: int, limit: Limit | None = None) -> ProblemError:
    """Return a problem that is gone if the request is repeated after some seconds."""
    return ProblemError(kind, detail, limit=limit, headers={"Retry-After": str(after_s)})


def defect() -> ProblemError:
    """Return the problem of an error that nobody expected."""
    return ProblemError(DEFECT, "The service failed; its log says more under this request_id.")


def outcome_unknown(what: str, limit: Limit | None = None) -> ProblemError:
    """Return the problem of a request that may have had its effect, or may still have it."""
    return retry_later(
        OUTCOME_UNKNOWN,
        f"{what} The request may have its effect all the same. Send it again after the seconds in Retry-After: it "
        "has no other effect, and gets the same answer.",
        _UNKNOWN_RETRY_S,
        limit,
    )


def response_of(error: ProblemError, request_id: str) -> Response:
    """Return the answer for a problem."""
    body = msgspec.json.encode(error.problem(request_id))
    return Response(body, error.kind.status, error.headers, CONTENT_TYPE)
