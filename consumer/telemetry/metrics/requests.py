"""Metrics of the requests to ``dupwatch serve``."""

from typing import Final, get_args

from consumer.model.hooks import Hooks
from consumer.telemetry.metrics.instruments import Instruments
from consumer.telemetry.metrics.measure import SECONDS, Group, Label, Measure
from consumer.web.requests import (
    CheckOutcome,
    ConnectionsChanged,
    LimitMet,
    LimitName,
    Method,
    RequestBegan,
    RequestEnded,
    Route,
    TextsChecked,
)

STATUSES: Final = (
    "200", "400", "401", "403", "404", "405", "408", "409", "413", "415", "421", "422", "431", "499", "500", "503"
)  # fmt: skip
"""499: the client closed the connection before it had its answer."""

REQUESTS: Final = Measure(
    "dupwatch_requests_total",
    "counter",
    "Requests that were answered; with the status 499 those whose client had left.",
    "requests",
    (Label("route", get_args(Route)), Label("method", get_args(Method)), Label("status", STATUSES)),
)
REQUEST_SECONDS: Final = Measure(
    "dupwatch_request_seconds",
    "histogram",
    "Duration of a request, from its head to the end of the answer.",
    "seconds",
    (Label("route", get_args(Route)),),
    SECONDS,
)
IN_FLIGHT: Final = Measure("dupwatch_requests_in_flight", "gauge", "Requests that are not answered yet.", "requests")
CONNECTIONS: Final = Measure("dupwatch_connections", "gauge", "Open connections of clients.", "connections")
LIMITS_MET: Final = Measure(
    "dupwatch_limits_met_total",
    "counter",
    "Requests, articles and connections that met a limit, by its name.",
    "times",
    (Label("limit", get_args(LimitName)),),
)
TEXTS_CHECKED: Final = Measure(
    "dupwatch_texts_checked_total",
    "counter",
    "Texts of checks, by what was answered.",
    "texts",
    (Label("outcome", get_args(CheckOutcome)),),
)
GROUP: Final = Group(
    "Requests (dupwatch serve)", (REQUESTS, REQUEST_SECONDS, IN_FLIGHT, CONNECTIONS, LIMITS_MET, TEXTS_CHECKED)
)


class RequestMetrics:
    """Counts requests, and what is answered."""

    def __init__(self, instruments: Instruments) -> None:
        self._requests = instruments.counter(REQUESTS)
        self._seconds = instruments.distributions(REQUEST_SECONDS, get_args(Route))
        self._in_flight = instruments.gauge(IN_FLIGHT)
        self._connections = instruments.gauge(CONNECTIONS)
        self._limits_met = instruments.counter(LIMITS_MET)
        self._texts_checked = instruments.counter(TEXTS_CHECKED)

    def listen(self, hooks: Hooks) -> None:
        """Count what is reported from now on."""
        hooks.on(RequestBegan, lambda _: self._in_flight.inc())
        hooks.on(RequestEnded, self._ended)
        hooks.on(ConnectionsChanged, lambda changed: self._connections.set(changed.open))
        hooks.on(LimitMet, lambda met: self._limits_met.labels(met.limit).inc())
        hooks.on(TextsChecked, lambda checked: self._texts_checked.labels(checked.outcome).inc(checked.texts))

    def _ended(self, ended: RequestEnded) -> None:
        self._in_flight.dec()
        self._requests.labels(ended.route, ended.method, str(ended.status)).inc()
        self._seconds[ended.route].add((ended.seconds,))
