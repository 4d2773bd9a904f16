"""What a run measures: every name, with its help text, stands in this file.

Labels are bounded: their values come from lists that are fixed here, or are partitions of the topics that are read.
Nothing is labelled by an article or its source.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final, Literal, NamedTuple, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from consumer.article import Reason
from consumer.dead_letter import DeadLetter
from consumer.detector import Tally
from consumer.verdict import Outcome, Verdict

Stage = Literal["poll", "decode", "fingerprint", "judge", "emit", "commit", "wait"]
Trouble = Literal["source", "sink", "store", "batch_abandoned", "request"]
Thread = Literal["client", "main"]
Rebalance = Literal["assigned", "revoked", "lost"]

OTHER: Final = "other"
"""The label of a dead letter whose reason is none of the list: an unknown one must not make a series of its own."""
SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
BATCH_RECORDS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
_REASONS: Final = frozenset(str(reason) for reason in Reason)
_COPY: Final = "copy"
_NEAR: Final = "near"

TALLIED: Final[Mapping[str, tuple[str, str]]] = {
    "without_keywords": ("dupwatch_articles_without_keywords", "Versions that have no keyword, and so match nothing."),
    "replays": ("dupwatch_verdicts_repeated", "Versions that had been judged before, and got the verdict they had."),
    "known_copies": ("dupwatch_known_copies", "Duplicates settled by a known original, without postings."),
    "row_reads": ("dupwatch_posting_row_reads", "Rows of postings read."),
    "postings_read": ("dupwatch_postings_read", "Postings in the rows that were read."),
    "candidates": ("dupwatch_candidates", "Earlier versions that postings named as possibly near."),
    "record_reads": ("dupwatch_record_reads", "Records read from the store."),
    "verifications": ("dupwatch_verifications", "Pairs of records compared."),
    "lost_compare_and_sets": ("dupwatch_lost_compare_and_sets", "Verdicts that somebody else had written first."),
    "truncated": ("dupwatch_verdicts_truncated", "Versions whose search was cut short by a limit."),
}
"""The fields of the detector's tally that are told as they are: name without ``_total``, and help."""
TOLD_BY_OUTCOME: Final = frozenset({"versions", "kept", "duplicates", "retractions"})
"""The other fields, which ``dupwatch_articles_total`` tells by outcome."""


class Build(NamedTuple):
    """What runs: the version of dupwatch, the scheme and the block plan."""

    version: str
    scheme: str
    plan: str


class _TallyCollector(Collector):
    """Reads the detector's own counts whenever somebody asks, so that nothing is counted twice."""

    def __init__(self, tally: Callable[[], Tally]) -> None:
        self._tally = tally

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Every count, as it is now."""
        tally = self._tally()
        for field, (name, documentation) in TALLIED.items():
            yield CounterMetricFamily(name, documentation, value=getattr(tally, field))


class Metrics:
    """All metrics of one run, in a registry of their own; its methods may be called from any thread.

    It is a ``SourceWatcher``, a ``SinkWatcher`` and an ``Observer``. ``clock`` gives seconds since 1970.
    """

    def __init__(self, build: Build, clock: Callable[[], float] = time.time) -> None:
        self.registry = CollectorRegistry()
        self._clock = clock
        self._judged_s = clock()
        self._down: set[Trouble] = set()
        ProcessCollector(registry=self.registry)
        Info("dupwatch_build", "What runs.", registry=self.registry).info(build._asdict())
        self._count_articles()
        self._count_troubles()
        self._measure_times()
        self._gauge_source()

    def watch(self, tally: Tally) -> None:
        """Tell the counts of this tally too; called once."""
        self.registry.register(_TallyCollector(lambda: tally))

    # -- the observer of the pipeline

    def judged(self, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Count a batch that was committed.

        Latency is from the record time. A verdict that was decided before this batch began is given again: it counts as
        an article, but how long ago its version first arrived is no latency.
        """
        now_s = self._clock()
        for verdict in verdicts:
            self._articles.labels(verdict.outcome).inc()
            if verdict.outcome == "duplicate":
                self._duplicates.labels(_kind(verdict)).inc()
            if _seconds(verdict.decided_at) >= int(self._judged_s * 1000) / 1000:
                self._end_to_end.observe(max(0.0, now_s - _seconds(verdict.arrived_at)))
        for letter in letters:
            self._dead_letters.labels(letter.reason if letter.reason in _REASONS else OTHER).inc()
        self._batch_records.observe(len(verdicts) + len(letters))
        self._last_processed.set(now_s)
        self._judged_s = now_s

    # -- the loop

    @contextmanager
    def stage(self, stage: Stage) -> Iterator[None]:
        """Time what happens inside, also where it ends with an error."""
        began_s = time.perf_counter()
        try:
            yield
        finally:
            self._stages.labels(stage).observe(time.perf_counter() - began_s)

    def turned(self, thread: Thread = "main") -> None:
        """A loop turned."""
        self._heartbeat.labels(thread).set(self._clock())

    def error(self, what: Trouble) -> None:
        """Something went wrong that did not end the run."""
        self._errors.labels(what).inc()

    def record_times_replaced(self, records: int) -> None:
        """So many records had no time, or an impossible one, and got the ingest time."""
        self._record_times_replaced.inc(records)

    def store_trouble(self, why: str | None) -> None:
        """The store is out of reach, or is back (None)."""
        if self._told("store", why):
            self._store_outages.inc()

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

    def source_trouble(self, why: str | None) -> None:
        """The brokers cannot be reached, or can again (None)."""
        self._told("source", why)

    def gap(self, records: int) -> None:
        """So many records were deleted before they were read."""
        self._lost_to_retention.inc(records)

    # -- the watcher of the sink

    def sink_trouble(self, why: str | None) -> None:
        """Nothing can be sent, or something can again (None)."""
        self._told("sink", why)

    def reconnected(self) -> None:
        """The sink's client was made anew."""
        self._reconnections.inc()

    def _told(self, what: Trouble, why: str | None) -> bool:
        """Whether this is the beginning of a trouble: while it lasts it may be told any number of times."""
        begins = why is not None and what not in self._down
        if begins:
            self._down.add(what)
            self._errors.labels(what).inc()
        elif why is None:
            self._down.discard(what)
        self._unreachable.labels(what).set(why is not None)
        return begins

    def _count_articles(self) -> None:
        self._articles = Counter(
            "dupwatch_articles_total", "Articles answered, by what was said.", ["outcome"], registry=self.registry
        )
        self._duplicates = Counter(
            "dupwatch_duplicates_total",
            "Duplicates: copies have the same fingerprint and similarity 1, all others are near.",
            ["kind"],
            registry=self.registry,
        )
        self._dead_letters = Counter(
            "dupwatch_dead_letters_total", "Records that could not be judged.", ["reason"], registry=self.registry
        )
        self._record_times_replaced = Counter(
            "dupwatch_record_times_replaced_total",
            "Records whose time was missing or impossible, and became the ingest time.",
            registry=self.registry,
        )
        _begin(self._articles, get_args(Outcome))
        _begin(self._duplicates, (_COPY, _NEAR))
        _begin(self._dead_letters, (*sorted(_REASONS), OTHER))

    def _count_troubles(self) -> None:
        self._errors = Counter(
            "dupwatch_errors_total", "What went wrong without ending the run.", ["type"], registry=self.registry
        )
        self._rebalances = Counter(
            "dupwatch_rebalances_total", "Times that partitions came or went.", ["what"], registry=self.registry
        )
        self._store_outages = Counter(
            "dupwatch_store_outages_total", "Times that the store went out of reach.", registry=self.registry
        )
        self._reconnections = Counter(
            "dupwatch_sink_reconnections_total", "Times that the sink's client was made anew.", registry=self.registry
        )
        self._lost_to_retention = Counter(
            "dupwatch_records_lost_to_retention_total",
            "Records that were deleted from a topic before they were read.",
            registry=self.registry,
        )
        _begin(self._errors, get_args(Trouble))
        _begin(self._rebalances, get_args(Rebalance))

    def _measure_times(self) -> None:
        self._end_to_end = Histogram(
            "dupwatch_end_to_end_seconds",
            "From a record's time to its verdict being written and committed; not of verdicts that are given again.",
            buckets=SECONDS,
            registry=self.registry,
        )
        self._stages = Histogram(
            "dupwatch_stage_seconds",
            "How long a stage took: of a batch, but poll and wait of one wait.",
            ["stage"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._batch_records = Histogram(
            "dupwatch_batch_records", "Records of a batch.", buckets=BATCH_RECORDS, registry=self.registry
        )
        for stage in get_args(Stage):
            self._stages.labels(stage)

    def _gauge_source(self) -> None:
        self._lag = Gauge(
            "dupwatch_lag_records",
            "Records of a partition that are there and not committed.",
            ["topic", "partition"],
            registry=self.registry,
        )
        self._last_processed = Gauge(
            "dupwatch_last_processed_timestamp_seconds", "When a batch was last committed.", registry=self.registry
        )
        self._heartbeat = Gauge(
            "dupwatch_loop_heartbeat_timestamp_seconds",
            "When the loop of a thread last turned; the main one rests while nothing comes.",
            ["thread"],
            registry=self.registry,
        )
        self._paused = Gauge("dupwatch_paused", "1 while nothing is fetched.", registry=self.registry)
        self._assigned = Gauge(
            "dupwatch_assigned_partitions", "Partitions that are this consumer's.", registry=self.registry
        )
        self._unreachable = Gauge(
            "dupwatch_unreachable", "1 while that part is out of reach.", ["part"], registry=self.registry
        )
        for part in ("source", "sink", "store"):
            self._unreachable.labels(part)


def _begin(counter: Counter, values: Sequence[str]) -> None:
    """Let every series begin at 0: a rate does not see the first count of a series that was not there before."""
    for value in values:
        counter.labels(value)


def _kind(verdict: Verdict) -> str:
    return _COPY if verdict.distance == 0 and verdict.similarity == 1 else _NEAR


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
