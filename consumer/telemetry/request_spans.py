"""A span for each request to the service, by OpenTelemetry's semantic conventions for HTTP servers.

Imported only if tracing is enabled.
"""

from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from consumer.model.hooks import Hooks
from consumer.telemetry.metrics.requests import RequestEnded

_ERRORS_FROM = 500
_NS_PER_S = 1_000_000_000


class RequestSpans:
    """Makes a span of each request once it has ended, in the trace that its client has sent."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._propagator = TraceContextTextMapPropagator()

    def listen(self, hooks: Hooks) -> None:
        """Make spans of what is reported from now on."""
        hooks.on(RequestEnded, self._ended)

    def _ended(self, ended: RequestEnded) -> None:
        carrier = {} if ended.trace_parent is None else {"traceparent": ended.trace_parent}
        span = self._tracer.start_span(
            f"{ended.method} {ended.route}",
            self._propagator.extract(carrier),
            SpanKind.SERVER,
            {
                "http.request.method": ended.method,
                "http.route": ended.route,
                "http.response.status_code": ended.status,
                "dupwatch.request_id": ended.request_id,
            },
            start_time=ended.began_ns,
        )
        if ended.status >= _ERRORS_FROM:
            span.set_attribute("error.type", str(ended.status))
            span.set_status(Status(StatusCode.ERROR))
        span.end(ended.began_ns + int(ended.seconds * _NS_PER_S))
