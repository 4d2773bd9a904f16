"""What a run measures. Every name, with its help text, stands in ``consumer.telemetry.measures``."""

import threading
import time
from collections import Counter as Tallied
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
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
from consumer.lifecycle.turns import MAIN, ThreadRested, ThreadTurned
from consumer.model.article import Reason
from consumer.model.hooks import Hooks, Outage, Part
from consumer.model.limits import ReadLimits
from consumer.model.verdict import Outcome, Verdict
from consumer.pipeline.arrivals import RecordTimeBehind, RecordTimeReplaced
from consumer.pipeline.batches import BatchAbandoned, BatchCommitted, BatchMeasured
from consumer.pipeline.stages import StageEnded
from consumer.sinks.record_times import RecordTimeMoved
from consumer.sinks.transactions import SinkReconnected
from consumer.sources.gaps import RecordsDeleted
from consumer.sources.holds import NoteUnreadable, PartitionsHeld
from consumer.sources.kafka_client import ClientTurned, FetchingPaused, FetchingWaited, LagRead, Rebalanced
from consumer.telemetry import measures
from consumer.telemetry.measures import Kind, Measure, Trouble
from consumer.telemetry.own_memory import own_memory_bytes
from consumer.telemetry.source_names import OTHER, SourceNames
from storage.watched import StoreCalled, StoreConnected, StoreRepeated

SOURCES_MAX: Final = 50
_REASONS: Final = frozenset(map(str, Reason))

_Made = TypeVar("_Made", Counter, Gauge)
_Value = TypeVar("_Value", bound=str)


class RequestFailed(NamedTuple):
    """A request for a page could not be answered, or not in full, for a reason that is not the client's."""


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

    Batches are reported by one thread, everything else by any. ``clock`` gives seconds since 1970.
    """

    def __init__(self, build: Build, clock: Callable[[], float] = time.time, bounds: Bounds = Bounds()) -> None:  # noqa: B008  # immutable
        self.registry = CollectorRegistry()
        self._clock = clock
        self._judged_s = clock()
        self._outages_lock = threading.Lock()
        self._reporters: dict[Part, set[str]] = {}
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

    def listen(self, hooks: Hooks) -> None:
        """Count what is reported from now on."""
        hooks.on(BatchMeasured, self._measure)
        hooks.on(BatchCommitted, self._count)
        hooks.on(BatchAbandoned, lambda _: self._error("batch_abandoned"))
        hooks.on(RequestFailed, lambda _: self._error("request"))
        hooks.on(StageEnded, lambda stage: self._stages[stage.stage].add((stage.seconds,)))
        hooks.on(RecordTimeReplaced, lambda _: self._times_replaced.inc())
        hooks.on(RecordTimeBehind, lambda _: self._times_behind.inc())
        hooks.on(Outage, self._tell_outage)
        hooks.on(ThreadTurned, self._turned)
        hooks.on(ThreadRested, self._rested)
        hooks.on(ClientTurned, lambda _: self._heartbeats["client"].set(self._clock()))
        hooks.on(Rebalanced, self._rebalanced)
        hooks.on(LagRead, lambda lag: self._lag.labels(lag.topic, str(lag.partition)).set(lag.records))
        hooks.on(FetchingPaused, lambda fetching: self._paused.set(fetching.paused))
        hooks.on(FetchingWaited, lambda fetching: self._stages["back_pressure"].add((fetching.seconds,)))
        hooks.on(RecordsDeleted, lambda deleted: self._lost_to_retention.inc(deleted.records))
        hooks.on(PartitionsHeld, self._hold)
        hooks.on(NoteUnreadable, lambda _: self._error("offset_note"))
        hooks.on(SinkReconnected, lambda _: self._sink_reconnections.inc())
        hooks.on(RecordTimeMoved, lambda _: self._times_moved.inc())
        hooks.on(StoreCalled, self._call_of_store)
        hooks.on(StoreConnected, lambda connected: self._store_connections.labels(connected.change).inc())
        hooks.on(StoreRepeated, lambda repeated: self._store_repeats.labels(repeated.operation).inc())

    def _count(self, batch: BatchCommitted) -> None:
        """Count a batch that was committed.

        Latency is from the record time. A verdict that was decided before this batch began is given again: it counts as
        an article, but how long ago its version first arrived is no latency.
        """
        now_s = self._clock()
        verdicts, letters = batch
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

    def _measure(self, batch: BatchMeasured) -> None:
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
        for (source, outcome), articles in Tallied(batch.outcomes).items():
            self._source(self._names.label(source))[outcome].inc(articles)

    def _turned(self, turned: ThreadTurned) -> None:
        if turned.thread == MAIN:
            self._heartbeats["main"].set(self._clock())
            self._busy.set(1)

    def _rested(self, rested: ThreadRested) -> None:
        if rested.thread == MAIN:
            self._busy.set(0)

    def _error(self, what: Trouble) -> None:
        """Something went wrong that did not end the run."""
        self._errors.labels(what).inc()

    def _call_of_store(self, call: StoreCalled) -> None:
        self._store_operations[call.operation, call.ending].inc()
        self._store_seconds[call.operation].add((call.seconds,))

    def _rebalanced(self, rebalanced: Rebalanced) -> None:
        """Partitions came or went. The lag of those that stay is told again soon, that of the others never."""
        self._rebalances.labels(rebalanced.what).inc()
        self._assigned.set(rebalanced.partitions)
        if rebalanced.what != "assigned":
            self._lag.clear()

    def _hold(self, held: PartitionsHeld) -> None:
        """Which partitions are held. The lag of these is told no more."""
        self._held.clear()
        for (topic, partition), why in held.reasons.items():
            self._held.labels(topic, str(partition)).set(why is not None)
            if why is not None:
                with suppress(KeyError):
                    self._lag.remove(topic, str(partition))

    def _tell_outage(self, outage: Outage) -> None:
        """Count where an outage of a part begins, and where it ends, all its reporters heard; they may repeat it."""
        part = outage.part
        with self._outages_lock:
            reporters = self._reporters.setdefault(part, set())
            was_reachable = not reporters
            (reporters.discard if outage.why is None else reporters.add)(outage.reporter)
            if was_reachable and reporters:
                self._errors.labels(part).inc()
                self._outages.labels(part).inc()
            elif not was_reachable and not reporters:
                self._recoveries.labels(part).inc()
            self._unreachable.labels(part).set(bool(reporters))

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
