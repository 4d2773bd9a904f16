"""The routes of the service, with their parameters and roles, and the application."""

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
from consumer.service.access import TokenAuthentication, require_role
from consumer.service.checking import CheckHandler
from consumer.service.context import ServiceContext
from consumer.service.messages import VERSION_CHARS_MAX
from consumer.service.openapi import (
    CHECK_ANSWER_EXAMPLE,
    CHECK_EXAMPLE,
    RELEASE_EXAMPLE,
    STORE_EXAMPLE,
    document,
    explain_answer,
    json_answer,
    json_body,
    problem_answers,
    store_answer,
)
from consumer.service.problems import INVALID_REQUEST, METHOD, NOT_FOUND
from consumer.service.reading import FreshStats, article_answer, article_id_in, count_store, explanation_answer
from consumer.service.writing import KEY_HEADER, Writes
from consumer.web.access import Access
from consumer.web.front import Front
from consumer.web.problems import BUSY, STORE, TOO_SLOW, ProblemError, defect, response_of
from consumer.web.requests import SERVICE

COMMON_PROBLEMS: Final = (*problems.ACCESS_PROBLEMS, problems.STARTING, BUSY, STORE)
"""The problems of every route that needs a role and the store."""
_ARTICLE_PROBLEMS: Final = (problems.UNKNOWN_ARTICLE, problems.INVALID_REQUEST, *COMMON_PROBLEMS)
BODY_PROBLEMS: Final = (TOO_SLOW, problems.TOO_LARGE, problems.MEDIA_TYPE, problems.INVALID_REQUEST)
"""The problems of every route that takes a body."""
_CHECK_PROBLEMS: Final = (*BODY_PROBLEMS, problems.INVALID_ARTICLE, *COMMON_PROBLEMS)
_ARTICLES: Final = "articles"
"""The group of all routes except those for banks and for operators. A generated client has a module of this name."""
_READER: Final = [Depends(require_role("reader"))]
_WRITE_PROBLEMS: Final = (problems.INVALID_REQUEST, problems.NOT_READY, problems.OUTCOME_UNKNOWN, *COMMON_PROBLEMS)
_WRITER: Final = [Depends(require_role("writer"))]
_REVIEWER: Final = [Depends(require_role("reviewer"))]


def _key_header(description: str, *, required: bool) -> dict[str, Any]:
    """Describe the header with the client's key."""
    schema = {"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX}
    return {"name": KEY_HEADER, "in": "header", "required": required, "description": description, "schema": schema}


_RETRACTION_KEY: Final = _key_header(
    "A key that you choose for this retraction. Use the same key when you repeat it.", required=True
)
_ARTICLES_KEY: Final = _key_header(
    "A key that you choose for this request. Use the same key when you repeat it. With a key, a text that is no longer "
    "in force for its id comes into force again. Without a key, it gets its earlier verdict.",
    required=False,
)

IdInPath = Annotated[str, Path(description="An article's id, percent-encoded: a slash in it is %2F.")]
VersionParameter = Annotated[
    str | None,
    Query(description="The name of the version in events, by default the latest.", max_length=VERSION_CHARS_MAX),
]
_METHOD_NOT_ALLOWED: Final = 405
_HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
"""Headers sent with every answer."""


def reading_routes(context: ServiceContext, checks: CheckHandler) -> APIRouter:
    """Return the routes that only read."""
    router = APIRouter(prefix="/v1", dependencies=_READER)
    stats, ask_check = FreshStats(), context.joint_checks(checks.answer)

    @router.post(
        "/check",
        operation_id="check",
        tags=[_ARTICLES],
        summary="What articles would repeat",
        responses=json_answer("CheckAnswer", "A result for each article, in their order.", CHECK_ANSWER_EXAMPLE)
        | problem_answers(*_CHECK_PROBLEMS),
        openapi_extra=json_body("CheckRequest", CHECK_EXAMPLE),
    )
    async def check(request: Request) -> Response:
        """Return what each article would repeat if it arrived now, with the evidence. Nothing is stored."""
        async with context.receiving.receive(request) as body:
            return json_response(await ask_check(request, body))

    @router.get(
        "/articles/{id}",
        operation_id="get_article",
        tags=[_ARTICLES],
        summary="An article",
        responses=json_answer("ArticleAnswer", "The stored article.") | problem_answers(*_ARTICLE_PROBLEMS),
    )
    async def article(request: Request, id: IdInPath) -> Response:  # noqa: A002  # as in the path
        """Return the versions and retractions of an article with their verdicts, and the chain to its original."""
        article_id = article_id_in(id)
        return json_response(await context.ask(request, lambda service: article_answer(service.store, article_id)))

    @router.get(
        "/articles/{id}/explain/{other}",
        operation_id="explain",
        tags=[_ARTICLES],
        summary="Why two articles are near-duplicates, or why not",
        responses=explain_answer() | problem_answers(*_ARTICLE_PROBLEMS),
    )
    async def explain(
        request: Request,
        id: IdInPath,  # noqa: A002  # as in the path
        other: IdInPath,
        version: VersionParameter = None,
        other_version: VersionParameter = None,
    ) -> Response:
        """Compare two stored articles. The answer has every condition with its figures, and the difference."""
        a, b = (article_id_in(id), version), (article_id_in(other), other_version)
        return json_response(await context.ask(request, lambda service: explanation_answer(service, a, b)))

    @router.get(
        "/stats",
        operation_id="get_stats",
        tags=[_ARTICLES],
        summary="What the store holds",
        responses=json_answer("StatsAnswer", "As counted some seconds ago.") | problem_answers(*COMMON_PROBLEMS),
    )
    async def store_stats(request: Request) -> Response:
        """Return what the store holds. It is counted at most every ten seconds, and a large store less often."""
        return json_response(await stats.answer(lambda: context.ask(request, count_store)))

    return router


def writing_routes(context: ServiceContext, writes: Writes) -> APIRouter:
    """Return the routes that store, retract and release."""
    router = APIRouter(prefix="/v1")

    @router.post(
        "/articles",
        operation_id="store_articles",
        tags=[_ARTICLES],
        dependencies=_WRITER,
        summary="Judge and store articles",
        responses=store_answer() | problem_answers(*BODY_PROBLEMS, problems.INVALID_ARTICLE, *_WRITE_PROBLEMS),
        openapi_extra=json_body("StoreRequest", STORE_EXAMPLE) | {"parameters": [_ARTICLES_KEY]},
    )
    async def add(request: Request) -> Response:
        """Judge articles in their order and store them. The answer comes once the sink has the verdicts.

        An article that is sent again gets the same verdict, byte for byte, unless a person has released it, or its text
        is no longer in force and the request has another key.
        """
        async with context.receiving.receive(request) as body:
            stored = await writes.put(request, body)
        return json_response(await writes.answer(request, stored))

    @router.delete(
        "/articles/{id}",
        operation_id="retract_article",
        tags=[_ARTICLES],
        dependencies=_WRITER,
        summary="Retract an article",
        responses=json_answer("Verdict", "The event of the retraction.") | problem_answers(*_WRITE_PROBLEMS),
        openapi_extra={"parameters": [_RETRACTION_KEY]},
    )
    async def retract(request: Request, id: IdInPath) -> Response:  # noqa: A002  # as in the path
        """Retract an article: later articles are not compared with it. Repeating it with the same key does nothing."""
        return json_response(await writes.retract(request, article_id_in(id)))

    @router.post(
        "/articles/{id}/release",
        operation_id="release_article",
        tags=[_ARTICLES],
        dependencies=_REVIEWER,
        summary="Undo a flag",
        responses=json_answer("Verdict", "The event of the release.")
        | problem_answers(*BODY_PROBLEMS, problems.UNKNOWN_ARTICLE, problems.NOT_FLAGGED, *_WRITE_PROBLEMS),
        openapi_extra=json_body("ReleaseRequest", RELEASE_EXAMPLE),
    )
    async def release(request: Request, id: IdInPath) -> Response:  # noqa: A002  # as in the path
        """Undo the flag of an article, which is kept after all. Repeating the request returns the same answer."""
        article_id = article_id_in(id)
        async with context.receiving.receive(request) as body:
            return json_response(await writes.release(request, article_id, body))

    return router


def json_response(data: bytes) -> Response:
    """Return an answer that is JSON."""
    return Response(data, media_type="application/json")


def build_app(routers: Sequence[APIRouter], access: Access, authentication: TokenAuthentication, hooks: Hooks) -> Front:
    """Return the application with these routes, wrapped in a ``Front``."""
    # FastAPI's pages of documentation would load scripts from elsewhere.
    app = FastAPI(
        title="dupwatch", version=program_version(), openapi_url=None, docs_url=None, redoc_url=None,
        redirect_slashes=False,
    )  # fmt: skip
    for router in routers:
        app.include_router(router)
    app.state.authentication = authentication
    app.openapi = lambda: document(app, routers, needs_token=authentication.needs_token)  # type: ignore[method-assign]  # as FastAPI's documentation says
    problem_handlers = _ProblemHandlers([route for router in routers for route in router.routes])
    app.add_exception_handler(ProblemError, problem_handlers.answer)
    app.add_exception_handler(HTTPException, problem_handlers.answer_router)
    app.add_exception_handler(RequestValidationError, problem_handlers.answer_parameters)
    app.add_exception_handler(Exception, problem_handlers.answer_defect)

    async def route_raw_path(scope: Scope, receive: Receive, send: Send) -> None:
        # Paths are routed percent-encoded, as they were sent, because ids may contain slashes.
        scope["path"] = scope["raw_path"].decode("ascii")
        await app(scope, receive, send)

    return Front(route_raw_path, SERVICE, access, hooks, _HEADERS, problem_handlers.answer)


class _ProblemHandlers:
    """The handlers that turn errors into problem answers."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self._routes = routes

    def answer(self, request: Request, error: Exception) -> Response:
        """Answer the problem that a route has raised."""
        assert isinstance(error, ProblemError)  # noqa: S101  # it is registered for that class
        if error.limit is not None:
            request.state.limit = error.limit.name
        return response_of(error, request.state.request_id)

    def answer_router(self, request: Request, error: Exception) -> Response:
        """Answer an unknown path, or a method that the path does not have."""
        assert isinstance(error, HTTPException)  # noqa: S101  # as above
        if error.status_code == _METHOD_NOT_ALLOWED:
            methods = ", ".join(self._methods(request))
            refused = ProblemError(METHOD, f"This path allows only {methods}.", headers={"Allow": methods})
        else:
            refused = ProblemError(NOT_FOUND, "There is no such path; /openapi.json describes all paths.")
        return self.answer(request, refused)

    def answer_defect(self, request: Request, error: Exception) -> Response:
        """Answer an unexpected error without revealing it. Starlette re-raises it, and ``Front`` logs it."""
        del error
        return self.answer(request, defect())

    def answer_parameters(self, request: Request, error: Exception) -> Response:
        """Answer an invalid query parameter, without repeating its value."""
        assert isinstance(error, RequestValidationError)  # noqa: S101  # as above
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        return self.answer(request, ProblemError(INVALID_REQUEST, f"{name}: {first['msg']}."))

    def _methods(self, request: Request) -> list[str]:
        """Return the methods of a path. The router knows only those of the first matching route."""
        routes = [route for route in self._routes if isinstance(route, Route)]
        matching = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
        return sorted({method for route in matching for method in route.methods or ()})
