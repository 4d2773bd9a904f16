"""Probes and metrics, which need no thread and no store.

Metrics name sources and how much comes of each, so they need a token, as those of a consumer need its password.
"""

from typing import Final

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from consumer.service.access import allowed
from consumer.service.context import ServiceContext
from consumer.service.openapi import problem_answers
from consumer.service.problems import OF_ACCESS
from consumer.telemetry.health import HangLog
from consumer.telemetry.metrics import MetricSet
from consumer.web.probes import Scrapes, readiness_answer

_OPERATION: Final = "operation"


def open_routes(desk: ServiceContext, hang_log: HangLog, metrics: MetricSet) -> APIRouter:
    """Return the routes that orchestrators and Prometheus ask for."""
    router = APIRouter()
    scrapes = Scrapes(metrics.registry)

    @router.get(
        "/healthz",
        operation_id="get_liveness",
        tags=[_OPERATION],
        summary="Whether the service makes progress",
        response_class=PlainTextResponse,
        responses={
            503: {
                "description": "A thread hangs: restart the service.",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            }
        },
    )
    async def healthz() -> Response:
        """Say ok, or which thread hangs. A store or a sink that is away is no reason to restart."""
        # Stacks are logged, and not answered: probes need no token.
        troubles = [
            f"The {late.thread} thread has made no progress for {late.silent_s:.0f} s." for late in hang_log.hanging()
        ]
        return PlainTextResponse("\n".join(troubles or ["ok"]) + "\n", 503 if troubles else 200)

    @router.get(
        "/readyz",
        operation_id="get_readiness",
        tags=[_OPERATION],
        summary="Whether requests can be answered",
        responses={
            status: {
                "description": description,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Readiness"}}},
            }
            for status, description in ((200, "They can."), (503, "Not now."))
        },
    )
    async def readyz() -> Response:
        """Say whether the dictionary is loaded and the store answers."""
        return readiness_answer(desk.why_not_ready())

    @router.get(
        "/metrics",
        operation_id="get_metrics",
        tags=[_OPERATION],
        dependencies=[Depends(allowed("reader"))],
        summary="Metrics for Prometheus",
        response_class=PlainTextResponse,
        responses=problem_answers(*OF_ACCESS),
    )
    async def scraped(request: Request) -> Response:
        """Return all metrics."""
        return await scrapes.answer(request)

    return router
