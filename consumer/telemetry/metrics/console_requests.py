"""Metrics of the requests to ``dupwatch console``."""

from typing import Final, get_args

from consumer.model.hooks import Hooks
from consumer.telemetry.metrics.instruments import Instruments
from consumer.telemetry.metrics.measure import SECONDS, Group, Label, Measure
from consumer.telemetry.metrics.requests import CONNECTIONS, IN_FLIGHT, LIMITS_MET
from consumer.web.requests import ConnectionsChanged, ConsoleRoute, LimitMet, PageBegan, PageEnded, PageMethod

STATUSES: Final = (
    "200", "303", "400", "403", "404", "405", "408", "409", "413", "415", "421", "429", "431", "499", "500", "503"
)  # fmt: skip
"""499: the client closed the connection before it had its answer."""

PAGES: Final = Measure(
    "dupwatch_console_requests_total",
    "counter",
    "Requests to the console that were answered; with the status 499 those whose client had left.",
    "requests",
    (Label("route", get_args(ConsoleRoute)), Label("method", get_args(PageMethod)), Label("status", STATUSES)),
)
PAGE_SECONDS: Final = Measure(
    "dupwatch_console_request_seconds",
    "histogram",
    "Duration of a request to the console, from its head to the end of the answer.",
    "seconds",
    (Label("route", get_args(ConsoleRoute)),),
    SECONDS,
)
GROUP: Final = Group("Requests (dupwatch console)", (PAGES, PAGE_SECONDS))


class ConsoleRequestMetrics:
    """Counts requests to the console, and the limits that they and their connections meet."""

    def __init__(self, instruments: Instruments) -> None:
        self._pages = instruments.counter(PAGES)
        self._seconds = instruments.distributions(PAGE_SECONDS, get_args(ConsoleRoute))
        self._in_flight = instruments.gauge(IN_FLIGHT)
        self._connections = instruments.gauge(CONNECTIONS)
        self._limits_met = instruments.counter(LIMITS_MET)

    def listen(self, hooks: Hooks) -> None:
        """Count what is reported from now on."""
        hooks.on(PageBegan, lambda _: self._in_flight.inc())
        hooks.on(PageEnded, self._ended)
        hooks.on(ConnectionsChanged, lambda changed: self._connections.set(changed.open))
        hooks.on(LimitMet, lambda met: self._limits_met.labels(met.limit).inc())

    def _ended(self, ended: PageEnded) -> None:
        self._in_flight.dec()
        self._pages.labels(ended.route, ended.method, str(ended.status)).inc()
        self._seconds[ended.route].add((ended.seconds,))
