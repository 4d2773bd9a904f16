"""Probes and metrics, which need no store, and none of the threads that answer other requests.

Metrics reveal sources and their volumes, so they need a role, as a consumer's metrics need a password.
"""

from typing import Final

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from consumer.service.access import require_role
from consumer.service.context import ServiceContext
from consumer.service.openapi import problem_answers
from consumer.service.problems import ACCESS_PROBLEMS
from consumer.telemetry.health import HangLog
from consumer.telemetry.metrics import MetricSet
from consumer.web.probes import Scrapes, readiness_answer

_OPERATION: Final = "operation"


def open_routes(context: ServiceContext, hang_log: HangLog, metrics: MetricSet) -> APIRouter:
    """Return the routes for orchestrators and Prometheus. Only the metrics need a role."""
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
                "description": "A thread hangs. Restart the service.",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            }
        },
    )
    async def healthz() -> Response:
        """Return ok, or which thread hangs. A store or sink out of reach is not a reason to restart."""
        # Stacks are logged but not shown here, because probes need no token.
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
            for status, description in ((200, "Ready."), (503, "Not ready."))
        },
    )
    async def readyz() -> Response:
        """Return whether requests can be answered, and if not, why."""
        return readiness_answer(context.unready_reasons())

    @router.get(
        "/metrics",
        operation_id="get_metrics",
        tags=[_OPERATION],
        dependencies=[Depends(require_role("reader"))],
        summary="Metrics for Prometheus",
        response_class=PlainTextResponse,
        responses=problem_answers(*ACCESS_PROBLEMS),
    )
    async def scrape(request: Request) -> Response:
        """Return all metrics."""
        return await scrapes.answer(request)

    return router
