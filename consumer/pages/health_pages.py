"""The pages that say how a run is: ``/healthz``, ``/readyz`` and ``/metrics``."""

import json
from collections.abc import Sequence
from http import HTTPStatus

from prometheus_client.exposition import choose_encoder

from consumer.lifecycle.turns import MAIN
from consumer.pages.server import PLAIN, Page, Request, Response
from consumer.telemetry.health import Health, Late, main_stack
from consumer.telemetry.metrics import Metrics


def health_pages(health: Health, metrics: Metrics) -> dict[str, Page]:
    """The pages, by path. The two that orchestrators probe are open; who is not trusted is told no details."""
    return {
        "/healthz": Page(lambda request: _alive(health, request), is_open=True, kind="probe"),
        "/readyz": Page(lambda request: _ready(health, request), is_open=True, kind="probe"),
        "/metrics": Page(lambda request: _measured(metrics, request), kind="metrics"),
    }


def _alive(health: Health, request: Request) -> Response:
    late = health.late()
    if not late:
        return Response(HTTPStatus.OK, PLAIN, b"ok\n")
    told = _stacks(late) if request.trusted else "stuck\n"
    return Response(HTTPStatus.SERVICE_UNAVAILABLE, PLAIN, told.encode())


def _stacks(late: Sequence[Late]) -> str:
    lines = [
        f"The {one.thread} thread has not turned for {one.silent_s:.0f} s. It is here:\n{one.stack}" for one in late
    ]
    if all(one.thread != MAIN for one in late):
        lines.append(f"The main thread is here:\n{main_stack()}")
    return "\n".join(lines)


def _ready(health: Health, request: Request) -> Response:
    reasons = health.reasons()
    status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
    told: dict[str, object] = {"ready": not reasons}
    if request.trusted:
        # Another consumer would hold these partitions too, so they are no reason to send it away.
        told |= {"reasons": reasons, "held": health.held()}
    return Response(status, "application/json", json.dumps(told, ensure_ascii=False).encode() + b"\n")


def _measured(metrics: Metrics, request: Request) -> Response:
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return Response(HTTPStatus.OK, content_type, encode(metrics.registry))
