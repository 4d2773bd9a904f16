"""What a run measures. Every name, with its help text, stands in ``consumer.telemetry.measures``."""

import time
from collections import Counter as Tallied
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import product
from typing import Final, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Info, ProcessCollector
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from consumer.judge.events import rfc3339
from consumer.judge.histogram import Distribution
from consumer.judge.tally import Tally
from consumer.model.article import Reason
from consumer.model.dead_letter import DeadLetter
from consumer.model.limits import ReadLimits
from consumer.model.record import Partition
from consumer.model.verdict import Outcome, Verdict
from consumer.pipeline.observer import Measured
from consumer.telemetry import measures
from consumer.telemetry.health import Part
from consumer.telemetry.measures import Kind, Measure, Rebalance, Thread, TimedStage, Trouble
from consumer.telemetry.own_memory import own_memory_bytes
from consumer.telemetry.source_names import OTHER, SourceNames
from storage.watched import Connecting, Ending, Operation

SOURCES_MAX: Final = 50
_REASONS: Final = frozenset(map(str, Reason))

_Made = TypeVar("_Made", Counter, Gauge)
_Value = TypeVar("_Value", bound=str)


class Build(NamedTuple):
    """What runs: the version of dupwatch, the scheme, the block plan, and the digest of all that changes verdicts."""

    version: str
    scheme: str
    plan: str
    settings: str = ""


class Bounds(NamedTuple):
    """What a run was told that measuring depends on: how full a batch can be, and which sources are told apart."""

    read: ReadLimits = ReadLimits()
    sources_max: int = SOURCES_MAX
    sources: tuple[str, ...] = ()
    workers: int = 0


_Series = Mapping[tuple[str, ...], Distribution]
"""Distributions by the values of their labels."""


class _Collector(Collector):
    """Reads counts and distributions that others keep whenever somebody asks, so that nothing is counted twice."""

    def __init__(self, read: Callable[[], Mapping[Measure, float | _Series]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """All of it, as it is now."""
        for measure, value in self._read().items():
            if isinstance(value, Mapping):
                family = HistogramMetricFamily(measure.name, measure.help, labels=_labels(measure))
                bounds = [*map(floatToGoString, measure.bounds), "+Inf"]
                for labels, one in value.items():
                    family.add_metric(labels, list(zip(bounds, one.cumulative(), strict=True)), one.total)
                yield family
            else:
                yield CounterMetricFamily(measure.name, measure.help, value)


class Metrics:
    """All metrics of one run, in a registry of their own.

    Batches are told by one thread; every other method may be called from any. It is a ``SourceWatcher``, a
    ``SinkWatcher``, a ``StoreWatcher`` and an ``Observer``. ``clock`` gives seconds since 1970.
    """

    def __init__(self, build: Build, clock: Callable[[], float] = time.time, bounds: Bounds = Bounds()) -> None:  # noqa: B008  # immutable
        self.registry = CollectorRegistry()
        self._clock = clock
        self._judged_s = clock()
        self._down: set[Part] = set()
        self._bounds = bounds
        self._names = SourceNames(bounds.sources_max, bounds.sources)
        ProcessCollector(registry=self.registry)
        Info(measures.BUILD.name.removesuffix("_info"), measures.BUILD.help, registry=self.registry).info(
            build._asdict()
        )
        self._gauge(measures.WORKERS).set(bounds.workers)
        self._gauge(measures.OWN_MEMORY).set_function(own_memory_bytes)
        self._count_batches()
        self._count_parts()
        self._watch_source()
        self._watch_store()

    def watch(self, tally: Tally) -> None:
        """Tell the counts of this tally too; called once."""

        def read() -> dict[Measure, float | _Series]:
            told = {measure: getattr(tally, field) for field, measure in measures.TALLIED.items()}
            return {one: {(): value} if one.bounds else value for one, value in told.items()}

        self.registry.register(_Collector(read))

    # -- the observer of the pipeline

    def judged(self, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Count a batch that was committed.

        Latency is from the record time. A verdict that was decided before this batch began is given again: it counts as
        an article, but how long ago its version first arrived is no latency.
        """
        now_s = self._clock()
        for outcome, articles in Tallied(verdict.outcome for verdict in verdicts).items():
            self._articles[outcome].inc(articles)
        # Times of verdicts are all written alike, and so in order as they stand.
        began_at = rfc3339(int(self._judged_s * 1000))
        arrivals = [verdict.arrived_at for verdict in verdicts if verdict.decided_at >= began_at]
        self._end_to_end.add([max(0.0, now_s - _seconds(arrived_at)) for arrived_at in arrivals])
        self._flagged([verdict for verdict in verdicts if verdict.outcome == "duplicate"])
        for letter in letters:
            self._dead_letters.labels(letter.reason if letter.reason in _REASONS else OTHER).inc()
        self._last_processed.set(now_s)
        self._judged_s = now_s

    def measured(self, batch: Measured) -> None:
        """Measure a batch that was committed."""
        self._batch_records.add((batch.records,))
        self._batch_bytes.add((batch.size_bytes,))
        read = self._bounds.read
        fill = max(batch.records / read.batch_records_max, batch.size_bytes / read.batch_bytes_max)
        # A record larger than a batch may be is a batch of its own.
        self._batch_fill.add((min(fill, 1.0),))
        self._keywords.add(batch.keyword_counts.tolist())
        self._headers_lost.inc(batch.headers_lost)
        for fault, articles in batch.time_faults.items():
            self._times_unread.labels(fault).inc(articles)
        for (source, outcome), articles in Tallied(batch.said).items():
            self._source(self._names.label(source))[outcome].inc(articles)

    # -- the loop

    @contextmanager
    def stage(self, stage: TimedStage) -> Iterator[None]:
        """Time what happens inside, also where it ends with an error."""
        began_s = time.perf_counter()
        try:
            yield
        finally:
            self.spent(stage, time.perf_counter() - began_s)

    def spent(self, stage: TimedStage, seconds: float) -> None:
        """So much time went into this stage of a batch."""
        self._stages[stage].add((seconds,))

    def turned(self, thread: Thread = "main") -> None:
        """A loop turned."""
        self._heartbeats[thread].set(self._clock())

    def busy(self, *, busy: bool) -> None:
        """Whether the main thread works on a batch."""
        self._busy.set(busy)

    def error(self, what: Trouble) -> None:
        """Something went wrong that did not end the run."""
        self._errors.labels(what).inc()

    def record_times_replaced(self, records: int) -> None:
        """So many records had no time, or an impossible one, and got the ingest time."""
        self._times_replaced.inc(records)

    def record_time_behind(self) -> None:
        """A record was stamped too far behind its partition, and arrived with what had come before it."""
        self._times_behind.inc()

    # -- the watcher of the store

    def store_called(self, operation: Operation, ending: Ending, seconds: float) -> None:
        """A call of the store has ended."""
        self._store_operations[operation, ending].inc()
        self._store_seconds[operation].add((seconds,))

    def store_connected(self, what: Connecting) -> None:
        """A connection was made, could not be made, or broke."""
        self._store_connections.labels(what).inc()

    def store_repeated(self, operation: Operation) -> None:
        """A call asked again."""
        self._store_repeats.labels(operation).inc()

    def store_trouble(self, why: str | None) -> None:
        """The store is out of reach, or is back (None)."""
        self._told("store", why)

    # -- the watcher of the source

    def beat(self) -> None:
        """The source's thread turns."""
        self.turned("client")

    def assigned(self, partitions: int) -> None:
        """So many partitions are this consumer's."""
        self._assigned.set(partitions)

    def rebalanced(self, what: Rebalance) -> None:
        """Partitions came or went. The lag of those that stay is told again soon, that of the others never."""
        self._rebalances.labels(what).inc()
        if what != "assigned":
            self._lag.clear()

    def lag(self, topic: str, partition: int, records: int) -> None:
        """So many records of a partition are there and not committed."""
        self._lag.labels(topic, str(partition)).set(records)

    def paused(self, *, paused: bool) -> None:
        """Whether anything is fetched for the time being."""
        self._paused.set(paused)

    def held_back(self, seconds: float) -> None:
        """For so long nothing more was taken in."""
        self.spent("back_pressure", seconds)

    def source_trouble(self, why: str | None) -> None:
        """The brokers cannot be reached, or can again (None)."""
        self._told("source", why)

    def gap(self, records: int) -> None:
        """So many records were deleted before they were read."""
        self._lost_to_retention.inc(records)

    def holding(self, held: Mapping[Partition, str | None]) -> None:
        """Which partitions are held. The lag of these is told no more."""
        self._held.clear()
        for (topic, partition), why in held.items():
            self._held.labels(topic, str(partition)).set(why is not None)
            if why is not None:
                with suppress(KeyError):
                    self._lag.remove(topic, str(partition))

    def note_unreadable(self) -> None:
        """What stands beside an offset cannot be read."""
        self.error("offset_note")

    # -- the watcher of the sink

    def sink_trouble(self, why: str | None) -> None:
        """Nothing can be sent, or something can again (None)."""
        self._told("sink", why)

    def reconnected(self) -> None:
        """The sink's client was made anew."""
        self._sink_reconnections.inc()

    def time_moved(self) -> None:
        """A copy of a record was sent without the record's time."""
        self._times_moved.inc()

    def _told(self, part: Part, why: str | None) -> None:
        """Count where a trouble begins, and where it ends: it may be told any number of times in between."""
        if why is not None and part not in self._down:
            self._down.add(part)
            self._errors.labels(part).inc()
            self._outages.labels(part).inc()
        elif why is None and part in self._down:
            self._down.discard(part)
            self._recoveries.labels(part).inc()
        self._unreachable.labels(part).set(why is not None)

    def _flagged(self, duplicates: Sequence[Verdict]) -> None:
        for kind, articles in Tallied(map(_kind, duplicates)).items():
            self._duplicates[kind].inc(articles)
        self._similarity.add(one.similarity for one in duplicates if one.similarity is not None)
        self._distance.add(one.distance for one in duplicates if one.distance is not None)

    def _source(self, source: str) -> Mapping[Outcome, Counter]:
        """What counts the articles of this source; it is there with all outcomes from its first article on."""
        if source not in self._sources:
            made = {outcome: self._source_articles.labels(source, outcome) for outcome in measures.OUTCOMES}
            self._sources[source] = made
        return self._sources[source]

    # -- making them

    def _count_batches(self) -> None:
        # What is told in every batch is looked up by its labels once.
        articles, duplicates = self._counter(measures.ARTICLES), self._counter(measures.DUPLICATES)
        self._articles = {outcome: articles.labels(outcome) for outcome in measures.OUTCOMES}
        self._duplicates = {kind: duplicates.labels(kind) for kind in measures.KINDS}
        self._dead_letters = self._counter(measures.DEAD_LETTERS)
        self._times_unread = self._counter(measures.TIMES_UNREAD)
        self._times_replaced = self._counter(measures.TIMES_REPLACED)
        self._headers_lost = self._counter(measures.HEADERS_LOST)
        self._times_moved = self._counter(measures.TIMES_MOVED)
        self._times_behind = self._counter(measures.TIMES_BEHIND)
        self._source_articles = self._counter(measures.SOURCE_ARTICLES)
        self._sources: dict[str, Mapping[Outcome, Counter]] = {}
        for source in self._names.labels:
            self._source(source)
        self._stages = self._distributions(measures.STAGES, measures.TIMED_STAGES)
        self._end_to_end = self._distribution(measures.END_TO_END)
        self._similarity = self._distribution(measures.DUPLICATE_SIMILARITY)
        self._distance = self._distribution(measures.DUPLICATE_DISTANCE)
        self._keywords = self._distribution(measures.KEYWORDS)
        self._batch_records = self._distribution(measures.BATCH_RECORDS)
        self._batch_bytes = self._distribution(measures.BATCH_BYTES)
        self._batch_fill = self._distribution(measures.BATCH_FILL)

    def _count_parts(self) -> None:
        self._errors = self._counter(measures.ERRORS)
        self._unreachable = self._gauge(measures.UNREACHABLE)
        self._outages = self._counter(measures.OUTAGES)
        self._recoveries = self._counter(measures.RECOVERIES)
        self._sink_reconnections = self._counter(measures.SINK_RECONNECTIONS)
        heartbeats = self._gauge(measures.HEARTBEAT)
        self._heartbeats = {thread: heartbeats.labels(thread) for thread in measures.THREADS}
        self._busy = self._gauge(measures.BUSY)
        self._last_processed = self._gauge(measures.LAST_PROCESSED)

    def _watch_source(self) -> None:
        self._lag = self._gauge(measures.LAG)
        self._assigned = self._gauge(measures.ASSIGNED)
        self._held = self._gauge(measures.PARTITION_HELD)
        self._rebalances = self._counter(measures.REBALANCES)
        self._paused = self._gauge(measures.PAUSED)
        self._lost_to_retention = self._counter(measures.LOST_TO_RETENTION)

    def _watch_store(self) -> None:
        calls = self._counter(measures.STORE_OPERATIONS)
        pairs = product(measures.OPERATIONS, measures.ENDINGS)
        self._store_operations = {pair: calls.labels(*pair) for pair in pairs}
        self._store_seconds = self._distributions(measures.STORE_SECONDS, measures.OPERATIONS)
        self._store_repeats = self._counter(measures.STORE_REPEATS)
        self._store_connections = self._counter(measures.STORE_CONNECTIONS)

    def _distribution(self, measure: Measure) -> Distribution:
        """One that takes a batch at once: a histogram of the client library takes locks for each value."""
        made = Distribution(measure.bounds)
        self.registry.register(_Collector(lambda: {measure: {(): made}}))
        return made

    def _distributions(self, measure: Measure, values: Sequence[_Value]) -> Mapping[_Value, Distribution]:
        """One for each value of the only label."""
        made = {value: Distribution(measure.bounds) for value in values}
        series: _Series = {(str(value),): one for value, one in made.items()}
        self.registry.register(_Collector(lambda: {measure: series}))
        return made

    def _counter(self, measure: Measure) -> Counter:
        return _begin(Counter(measure.name, measure.help, _labels(measure), registry=self.registry), measure)

    def _gauge(self, measure: Measure) -> Gauge:
        return _begin(Gauge(measure.name, measure.help, _labels(measure), registry=self.registry), measure)


def _labels(measure: Measure) -> list[str]:
    return [label.name for label in measure.labels]


def _begin(made: _Made, measure: Measure) -> _Made:
    """Let every series begin at 0: a rate does not see the first count of a series that was not there before."""
    if measure.labels:
        for values in product(*(label.values for label in measure.labels)):
            made.labels(*values)
    return made


def _kind(verdict: Verdict) -> Kind:
    return "copy" if verdict.distance == 0 and verdict.similarity == 1 else "near"


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
