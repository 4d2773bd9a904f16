"""The routes that change something: what each takes, who may ask, and what answers."""

from typing import Any, Final

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from consumer.service import problems
from consumer.service.access import allowed
from consumer.service.articles import article_id_in
from consumer.service.desk import Desk
from consumer.service.openapi import (
    RELEASE_EXAMPLE,
    STORE_EXAMPLE,
    json_answer,
    json_body,
    problem_answers,
    stored_answer,
)
from consumer.service.releasing import Releases
from consumer.service.routes import ALWAYS, ARTICLES, OF_BODIES, IdInPath, json_response
from consumer.service.writing import KEY_CHARS_MAX, KEY_HEADER, Writes

_OF_WRITES: Final = (problems.INVALID_REQUEST, problems.NOT_READY, problems.OUTCOME_UNKNOWN, *ALWAYS)
_WRITER: Final = [Depends(allowed("writer"))]
_REVIEWER: Final = [Depends(allowed("reviewer"))]
_KEY: Final[dict[str, Any]] = {
    "name": KEY_HEADER,
    "in": "header",
    "required": True,
    "description": "A key of your own for this retraction; the same one where you repeat it.",
    "schema": {"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX},
}


def writing_routes(desk: Desk, writes: Writes, releases: Releases) -> APIRouter:
    """Return the routes that store, retract and release."""
    router = APIRouter(prefix="/v1")

    @router.post(
        "/articles",
        operation_id="store_articles",
        tags=[ARTICLES],
        dependencies=_WRITER,
        summary="Judge and store articles",
        responses=stored_answer() | problem_answers(*OF_BODIES, problems.INVALID_ARTICLE, *_OF_WRITES),
        openapi_extra=json_body("StoreRequest", STORE_EXAMPLE),
    )
    async def add(request: Request) -> Response:
        """Judge articles in their order and store them; answer once the sink has the verdicts.

        Sent again, an article gets the same verdict, byte for byte, unless a person has released it.
        """
        async with desk.receiving.received(request) as body:
            stored = await writes.put(request, body)
        return json_response(await writes.answer(request, stored))

    @router.delete(
        "/articles/{id}",
        operation_id="retract_article",
        tags=[ARTICLES],
        dependencies=_WRITER,
        summary="Retract an article",
        responses=json_answer("Verdict", "The event of the retraction.") | problem_answers(*_OF_WRITES),
        openapi_extra={"parameters": [_KEY]},
    )
    async def retract(request: Request, id: IdInPath) -> Response:  # noqa: A002  # as in the path
        """Retract an article: later articles are not compared with it. With the same key again, nothing happens."""
        return json_response(await writes.retract(request, article_id_in(id)))

    @router.post(
        "/articles/{id}/release",
        operation_id="release_article",
        tags=[ARTICLES],
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
            return json_response(await releases.release(request, article_id, body))

    return router
