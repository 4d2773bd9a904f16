"""The pages for orchestrators and Prometheus: ``/healthz``, ``/readyz`` and ``/metrics``."""

import json
from collections.abc import Sequence
from http import HTTPStatus

from prometheus_client.exposition import choose_encoder

from consumer.lifecycle.thread_progress import MAIN
from consumer.telemetry.health import HangingThread, Health, main_stack
from consumer.telemetry.metrics import Metrics
from consumer.web.page import PLAIN, PageRequest, PageResponse, ServedPage


def health_pages(health: Health, metrics: Metrics) -> dict[str, ServedPage]:
    """Return the pages by path. The two probes need no password, but without one they show no details."""
    return {
        "/healthz": ServedPage(lambda request: _alive(health, request), is_open=True, kind="probe"),
        "/readyz": ServedPage(lambda request: _ready(health, request), is_open=True, kind="probe"),
        "/metrics": ServedPage(lambda request: _metrics(metrics, request), kind="metrics"),
    }


def _alive(health: Health, request: PageRequest) -> PageResponse:
    hanging = health.hanging_threads()
    if not hanging:
        return PageResponse(HTTPStatus.OK, PLAIN, b"ok\n")
    text = _stacks(hanging) if request.trusted else "stuck\n"
    return PageResponse(HTTPStatus.SERVICE_UNAVAILABLE, PLAIN, text.encode())


def _stacks(hanging: Sequence[HangingThread]) -> str:
    lines = [
        f"The {thread} thread has made no progress for {silent_s:.0f} s. Its stack:\n{stack}"
        for thread, silent_s, stack in hanging
    ]
    if all(thread.thread != MAIN for thread in hanging):
        lines.append(f"Stack of the main thread:\n{main_stack()}")
    return "\n".join(lines)


def _ready(health: Health, request: PageRequest) -> PageResponse:
    reasons = health.unready_reasons()
    status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
    body: dict[str, object] = {"ready": not reasons}
    if request.trusted:
        # Held partitions do not make a consumer unready, because another one would hold them, too.
        body |= {"reasons": reasons, "held": health.held_partitions()}
    return PageResponse(status, "application/json", json.dumps(body, ensure_ascii=False).encode() + b"\n")


def _metrics(metrics: Metrics, request: PageRequest) -> PageResponse:
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return PageResponse(HTTPStatus.OK, content_type, encode(metrics.registry))
