"""The format of errors: problem details (RFC 9457), ``application/problem+json``.

``docs/use/http_api.md`` lists the types. Clients distinguish problems by ``type`` and ``limit``; messages may change.
"""

from collections.abc import Mapping
from typing import Annotated, Final, NamedTuple

import msgspec
from starlette.responses import Response

from consumer.text.redaction import without_credentials
from consumer.web.requests import HEAD_BYTES_MAX, LimitName

CONTENT_TYPE: Final = "application/problem+json"
TYPE_PREFIX: Final = "urn:dupwatch:problem:"


class ProblemKind(NamedTuple):
    """A type of problem: the last part of its URN, its HTTP status and its title."""

    name: str
    status: int
    title: str


MALFORMED: Final = ProblemKind("malformed", 400, "Not an HTTP request")
TOO_SLOW: Final = ProblemKind("too-slow", 408, "The request took too long to arrive")
UNKNOWN_HOST: Final = ProblemKind("unknown-host", 421, "Unknown host name")
HEAD_TOO_LARGE: Final = ProblemKind("head-too-large", 431, "The head of the request is too large")
DEFECT: Final = ProblemKind("defect", 500, "Internal error")
BUSY: Final = ProblemKind("busy", 503, "The service is busy")
STORE: Final = ProblemKind("store", 503, "The store does not answer")


class Limit(msgspec.Struct, frozen=True):
    """An exceeded limit: its name and its value."""

    name: LimitName
    value: float


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an article cannot be checked or judged: one of the reasons of dead letters, and a sentence."""

    type: str
    title: str
    reason: Annotated[str, msgspec.Meta(description="One of the reasons of dead letters, such as missing_body.")]
    detail: str
    limit: Limit | None = None


class ArticleFault(msgspec.Struct, frozen=True):
    """The fault of one article of a request. ``place`` counts from 0."""

    place: int
    problem: Fault


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """A problem as it is sent to clients. ``detail`` says what to do."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    limit: Limit | None = None
    reason: str | None = None
    articles: tuple[ArticleFault, ...] = ()


class ProblemError(Exception):
    """An error that ends a request with a problem. ``headers`` are sent with it."""

    def __init__(
        self,
        kind: ProblemKind,
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
        """Return the problem as it is sent to the client."""
        return Problem(
            type=type_of(self.kind),
            title=self.kind.title,
            status=self.kind.status,
            # The detail may quote what the client sent.
            detail=without_credentials(self.detail),
            request_id=request_id,
            limit=self.limit,
            reason=self.reason,
            articles=self.articles,
        )


def type_of(kind: ProblemKind) -> str:
    """Return the URN of a type of problem."""
    return f"{TYPE_PREFIX}{kind.name}"


def retry_later(kind: ProblemKind, detail: str, after_s: int, limit: Limit | None = None) -> ProblemError:
    """Return a problem that should be over after ``after_s`` seconds; ``Retry-After`` tells the client."""
    return ProblemError(kind, detail, limit=limit, headers={"Retry-After": str(after_s)})


def defect() -> ProblemError:
    """Return the problem of an unexpected error."""
    return ProblemError(DEFECT, "The service failed. Its log has the error under this request_id.")


def head_too_large() -> ProblemError:
    """Return the problem of a head that is too large."""
    return ProblemError(
        HEAD_TOO_LARGE,
        f"The head of the request has more than {HEAD_BYTES_MAX} bytes. Send shorter headers.",
        limit=Limit("head_bytes_max", HEAD_BYTES_MAX),
    )


def response_of(error: ProblemError, request_id: str) -> Response:
    """Return the answer for a problem."""
    body = msgspec.json.encode(error.problem(request_id))
    return Response(body, error.kind.status, error.headers, CONTENT_TYPE)
