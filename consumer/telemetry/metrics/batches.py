"""Metrics of batches: the duration of each stage, and the size of batches."""

from datetime import datetime
from typing import Final, Literal, get_args

from consumer.kafka.source.fetching import FetchingWaited
from consumer.model.histogram import COUNT_BOUNDS
from consumer.model.hooks import Hooks
from consumer.model.limits import ReadLimits
from consumer.pipeline.batches import BatchCommitted, BatchMeasured, Stage, StageEnded
from consumer.telemetry.metrics.instruments import (
    SECONDS,
    SHORT_SECONDS,
    Instruments,
    Label,
    Measure,
    MetricGroup,
    reaction,
)
from consumer.text.timestamps import rfc3339
from storage.clock import MS_PER_S, Clock

TimedStage = Literal[Stage, "back_pressure"]

TIMED_STAGES: Final[tuple[TimedStage, ...]] = get_args(TimedStage)
_BYTES: Final = tuple(1024.0 * 4**power for power in range(10))
_FILLS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.99, 1.0)

END_TO_END: Final = Measure(
    "dupwatch_end_to_end_seconds",
    "histogram",
    "Time from an article's arrival until its verdict is written and committed. Repeated verdicts do not count.",
    "seconds",
    bounds=SECONDS,
)
STAGES: Final = Measure(
    "dupwatch_stage_seconds",
    "histogram",
    "Duration of one stage of a batch; poll is the wait for records, back_pressure one wait of the Kafka client (up to "
    "0.1 s).",
    "seconds",
    (Label("stage", TIMED_STAGES),),
    SHORT_SECONDS,
)
BATCH_RECORDS: Final = Measure(
    "dupwatch_batch_records", "histogram", "Records in a batch.", "records", bounds=COUNT_BOUNDS
)
BATCH_BYTES: Final = Measure(
    "dupwatch_batch_bytes", "histogram", "Size of the records in a batch.", "bytes", bounds=_BYTES
)
BATCH_FILL: Final = Measure(
    "dupwatch_batch_fill_ratio",
    "histogram",
    "Fill level of a batch: its share of source.batch_records_max or source.batch_bytes_max, whichever is larger.",
    "ratio",
    bounds=_FILLS,
)
GROUP: Final = MetricGroup("Time and batches", (END_TO_END, STAGES, BATCH_RECORDS, BATCH_BYTES, BATCH_FILL))
REACTIONS: Final = (
    reaction(BATCH_RECORDS, BatchMeasured, lambda batch: batch.records),
    reaction(BATCH_BYTES, BatchMeasured, lambda batch: batch.size_bytes),
)


class BatchMetrics:
    """Measurements of batches and stages. Only one thread may report batches; any thread may report stages."""

    def __init__(self, instruments: Instruments, now: Clock, limits: ReadLimits) -> None:
        self._now = now
        self._committed_ms = now()
        self._limits = limits
        self._stages = instruments.distributions(STAGES, TIMED_STAGES)
        self._end_to_end = instruments.distribution(END_TO_END)
        self._fill = instruments.distribution(BATCH_FILL)

    def listen(self, hooks: Hooks) -> None:
        """Measure batches and stages from now on."""
        hooks.on(StageEnded, lambda stage: self._stages[stage.stage].add((stage.seconds,)))
        hooks.on(FetchingWaited, lambda fetching: self._stages["back_pressure"].add((fetching.seconds,)))
        hooks.on(BatchMeasured, self._measure_fill)
        hooks.on(BatchCommitted, self._measure_latencies)

    def _measure_fill(self, batch: BatchMeasured) -> None:
        limits = self._limits
        fill = max(batch.records / limits.batch_records_max, batch.size_bytes / limits.batch_bytes_max)
        # A record that exceeds the limit of a batch is a batch of its own.
        self._fill.add((min(fill, 1.0),))

    def _measure_latencies(self, batch: BatchCommitted) -> None:
        """Measure latencies, except for repeated verdicts, whose versions arrived in earlier batches.

        A verdict counts as repeated if it was decided before the previous batch was committed.
        """
        now_ms = self._now()
        # All times in verdicts have the same form, so they can be compared as strings.
        began_at = rfc3339(self._committed_ms)
        arrivals = [verdict.arrived_at for verdict in batch.verdicts if verdict.decided_at >= began_at]
        self._end_to_end.add([max(0.0, now_ms / MS_PER_S - _seconds(arrived_at)) for arrived_at in arrivals])
        self._committed_ms = now_ms


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
