"""Metrics of outages, and of other errors that a run survives."""

import threading
from typing import Final, Literal, get_args

from consumer.kafka.sink.transactions import SinkReconnected
from consumer.kafka.source.holds import NoteIgnored
from consumer.model.hooks import Hooks, Outage, RunPart
from consumer.pipeline.batches import BatchAbandoned
from consumer.telemetry.metrics.instruments import Instruments, Label, Measure, MetricGroup, Reaction, reaction
from consumer.web.certificates import CertificateReloadFailed
from consumer.web.requests import RequestFailed

ErrorType = Literal[RunPart, "batch_abandoned", "request", "offset_note", "certificate"]

_PART: Final = Label("part", get_args(RunPart))

UNREACHABLE: Final = Measure(
    "dupwatch_unreachable", "gauge", "1 while the part is unreachable, else 0.", "0 or 1", (_PART,)
)
OUTAGES: Final = Measure(
    "dupwatch_outages_total", "counter", "Times that a part became unreachable.", "times", (_PART,)
)
RECOVERIES: Final = Measure(
    "dupwatch_recoveries_total", "counter", "Times that a part became reachable again.", "times", (_PART,)
)
SINK_RECONNECTIONS: Final = Measure(
    "dupwatch_sink_reconnections_total", "counter", "Times that the Kafka client of the sink was replaced.", "times"
)
ERRORS: Final = Measure(
    "dupwatch_errors_total",
    "counter",
    "Errors that did not end the run, by type.",
    "errors",
    (Label("type", get_args(ErrorType)),),
)
GROUP: Final = MetricGroup("Outages and errors", (UNREACHABLE, OUTAGES, RECOVERIES, SINK_RECONNECTIONS, ERRORS))


def _error(kind: type, error: ErrorType) -> Reaction:
    return reaction(ERRORS, kind, labels=lambda _: (error,))


REACTIONS: Final = (
    reaction(SINK_RECONNECTIONS, SinkReconnected),
    _error(BatchAbandoned, "batch_abandoned"),
    _error(RequestFailed, "request"),
    _error(NoteIgnored, "offset_note"),
    _error(CertificateReloadFailed, "certificate"),
)


class OutageMetrics:
    """Counts of outages, which any thread may report."""

    def __init__(self, instruments: Instruments) -> None:
        self._lock = threading.Lock()
        self._reporters: dict[RunPart, set[str]] = {part: set() for part in get_args(RunPart)}
        self._errors = instruments.counter(ERRORS)
        self._unreachable = instruments.gauge(UNREACHABLE)
        self._outages = instruments.counter(OUTAGES)
        self._recoveries = instruments.counter(RECOVERIES)

    def listen(self, hooks: Hooks) -> None:
        """Count outages from now on."""
        hooks.on(Outage, self._note_outage)

    def _note_outage(self, outage: Outage) -> None:
        """Count an outage when the first reporter sees it, and its end when the last reporter does."""
        part = outage.part
        with self._lock:
            reporters = self._reporters[part]
            was_reachable = not reporters
            if outage.reason is None:
                reporters.discard(outage.reporter)
            else:
                reporters.add(outage.reporter)
            is_reachable = not reporters
            if was_reachable and not is_reachable:
                self._errors.labels(part).inc()
                self._outages.labels(part).inc()
            elif is_reachable and not was_reachable:
                self._recoveries.labels(part).inc()
            self._unreachable.labels(part).set(not is_reachable)
