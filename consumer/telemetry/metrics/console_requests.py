"""Metrics of the requests to ``dupwatch console``.

What is reported is defined here because ``consumer.console``, which causes it, is above this package.
"""

from typing import Final, Literal, NamedTuple, get_args

from consumer.model.hooks import Hooks
from consumer.telemetry.metrics.instruments import Instruments
from consumer.telemetry.metrics.measure import SECONDS, Group, Label, Measure
from consumer.telemetry.metrics.requests import CONNECTIONS, IN_FLIGHT, LIMITS_MET, ConnectionsChanged, LimitMet

ConsoleRoute = Literal[
    "/",
    "/flags/{flag_id:int}",
    "/flags/{flag_id:int}/text/{side}",
    "/flags/{flag_id:int}/decide",
    "/flags/{flag_id:int}/note",
    "/reviews/{review_id:int}/undo",
    "/stories",
    "/stories/{story_id:int}",
    "/stories/{story_id:int}/decide",
    "/stories/{story_id:int}/undo",
    "/sources",
    "/thresholds",
    "/sign-in",
    "/sign-out",
    "/me",
    "/me/language",
    "/me/password",
    "/people",
    "/people/add",
    "/people/{person_id:int}/disable",
    "/people/{person_id:int}/enable",
    "/people/{person_id:int}/role",
    "/people/{person_id:int}/password",
    "/audit",
    "/audit.csv",
    "/healthz",
    "/readyz",
    "/metrics",
    "other",
]
PageMethod = Literal["GET", "POST", "other"]
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


class PageBegan(NamedTuple):
    """The head of a request to the console has arrived."""


class PageEnded(NamedTuple):
    """A request to the console was answered, or its client left. ``route`` is the template of its path."""

    route: ConsoleRoute
    method: PageMethod
    status: int
    seconds: float


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
