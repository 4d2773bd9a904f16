"""The routes that describe the service: its front page, the reference, and the OpenAPI document.

They need no token, no thread and no store, and reveal only what is in the documentation.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from consumer.service.reference import POLICY, JsonObject, front_page, reference_page

_HEADERS: Final = {"content-security-policy": POLICY, "referrer-policy": "no-referrer"}


def describing_routes() -> APIRouter:
    """Return the routes for people and for client generators."""
    router = APIRouter()
    pages: dict[object, bytes | str] = {}

    def cached_page(request: Request, make: Callable[[JsonObject], bytes | str]) -> bytes | str:
        """Return a page made from the OpenAPI document. Each page is made only once."""
        app: Any = request.app
        if make not in pages:
            pages[make] = make(app.openapi())
        return pages[make]

    @router.get("/", include_in_schema=False)
    async def front(request: Request) -> Response:
        return HTMLResponse(cached_page(request, front_page), headers=_HEADERS)

    @router.get("/docs", include_in_schema=False)
    async def reference(request: Request) -> Response:
        return HTMLResponse(cached_page(request, reference_page), headers=_HEADERS)

    @router.get("/openapi.json", include_in_schema=False)
    async def openapi(request: Request) -> Response:
        return Response(cached_page(request, msgspec.json.encode), media_type="application/json")

    return router
