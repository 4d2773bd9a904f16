"""A span for each batch, by OpenTelemetry's semantic conventions for messaging (1.27 and later, in development).

Imported only where tracing is on: this is the one module that knows OpenTelemetry.
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
from opentelemetry.util.types import AttributeValue

from consumer.model.hooks import Hooks
from consumer.model.record import RawRecord
from consumer.pipeline.batches import BatchAbandoned, BatchBegun, BatchCommitted
from consumer.pipeline.stages import StageBegan, StageEnded
from consumer.telemetry.trace_context import TraceContext, contexts

log = logging.getLogger("dupwatch")

PARTITIONS_MAX: Final = 64
"""So many partitions of a batch are named on its span."""
DECODE: Final = "decode"
_WITHIN_BATCH: Final = frozenset({"emit", "commit"})
_SUMMED: Final = frozenset({"fingerprint", "look_up", "settle"})
_OPERATION: Final = "process"
_PATH: Final = "v1/traces"
_LINKS_VARIABLE: Final = "OTEL_SPAN_LINK_COUNT_LIMIT"
_UNNAMED: Final = "unknown_service"
_AHEAD_MAX: Final = 1_000
"""More decoded batches than this never wait to be judged."""


class BatchSpans:
    """Makes a span for each batch that is judged, with what was decided, and links to the traces of its articles.

    What is done with a batch is a child of its span where it has a time of its own; what comes in pieces is an
    attribute. Batches are decoded in the order in which they are judged, perhaps by another thread and some ahead: the
    span of a batch begins with that.
    """

    def __init__(self, tracer: Tracer, group: str, links_max: int) -> None:
        self._tracer = tracer
        self._group = group
        self._links_max = links_max
        self._decoded: deque[tuple[int, int]] = deque(maxlen=_AHEAD_MAX)
        self._decoding_ns = 0
        self._span: Span | None = None
        self._child: Span | None = None

    def listen(self, hooks: Hooks) -> None:
        """Make spans of what is reported from now on."""
        hooks.on(BatchBegun, self._begun)
        hooks.on(StageBegan, self._stage_began)
        hooks.on(StageEnded, self._stage_ended)
        hooks.on(BatchCommitted, self._committed)
        hooks.on(BatchAbandoned, self._abandoned)

    def _begun(self, begun: BatchBegun) -> None:
        records = begun.batch.records
        self._end("another batch was begun")
        decoded = self._decoded.popleft() if self._decoded else None
        found, dropped = contexts(records, self._links_max)
        self._span = span = self._tracer.start_span(
            _name(records),
            kind=SpanKind.CONSUMER,
            attributes=_described(records, self._group),
            links=_links(found),
            start_time=None if decoded is None else decoded[0],
        )
        if dropped:
            span.set_attribute("dupwatch.links_dropped", dropped)
        if decoded is not None:
            child = self._tracer.start_span(DECODE, set_span_in_context(span), start_time=decoded[0])
            child.end(decoded[1])

    def _stage_began(self, began: StageBegan) -> None:
        """Waiting for records belongs to no batch, and decoding to one that is yet to begin."""
        if began.stage == DECODE:
            self._decoding_ns = time.time_ns()
        elif self._span is not None and began.stage in _WITHIN_BATCH:
            self._child = self._tracer.start_span(began.stage, set_span_in_context(self._span))

    def _stage_ended(self, ended: StageEnded) -> None:
        """End its span, without the text of an error: that may have an article's words."""
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

    def _committed(self, batch: BatchCommitted) -> None:
        if self._span is None:
            return
        outcomes = {"unique": 0, "duplicate": 0, "retracted": 0}
        for verdict in batch.verdicts:
            outcomes[verdict.outcome] += 1
        counts = {f"dupwatch.articles.{outcome}": count for outcome, count in outcomes.items()}
        self._span.set_attributes(counts | {"dupwatch.dead_letters": len(batch.letters)})
        self._end()

    def _abandoned(self, _: BatchAbandoned) -> None:
        if self._span is None:
            # It was given up before it was begun.
            if self._decoded:
                self._decoded.popleft()
            return
        self._span.set_attribute("error.type", "abandoned")
        self._end("the batch was given up; whoever has its partitions reads it again")

    def ended(self) -> None:
        """The run is over; a batch that is still open was not finished."""
        self._end("the run ended before the batch was committed")

    def _end(self, error: str | None = None) -> None:
        span, self._span = self._span, None
        if span is not None:
            if error is not None:
                span.set_status(Status(StatusCode.ERROR, error))
            span.end()


class Tracing:
    """All that makes and sends spans, on threads of its own; a run hands them over and never waits for a collector.

    ``spans`` listens to the run. Sampling, resource, headers, certificates, limits and times are those of
    OpenTelemetry's own variables (``OTEL_...``) where they are set.
    """

    def __init__(self, exporter: SpanExporter, group: str, version: str, links_max: int) -> None:
        # Only who has said nothing gets our limit: what is passed here would win over the variable.
        limits = SpanLimits(max_links=None if _LINKS_VARIABLE in os.environ else links_max)
        # Without its own hook for the end of the process, which would wait for a collector that is away.
        self._provider = TracerProvider(resource=_resource(version), shutdown_on_exit=False, span_limits=limits)
        self._provider.add_span_processor(BatchSpanProcessor(_Told(exporter)))
        self.spans = BatchSpans(self._provider.get_tracer("dupwatch", version), group, links_max)

    def close(self, wait_s: float) -> None:
        """Send what is left, for so long at most; what the collector has not taken by then is lost."""
        self.spans.ended()
        closing = threading.Thread(target=self._provider.shutdown, name="tracing-close", daemon=True)
        closing.start()
        closing.join(wait_s)
        if closing.is_alive():
            log.warning("The last spans were not taken within %g s; they are given up", wait_s)


def tracing_to(endpoint: str | None, group: str, version: str, links_max: int) -> Tracing:
    """Tracing that sends to a collector by OTLP over HTTP; without an endpoint to where the variables say."""
    exporter = OTLPSpanExporter(endpoint=None if endpoint is None else f"{endpoint.rstrip('/')}/{_PATH}")
    # What it and the processor would say of every attempt is said once, by us.
    silenced = logging.getLogger("opentelemetry")
    silenced.addHandler(logging.NullHandler())
    silenced.propagate = False
    return Tracing(exporter, group, version, links_max)


class _Told(SpanExporter):
    """Tells when a collector begins to take nothing, and when it takes something again."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Hand them over. Whatever goes wrong is a failure, and never an error of the run."""
        try:
            result = self._exporter.export(spans)
            why = "it did not take them"
        except Exception as error:  # noqa: BLE001  # of whatever transport the exporter uses
            result, why = SpanExportResult.FAILURE, repr(error)
        failing = result is not SpanExportResult.SUCCESS
        if failing and not self._failing:
            log.warning("Spans are not sent to the collector, and are lost until it is back: %s", why)
        elif self._failing and not failing:
            log.warning("Spans are sent to the collector again")
        self._failing = failing
        return result

    def shutdown(self) -> None:
        """Stop trying."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is kept here."""
        return self._exporter.force_flush(timeout_millis)


def _resource(version: str) -> Resource:
    """Who makes the spans: as the variables say, and dupwatch where they do not."""
    told = Resource.create({SERVICE_VERSION: version})
    unnamed = str(told.attributes.get(SERVICE_NAME, _UNNAMED)).startswith(_UNNAMED)
    return told.merge(Resource({SERVICE_NAME: "dupwatch"})) if unnamed else told


def _links(found: Sequence[TraceContext]) -> list[Link]:
    # Articles of one system have one state, most often, and reading it takes longer than all the rest.
    states = {text: TraceState.from_header([text]) if text else None for text in {one.state for one in found}}
    return [
        Link(
            SpanContext(
                one.trace_id,
                one.span_id,
                is_remote=True,
                trace_flags=TraceFlags(one.flags),
                trace_state=states[one.state],
            )
        )
        for one in found
    ]


def _described(records: Sequence[RawRecord], group: str) -> dict[str, AttributeValue]:
    """What is known of a batch before it is judged; of its articles nothing but where they stood."""
    ranges: dict[tuple[str, int], list[int]] = {}
    for record in records:
        if record.message is not None:
            ranges.setdefault((record.message.topic, record.message.partition), []).append(record.message.offset)
    topics = {topic for topic, _ in ranges}
    described: dict[str, AttributeValue] = {
        "messaging.system": "kafka",
        "messaging.operation.name": _OPERATION,
        "messaging.operation.type": _OPERATION,
        "messaging.consumer.group.name": group,
        "messaging.batch.message_count": len(records),
        "dupwatch.offsets": [
            f"{topic}[{partition}]: {min(offsets)} to {max(offsets)}"
            for (topic, partition), offsets in sorted(ranges.items())[:PARTITIONS_MAX]
        ],
    }
    # These two say where all messages of a batch came from, or they are left out.
    if len(topics) == 1:
        described["messaging.destination.name"] = next(iter(topics))
    if len(ranges) == 1:
        described["messaging.destination.partition.id"] = str(next(iter(ranges))[1])
    return described


def _name(records: Sequence[RawRecord]) -> str:
    topics = {record.message.topic for record in records if record.message is not None}
    return f"{_OPERATION} {next(iter(topics))}" if len(topics) == 1 else _OPERATION
