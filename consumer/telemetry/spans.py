"""A span for each batch and for each request to the service, following OpenTelemetry's semantic conventions.

These are the conventions for messaging (1.27 and later, in development) and for HTTP servers. This module is imported
only if tracing is enabled. No other module uses OpenTelemetry.
"""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    TraceState,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from consumer.model.hooks import Hooks
from consumer.model.record import RawRecord
from consumer.pipeline.batches import BatchAbandoned, BatchCommitted, BatchStarted, StageEnded, StageStarted
from consumer.telemetry.trace_context import TraceContext, TracedFeed, contexts
from consumer.web.requests import RequestEnded

log = logging.getLogger("dupwatch")

PARTITIONS_MAX: Final = 64
"""The maximum number of partitions that the span of a batch names."""
DECODE: Final = "decode"
_WITHIN_BATCH: Final = frozenset({"emit", "commit"})
_SUMMED: Final = frozenset({"fingerprint", "look_up", "settle"})
_OPERATION: Final = "process"
_PATH: Final = "v1/traces"
_LINKS_VARIABLE: Final = "OTEL_SPAN_LINK_COUNT_LIMIT"
_UNNAMED: Final = "unknown_service"
_AHEAD_MAX: Final = 1_000
"""More than the number of decoded batches that can wait to be judged."""
_ERRORS_FROM: Final = 500
_NS_PER_S: Final = 1_000_000_000


class BatchSpans:
    """The spans of judged batches, with outcomes and links to the traces of the articles.

    The stages decode, emit and commit are child spans. The seconds of fingerprint, look_up and settle are attributes.
    Batches are decoded in the order in which they are judged, perhaps ahead of time by another thread. The span of a
    batch begins with its decoding.
    """

    def __init__(self, tracer: Tracer, feed: TracedFeed, links_max: int) -> None:
        self._tracer = tracer
        self._feed = feed
        self._links_max = links_max
        self._decoded: deque[tuple[int, int]] = deque(maxlen=_AHEAD_MAX)
        self._decoding_ns = 0
        self._span: Span | None = None
        self._child: Span | None = None

    def listen(self, hooks: Hooks) -> None:
        """Create a span for each batch from now on."""
        hooks.on(BatchStarted, self._begin_batch)
        hooks.on(StageStarted, self._begin_stage)
        hooks.on(StageEnded, self._end_stage)
        hooks.on(BatchCommitted, self._end_batch)
        hooks.on(BatchAbandoned, self._abandon_batch)

    def _begin_batch(self, begun: BatchStarted) -> None:
        records = begun.batch.records
        self._end("another batch was begun")
        decoded = self._decoded.popleft() if self._decoded else None
        found, dropped = contexts(records, self._links_max)
        self._span = span = self._tracer.start_span(
            _name(records),
            kind=SpanKind.CONSUMER,
            attributes=_batch_attributes(records, self._feed),
            links=_links(found),
            start_time=None if decoded is None else decoded[0],
        )
        if dropped:
            span.set_attribute("dupwatch.links_dropped", dropped)
        if decoded is not None:
            child = self._tracer.start_span(DECODE, set_span_in_context(span), start_time=decoded[0])
            child.end(decoded[1])

    def _begin_stage(self, began: StageStarted) -> None:
        """Begin a child span of the current batch.

        Waiting for records belongs to no batch. Decoding only notes its time, because its batch begins later.
        """
        if began.stage == DECODE:
            self._decoding_ns = time.time_ns()
        elif self._span is not None and began.stage in _WITHIN_BATCH:
            self._child = self._tracer.start_span(began.stage, set_span_in_context(self._span))

    def _end_stage(self, ended: StageEnded) -> None:
        """End the child span. The text of an error is left out, because the text may quote an article."""
        if ended.stage == DECODE:
            if ended.error is None:
                self._decoded.append((self._decoding_ns, time.time_ns()))
        elif ended.stage in _WITHIN_BATCH:
            span, self._child = self._child, None
            if span is None:
                return
            if ended.error is not None:
                span.set_attribute("error.type", type(ended.error).__name__)
                span.set_status(Status(StatusCode.ERROR))
            span.end()
        elif ended.stage in _SUMMED and self._span is not None:
            self._span.set_attribute(f"dupwatch.{ended.stage}.seconds", ended.seconds)

    def _end_batch(self, batch: BatchCommitted) -> None:
        if self._span is None:
            return
        outcomes = {"unique": 0, "duplicate": 0, "retracted": 0}
        for verdict in batch.verdicts:
            outcomes[verdict.outcome] += 1
        counts = {f"dupwatch.articles.{outcome}": count for outcome, count in outcomes.items()}
        self._span.set_attributes(counts | {"dupwatch.dead_letters": len(batch.letters)})
        self._end()

    def _abandon_batch(self, _: BatchAbandoned) -> None:
        if self._span is None:
            # The batch was given up before it began.
            if self._decoded:
                self._decoded.popleft()
            return
        self._span.set_attribute("error.type", "abandoned")
        self._end("the batch was given up; the owner of its partitions reads it again")

    def end_unfinished(self) -> None:
        """End the span of a batch that the run did not finish."""
        self._end("the run ended before the batch was committed")

    def _end(self, error: str | None = None) -> None:
        span, self._span = self._span, None
        if span is not None:
            if error is not None:
                span.set_status(Status(StatusCode.ERROR, error))
            span.end()


class RequestSpans:
    """The spans of requests. Each is created when its request has ended, in the trace that the client sent."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._propagator = TraceContextTextMapPropagator()

    def listen(self, hooks: Hooks) -> None:
        """Create a span for each request from now on."""
        hooks.on(RequestEnded, self._add_span)

    def _add_span(self, ended: RequestEnded) -> None:
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


class Tracing:
    """The tracing of a run. Separate threads send the spans, so only ``close`` waits for a collector.

    ``spans`` listens to the run, ``requests`` to the service. OpenTelemetry's own variables (``OTEL_...``) set
    sampling, resource, headers, certificates, limits and timeouts.
    """

    def __init__(self, exporter: SpanExporter, feed: TracedFeed, version: str, links_max: int) -> None:
        # A limit passed here would override the variable, so ours applies only if the variable is not set.
        limits = SpanLimits(max_links=None if _LINKS_VARIABLE in os.environ else links_max)
        # The provider's own exit hook would wait for an unreachable collector.
        self._provider = TracerProvider(resource=_resource(version), shutdown_on_exit=False, span_limits=limits)
        self._provider.add_span_processor(BatchSpanProcessor(_LoggingExporter(exporter)))
        tracer = self._provider.get_tracer("dupwatch", version)
        self.spans = BatchSpans(tracer, feed, links_max)
        self.requests = RequestSpans(tracer)

    def close(self, wait_s: float) -> None:
        """Send the remaining spans, for at most ``wait_s`` seconds. Spans that are not accepted by then are lost."""
        self.spans.end_unfinished()
        closing = threading.Thread(target=self._provider.shutdown, name="tracing-close", daemon=True)
        closing.start()
        closing.join(wait_s)
        if closing.is_alive():
            log.warning("The collector did not accept the last spans within %g s; they are lost", wait_s)


def tracing_to(endpoint: str | None, feed: TracedFeed, version: str, links_max: int) -> Tracing:
    """Return tracing to a collector by OTLP over HTTP. If ``endpoint`` is None, the ``OTEL_`` variables name it."""
    exporter = OTLPSpanExporter(endpoint=None if endpoint is None else f"{endpoint.rstrip('/')}/{_PATH}")
    # The exporter and the processor would log every attempt; _LoggingExporter logs each change once.
    silenced = logging.getLogger("opentelemetry")
    silenced.addHandler(logging.NullHandler())
    silenced.propagate = False
    return Tracing(exporter, feed, version, links_max)


class _LoggingExporter(SpanExporter):
    """An exporter that logs when a collector stops accepting spans, and when it accepts them again."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans. Errors count as failed exports and never affect the run."""
        try:
            result = self._exporter.export(spans)
            reason = "it rejected them"
        except Exception as error:  # noqa: BLE001  # depends on the transport of the exporter
            result, reason = SpanExportResult.FAILURE, repr(error)
        failing = result is not SpanExportResult.SUCCESS
        if failing and not self._failing:
            log.warning("The collector does not accept spans; they are lost until it does: %s", reason)
        elif self._failing and not failing:
            log.warning("The collector accepts spans again")
        self._failing = failing
        return result

    def shutdown(self) -> None:
        """Stop sending."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the inner exporter, because this one keeps nothing."""
        return self._exporter.force_flush(timeout_millis)


def _resource(version: str) -> Resource:
    """Return the resource of the spans, with the service name from the ``OTEL_`` variables, or else "dupwatch"."""
    named = Resource.create({SERVICE_VERSION: version})
    unnamed = str(named.attributes.get(SERVICE_NAME, _UNNAMED)).startswith(_UNNAMED)
    return named.merge(Resource({SERVICE_NAME: "dupwatch"})) if unnamed else named


def _links(found: Sequence[TraceContext]) -> list[Link]:
    # Articles from one system usually have the same trace state. Parse each state once, because that takes longest.
    states = {text: TraceState.from_header([text]) if text else None for text in {context.state for context in found}}
    return [
        Link(
            SpanContext(
                context.trace_id,
                context.span_id,
                is_remote=True,
                trace_flags=TraceFlags(context.flags),
                trace_state=states[context.state],
            )
        )
        for context in found
    ]


def _batch_attributes(records: Sequence[RawRecord], feed: TracedFeed) -> dict[str, AttributeValue]:
    """Return the attributes of a batch before it is judged. They identify articles by their offsets only."""
    ranges: dict[tuple[str, int], list[int]] = {}
    for record in records:
        if record.partition is not None:
            ranges.setdefault(record.partition, []).append(record.start)
    topics = {topic for topic, _ in ranges}
    described: dict[str, AttributeValue] = {
        "messaging.system": feed.system,
        "messaging.operation.name": _OPERATION,
        "messaging.operation.type": _OPERATION,
        "messaging.batch.message_count": len(records),
        "dupwatch.offsets": [
            f"{topic}[{partition}]: {min(offsets)} to {max(offsets)}"
            for (topic, partition), offsets in sorted(ranges.items())[:PARTITIONS_MAX]
        ],
    }
    if feed.group is not None:
        described["messaging.consumer.group.name"] = feed.group
    # These two are set only if they hold for all messages of the batch.
    if len(topics) == 1:
        described["messaging.destination.name"] = next(iter(topics))
    if len(ranges) == 1:
        described["messaging.destination.partition.id"] = str(next(iter(ranges))[1])
    return described


def _name(records: Sequence[RawRecord]) -> str:
    topics = {record.partition[0] for record in records if record.partition is not None}
    return f"{_OPERATION} {next(iter(topics))}" if len(topics) == 1 else _OPERATION
