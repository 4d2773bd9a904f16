"""Health, readiness and metrics, answered without a session, the database or the threads of pages.

The metrics name no sources, articles or people.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from consumer.telemetry.health import HangingThread, HangLog
from consumer.web.probes import Scrapes, readiness_answer

PATHS: Final = ("/healthz", "/readyz", "/metrics")


@dataclass(frozen=True, slots=True)
class Probes:
    """The data behind the probes: why the console is not ready (empty if it is), and its metrics.

    ``hanging`` are threads without progress. ``limits`` are messages about parts that pages have to do without for
    now; the console is ready all the same.
    """

    unready_reasons: Callable[[], Sequence[str]]
    registry: CollectorRegistry
    hanging: Callable[[], Sequence[HangingThread]] = tuple
    limits: Callable[[], Sequence[str]] = tuple


def probe_routes(probes: Probes) -> list[BaseRoute]:
    """Return the routes of the probes."""
    scrapes, hang_log = Scrapes(probes.registry), HangLog(probes.hanging)

    async def healthz(request: Request) -> Response:
        request.state.route = "/healthz"
        hanging = hang_log.hanging()
        if not hanging:
            return PlainTextResponse("ok\n")
        return PlainTextResponse(f"stuck: {', '.join(thread.thread for thread in hanging)}\n", 503)

    async def readyz(request: Request) -> Response:
        request.state.route = "/readyz"
        return readiness_answer(probes.unready_reasons(), probes.limits())

    async def metrics(request: Request) -> Response:
        request.state.route = "/metrics"
        return await scrapes.answer(request)

    return [Route(path, answer) for path, answer in zip(PATHS, (healthz, readyz, metrics), strict=True)]
