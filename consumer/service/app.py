"""The application: its routes, and one format for everything that goes wrong."""

from importlib import metadata
from typing import Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from consumer.model.hooks import Hooks
from consumer.pages.access import Access
from consumer.service.checking import Checks
from consumer.service.desk import Desk
from consumer.service.front import Front
from consumer.service.openapi import document
from consumer.service.probes import open_routes
from consumer.service.problems import INVALID_REQUEST, METHOD, NOT_FOUND, ProblemError, response_of
from consumer.service.routes import reading_routes
from consumer.telemetry.metrics import MetricSet

_NOT_ALLOWED: Final = 405


def build_app(desk: Desk, checks: Checks, metrics: MetricSet, access: Access, hooks: Hooks) -> Front:
    """Return the application, with what every request passes first."""
    # No pages of documentation: they would load scripts from elsewhere.
    app = FastAPI(
        title="dupwatch", version=metadata.version("dupwatch"), openapi_url=None, docs_url=None, redoc_url=None,
        redirect_slashes=False,
    )  # fmt: skip
    app.include_router(open_routes(desk, metrics))
    app.include_router(reading_routes(desk, checks))
    app.openapi = lambda: document(app)  # type: ignore[method-assign]  # as FastAPI's documentation says
    app.add_exception_handler(ProblemError, _problem)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    return Front(app, access, hooks)


def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)  # noqa: S101  # it is registered for that class
    return response_of(error, request.state.request_id)


def _http_error(request: Request, error: Exception) -> Response:
    """Answer what the router refuses: an unknown path, or a method that the path does not have."""
    assert isinstance(error, HTTPException)  # noqa: S101  # as above
    if error.status_code == _NOT_ALLOWED:
        allowed = (error.headers or {}).get("Allow", "")
        refused = ProblemError(METHOD, f"This path answers {allowed}.", headers={"Allow": allowed})
    else:
        refused = ProblemError(NOT_FOUND, "There is no such path; /openapi.json describes all.")
    return _problem(request, refused)


def _invalid(request: Request, error: Exception) -> Response:
    """Answer where a parameter of the query is not valid; its value is not repeated."""
    assert isinstance(error, RequestValidationError)  # noqa: S101  # as above
    first = error.errors()[0]
    name = ".".join(map(str, first["loc"]))
    return _problem(request, ProblemError(INVALID_REQUEST, f"{name}: {first['msg']}."))
