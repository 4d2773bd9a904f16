"""The routes: what each takes, who may ask, and what answers; and the application that they make."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, FastAPI, Path, Query
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from consumer.model.hooks import Hooks
from consumer.model.limits import KEY_CHARS_MAX
from consumer.model.program_version import program_version
from consumer.service import problems
from consumer.service.access import TokenAuthentication, allowed
from consumer.service.checking import Checks
from consumer.service.context import ServiceContext
from consumer.service.messages import VERSION_CHARS_MAX
from consumer.service.openapi import (
    CHECK_EXAMPLE,
    CHECKED_EXAMPLE,
    RELEASE_EXAMPLE,
    STORE_EXAMPLE,
    document,
    explained_answer,
    json_answer,
    json_body,
    problem_answers,
    stored_answer,
)
from consumer.service.problems import INVALID_REQUEST, METHOD, NOT_FOUND
from consumer.service.reading import FreshStats, article_answer, article_id_in, counted, explanation_answer
from consumer.service.writing import KEY_HEADER, Writes
from consumer.web.access import Access
from consumer.web.front import Front
from consumer.web.problems import BUSY, STORE, TOO_SLOW, ProblemError, defect, response_of
from consumer.web.requests import SERVICE

ALWAYS: Final = (*problems.OF_ACCESS, problems.STARTING, BUSY, STORE)
_OF_ARTICLES: Final = (problems.UNKNOWN_ARTICLE, problems.INVALID_REQUEST, *ALWAYS)
OF_BODIES: Final = (TOO_SLOW, problems.TOO_LARGE, problems.MEDIA_TYPE, problems.INVALID_REQUEST)
_OF_CHECKS: Final = (*OF_BODIES, problems.INVALID_ARTICLE, *ALWAYS)
_ARTICLES: Final = "articles"
"""The group of all routes but those of operators; a generated client has them in a module of this name."""
_READER: Final = [Depends(allowed("reader"))]
_OF_WRITES: Final = (problems.INVALID_REQUEST, problems.NOT_READY, problems.OUTCOME_UNKNOWN, *ALWAYS)
_WRITER: Final = [Depends(allowed("writer"))]
_REVIEWER: Final = [Depends(allowed("reviewer"))]


def _key_header(description: str, *, required: bool) -> dict[str, Any]:
    """Return the description of the header with the client's key."""
    schema = {"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX}
    return {"name": KEY_HEADER, "in": "header", "required": required, "description": description, "schema": schema}


_RETRACTION_KEY: Final = _key_header(
    "A key of your own for this retraction; the same one where you repeat it.", required=True
)
_ARTICLES_KEY: Final = _key_header(
    "A key of your own for this request; the same one where you repeat it. With it, text of an id that has ended comes "
    "back into force. Without it, such a text gets the verdict that it had.",
    required=False,
)

IdInPath = Annotated[str, Path(description="An article's id, percent-encoded: a slash in it is %2F.")]
VersionParameter = Annotated[
    str | None,
    Query(description="The version, as in events; by default the latest.", max_length=VERSION_CHARS_MAX),
]
_NOT_ALLOWED: Final = 405
_HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
"""Sent with every answer."""


def reading_routes(desk: ServiceContext, checks: Checks) -> APIRouter:
    """Return the routes that read; none of them stores anything."""
    router = APIRouter(prefix="/v1", dependencies=_READER)
    stats = FreshStats()

    @router.post(
        "/check",
        operation_id="check",
        tags=[_ARTICLES],
        summary="What articles would repeat",
        responses=json_answer("CheckAnswer", "A result for each article, in their order.", CHECKED_EXAMPLE)
        | problem_answers(*_OF_CHECKS),
        openapi_extra=json_body("CheckRequest", CHECK_EXAMPLE),
    )
    async def check(request: Request) -> Response:
        """Say what each article would repeat if it arrived now, with the evidence. Nothing is stored."""
        async with desk.receiving.received(request) as body:
            return json_response(await desk.ask(request, lambda judging: checks.answer(judging, body)))

    @router.get(
        "/articles/{id}",
        operation_id="get_article",
        tags=[_ARTICLES],
        summary="An article",
        responses=json_answer("ArticleAnswer", "All that is stored of it.") | problem_answers(*_OF_ARTICLES),
    )
    async def article(request: Request, id: IdInPath) -> Response:  # noqa: A002  # as in the path
        """Return the versions and retractions of an article with their verdicts, and the chain to its original."""
        article_id = article_id_in(id)
        return json_response(await desk.ask(request, lambda judging: article_answer(judging.store, article_id)))

    @router.get(
        "/articles/{id}/explain/{other}",
        operation_id="explain",
        tags=[_ARTICLES],
        summary="Why two articles are near-duplicates, or why not",
        responses=explained_answer() | problem_answers(*_OF_ARTICLES),
    )
    async def explain(
        request: Request,
        id: IdInPath,  # noqa: A002  # as in the path
        other: IdInPath,
        version: VersionParameter = None,
        other_version: VersionParameter = None,
    ) -> Response:
        """Compare two stored articles, and show every condition with its figures and how the texts differ."""
        a, b = (article_id_in(id), version), (article_id_in(other), other_version)
        return json_response(await desk.ask(request, lambda judging: explanation_answer(judging, a, b)))

    @router.get(
        "/stats",
        operation_id="get_stats",
        tags=[_ARTICLES],
        summary="What the store holds",
        responses=json_answer("StatsAnswer", "As counted some seconds ago.") | problem_answers(*ALWAYS),
    )
    async def store_stats(request: Request) -> Response:
        """Return what the store holds. It is counted every ten seconds at most, a large store less often."""
        return json_response(await stats.answer(lambda: desk.ask(request, counted)))

    return router


def writing_routes(desk: ServiceContext, writes: Writes) -> APIRouter:
    """Return the routes that store, retract and release."""
    router = APIRouter(prefix="/v1")

    @router.post(
        "/articles",
        operation_id="store_articles",
        tags=[_ARTICLES],
        dependencies=_WRITER,
        summary="Judge and store articles",
        responses=stored_answer() | problem_answers(*OF_BODIES, problems.INVALID_ARTICLE, *_OF_WRITES),
        openapi_extra=json_body("StoreRequest", STORE_EXAMPLE) | {"parameters": [_ARTICLES_KEY]},
    )
    async def add(request: Request) -> Response:
        """Judge articles in their order and store them; answer once the sink has the verdicts.

        Sent again, an article gets the same verdict, byte for byte, unless a person has released it, or its text had
        ended and the request has another key.
        """
        async with desk.receiving.received(request) as body:
            stored = await writes.put(request, body)
        return json_response(await writes.answer(request, stored))

    @router.delete(
        "/articles/{id}",
        operation_id="retract_article",
        tags=[_ARTICLES],
        dependencies=_WRITER,
        summary="Retract an article",
        responses=json_answer("Verdict", "The event of the retraction.") | problem_answers(*_OF_WRITES),
        openapi_extra={"parameters": [_RETRACTION_KEY]},
    )
    async def retract(request: Request, id: IdInPath) -> Response:  # noqa: A002  # as in the path
        """Retract an article: later articles are not compared with it. With the same key again, nothing happens."""
        return json_response(await writes.retract(request, article_id_in(id)))

    @router.post(
        "/articles/{id}/release",
        operation_id="release_article",
        tags=[_ARTICLES],
        dependencies=_REVIEWER,
        summary="Undo a flag",
        responses=json_answer("Verdict", "The event of the release.")
        | problem_answers(*OF_BODIES, problems.UNKNOWN_ARTICLE, problems.NOT_FLAGGED, *_OF_WRITES),
        openapi_extra=json_body("ReleaseRequest", RELEASE_EXAMPLE),
    )
    async def release(request: Request, id: IdInPath) -> Response:  # noqa: A002  # as in the path
        """Keep a flagged article after all. Released again, it gets the same answer."""
        article_id = article_id_in(id)
        async with desk.receiving.received(request) as body:
            return json_response(await writes.release(request, article_id, body))

    return router


def json_response(data: bytes) -> Response:
    """Return an answer that is JSON."""
    return Response(data, media_type="application/json")


def build_app(routers: Sequence[APIRouter], access: Access, entrance: TokenAuthentication, hooks: Hooks) -> Front:
    """Return the application of these routes, with what every request passes first."""
    # FastAPI's pages of documentation would load scripts from elsewhere.
    app = FastAPI(
        title="dupwatch", version=program_version(), openapi_url=None, docs_url=None, redoc_url=None,
        redirect_slashes=False,
    )  # fmt: skip
    for router in routers:
        app.include_router(router)
    app.state.entrance = entrance
    app.openapi = lambda: document(app, routers, needs_token=entrance.needs_token)  # type: ignore[method-assign]  # as FastAPI's documentation says
    answering = _Problems([route for router in routers for route in router.routes])
    app.add_exception_handler(ProblemError, answering.answered)
    app.add_exception_handler(HTTPException, answering.of_router)
    app.add_exception_handler(RequestValidationError, answering.of_parameters)
    app.add_exception_handler(Exception, answering.of_defect)

    async def encoded(scope: Scope, receive: Receive, send: Send) -> None:
        # Paths are routed as they were sent, percent-encoded: an id may contain every character, a slash among them.
        scope["path"] = scope["raw_path"].decode("ascii")
        await app(scope, receive, send)

    return Front(encoded, SERVICE, access, hooks, _HEADERS, answering.answered)


class _Problems:
    """Answers with problems."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self._routes = routes

    def answered(self, request: Request, error: Exception) -> Response:
        """Answer what a route has raised."""
        assert isinstance(error, ProblemError)  # noqa: S101  # it is registered for that class
        if error.limit is not None:
            request.state.limit = error.limit.name
        return response_of(error, request.state.request_id)

    def of_router(self, request: Request, error: Exception) -> Response:
        """Answer what the router refuses: an unknown path, or a method that the path does not have."""
        assert isinstance(error, HTTPException)  # noqa: S101  # as above
        if error.status_code == _NOT_ALLOWED:
            methods = ", ".join(self._methods(request))
            refused = ProblemError(METHOD, f"This path answers {methods}.", headers={"Allow": methods})
        else:
            refused = ProblemError(NOT_FOUND, "There is no such path; /openapi.json describes all.")
        return self.answered(request, refused)

    def of_defect(self, request: Request, error: Exception) -> Response:
        """Answer an unexpected error without revealing it. Starlette re-raises it, and ``Front`` logs it."""
        del error
        return self.answered(request, defect())

    def of_parameters(self, request: Request, error: Exception) -> Response:
        """Answer where a parameter of the query is not valid; its value is not repeated."""
        assert isinstance(error, RequestValidationError)  # noqa: S101  # as above
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        return self.answered(request, ProblemError(INVALID_REQUEST, f"{name}: {first['msg']}."))

    def _methods(self, request: Request) -> list[str]:
        """Return the methods of a path; the router knows those of its first route only."""
        routes = [route for route in self._routes if isinstance(route, Route)]
        matching = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
        return sorted({method for route in matching for method in route.methods or ()})
