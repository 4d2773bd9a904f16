"""Metrics of the requests to ``dupwatch serve`` and to ``dupwatch console``."""

from typing import Final, NamedTuple, get_args

from consumer.model.hooks import Hooks
from consumer.telemetry.metrics.instruments import SECONDS, Instruments, Label, Measure, MetricGroup, reaction
from consumer.web.requests import (
    CONSOLE,
    SERVICE,
    CheckOutcome,
    ConnectionsChanged,
    HttpInterface,
    LimitExceeded,
    LimitName,
    RequestEnded,
    RequestStarted,
    TextsChecked,
)


class RequestMeasures(NamedTuple):
    """The measures of the requests to one server: their number and their duration."""

    requests: Measure
    seconds: Measure

    @classmethod
    def of(cls, interface: HttpInterface, prefix: str, target: str, statuses: tuple[str, ...]) -> "RequestMeasures":
        """Create the measures. Their names begin with ``prefix``; ``target`` says in the help where requests go."""
        route = Label("route", interface.route_labels)
        return cls(
            Measure(
                f"{prefix}_requests_total",
                "counter",
                f"Answered requests{target}. Status 499 means that the client disconnected first.",
                "requests",
                (route, Label("method", interface.method_labels), Label("status", statuses)),
            ),
            Measure(
                f"{prefix}_request_seconds",
                "histogram",
                f"Duration of a request{target}, from its head to the end of the answer.",
                "seconds",
                (route,),
                SECONDS,
            ),
        )


STATUSES: Final = (
    "200", "400", "401", "403", "404", "405", "408", "409", "413", "415", "421", "422", "431", "499", "500", "503"
)  # fmt: skip
"""The statuses of answers. 499 means that the client closed the connection before the answer."""
CONSOLE_STATUSES: Final = (
    "200", "303", "400", "403", "404", "405", "408", "409", "413", "415", "421", "429", "431", "499", "500", "503"
)  # fmt: skip
SERVICE_REQUESTS: Final = RequestMeasures.of(SERVICE, "dupwatch", "", STATUSES)
CONSOLE_REQUESTS: Final = RequestMeasures.of(CONSOLE, "dupwatch_console", " to the console", CONSOLE_STATUSES)
IN_FLIGHT: Final = Measure("dupwatch_requests_in_flight", "gauge", "Requests that are not answered yet.", "requests")
CONNECTIONS: Final = Measure("dupwatch_connections", "gauge", "Open connections of clients.", "connections")
LIMITS_EXCEEDED: Final = Measure(
    "dupwatch_limits_met_total",
    "counter",
    "Requests, articles and connections that exceeded a limit, by its name.",
    "times",
    (Label("limit", get_args(LimitName)),),
)
TEXTS_CHECKED: Final = Measure(
    "dupwatch_texts_checked_total",
    "counter",
    "Texts in checks, by outcome.",
    "texts",
    (Label("outcome", get_args(CheckOutcome)),),
)
GROUP: Final = MetricGroup(
    "Requests (dupwatch serve)", (*SERVICE_REQUESTS, IN_FLIGHT, CONNECTIONS, LIMITS_EXCEEDED, TEXTS_CHECKED)
)
CONSOLE_GROUP: Final = MetricGroup("Requests (dupwatch console)", CONSOLE_REQUESTS)
REACTIONS: Final = (
    reaction(CONNECTIONS, ConnectionsChanged, lambda changed: changed.open),
    reaction(LIMITS_EXCEEDED, LimitExceeded, labels=lambda exceeded: (exceeded.limit,)),
)
CHECK_REACTION: Final = reaction(
    TEXTS_CHECKED, TextsChecked, lambda checked: checked.texts, lambda checked: (checked.outcome,)
)


class RequestMetrics:
    """Counts and durations of the requests to one server."""

    def __init__(self, instruments: Instruments, measures: RequestMeasures) -> None:
        self._requests = instruments.counter(measures.requests)
        (route,) = measures.seconds.labels
        self._seconds = instruments.distributions(measures.seconds, route.values)
        self._in_flight = instruments.gauge(IN_FLIGHT)

    def listen(self, hooks: Hooks) -> None:
        """Count requests from now on."""
        hooks.on(RequestStarted, lambda _: self._in_flight.inc())
        hooks.on(RequestEnded, self._count_request)

    def _count_request(self, ended: RequestEnded) -> None:
        self._in_flight.dec()
        self._requests.labels(ended.route, ended.method, str(ended.status)).inc()
        self._seconds[ended.route].add((ended.seconds,))
