"""The routes that describe the service: its front page, the reference of its routes, and its OpenAPI document.

They need no token, no thread and no store, and say nothing that the documentation does not.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from consumer.service.reference import POLICY, Schema, front_page, reference_page

_HEADERS: Final = {"content-security-policy": POLICY, "referrer-policy": "no-referrer"}


def describing_routes() -> APIRouter:
    """Return the routes that people and generators of clients ask for."""
    router = APIRouter()
    made: dict[object, bytes | str] = {}

    def once(request: Request, make: Callable[[Schema], bytes | str]) -> bytes | str:
        """Return a page made of the document, which is made only once."""
        app: Any = request.app
        if make not in made:
            made[make] = make(app.openapi())
        return made[make]

    @router.get("/", include_in_schema=False)
    async def front(request: Request) -> Response:
        return HTMLResponse(once(request, front_page), headers=_HEADERS)

    @router.get("/docs", include_in_schema=False)
    async def reference(request: Request) -> Response:
        return HTMLResponse(once(request, reference_page), headers=_HEADERS)

    @router.get("/openapi.json", include_in_schema=False)
    async def openapi(request: Request) -> Response:
        return Response(once(request, msgspec.json.encode), media_type="application/json")

    return router
