"""Answers for orchestrators and Prometheus, from memory. They never wait for threads of pages or of judging."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import Response

JSON: Final = "application/json"


class Readiness(msgspec.Struct, frozen=True):
    """Whether requests can be answered, and why not."""

    ready: bool
    reasons: tuple[str, ...]


class Scrapes:
    """The answers to scrapes, one at a time, because several at once would only slow each other down."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._encoding = asyncio.Lock()

    async def answer(self, request: Request) -> Response:
        """Return all metrics in the format that the client prefers."""
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        async with self._encoding:
            return Response(await asyncio.to_thread(encode, self._registry), media_type=content_type)


def readiness_answer(reasons: Sequence[str], limits: Sequence[str] = ()) -> Response:
    """Return the answer to ``/readyz``: not ready if there are ``reasons``. ``limits`` are only listed."""
    body = msgspec.json.encode(Readiness(not reasons, (*reasons, *limits)))
    return Response(body, 503 if reasons else 200, media_type=JSON)
