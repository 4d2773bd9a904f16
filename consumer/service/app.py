"""The application: its routes, and one format for everything that goes wrong."""

from collections.abc import Sequence
from importlib import metadata
from typing import Final

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from consumer.model.hooks import Hooks
from consumer.service.access import Entrance
from consumer.service.openapi import document
from consumer.service.problems import INVALID_REQUEST, METHOD, NOT_FOUND
from consumer.web.access import Access
from consumer.web.front import Front
from consumer.web.problems import ProblemError, defect, response_of
from consumer.web.requests import SERVICE, LimitMet

_NOT_ALLOWED: Final = 405
_HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
"""Sent with every answer."""


def build_app(routers: Sequence[APIRouter], access: Access, entrance: Entrance, hooks: Hooks) -> Front:
    """Return the application of these routes, with what every request passes first."""
    # No pages of documentation: they would load scripts from elsewhere.
    app = FastAPI(
        title="dupwatch", version=metadata.version("dupwatch"), openapi_url=None, docs_url=None, redoc_url=None,
        redirect_slashes=False,
    )  # fmt: skip
    for router in routers:
        app.include_router(router)
    app.state.entrance = entrance
    app.openapi = lambda: document(app, routers, needs_token=entrance.needs_token)  # type: ignore[method-assign]  # as FastAPI's documentation says
    problems = _Problems(hooks, [route for router in routers for route in router.routes])
    app.add_exception_handler(ProblemError, problems.answered)
    app.add_exception_handler(HTTPException, problems.of_router)
    app.add_exception_handler(RequestValidationError, problems.of_parameters)
    app.add_exception_handler(Exception, problems.of_defect)

    async def encoded(scope: Scope, receive: Receive, send: Send) -> None:
        # Paths are routed as they were sent, percent-encoded: an id may contain every character, a slash among them.
        scope["path"] = scope["raw_path"].decode("ascii")
        await app(scope, receive, send)

    return Front(encoded, SERVICE, access, hooks, _HEADERS, problems.answered)


class _Problems:
    """Answers with problems, and counts the limits that they name."""

    def __init__(self, hooks: Hooks, routes: Sequence[BaseRoute]) -> None:
        self._hooks = hooks
        self._routes = routes

    def answered(self, request: Request, error: Exception) -> Response:
        """Answer what a route has raised."""
        assert isinstance(error, ProblemError)  # noqa: S101  # it is registered for that class
        if error.limit is not None:
            self._hooks.report(LimitMet(error.limit.name))
        return response_of(error, request.state.request_id)

    def of_router(self, request: Request, error: Exception) -> Response:
        """Answer what the router refuses: an unknown path, or a method that the path does not have."""
        assert isinstance(error, HTTPException)  # noqa: S101  # as above
        if error.status_code == _NOT_ALLOWED:
            allowed = ", ".join(self._methods(request))
            refused = ProblemError(METHOD, f"This path answers {allowed}.", headers={"Allow": allowed})
        else:
            refused = ProblemError(NOT_FOUND, "There is no such path; /openapi.json describes all.")
        return self.answered(request, refused)

    def of_defect(self, request: Request, error: Exception) -> Response:
        """Answer what nobody expected, without its text; it is raised again and logged by what is around."""
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
