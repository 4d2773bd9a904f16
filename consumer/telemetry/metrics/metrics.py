"""All metrics of a run, of the service, or of the console, in a registry of their own."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector

from consumer.judge.tally import Tally
from consumer.model.hooks import Hooks, Listener
from consumer.model.limits import ReadLimits
from consumer.telemetry.metrics import (
    access,
    banks,
    batches,
    clocks,
    console,
    drift,
    inbox,
    judging,
    outages,
    requests,
    run,
    store,
    topics,
    verdicts,
    webhooks,
)
from consumer.telemetry.metrics.instruments import Instruments, Measure, MetricGroup, ReactingMetrics, Series
from consumer.telemetry.source_names import SourceNames
from storage.clock import Clock, now_ms

SOURCES_MAX: Final = 50

GROUPS: Final[tuple[MetricGroup, ...]] = (
    verdicts.GROUP,
    banks.GROUP,
    drift.GROUP,
    batches.GROUP,
    judging.GROUP,
    topics.GROUP,
    store.GROUP,
    outages.GROUP,
    run.GROUP,
    clocks.GROUP,
    access.CERTIFICATE_GROUP,
    requests.GROUP,
    access.GROUP,
    inbox.GROUP,
    console.GROUP,
    webhooks.GROUP,
    requests.CONSOLE_GROUP,
)
"""All metrics, in the order of the documentation."""
TALLIED: Final[Mapping[str, Measure]] = {**verdicts.TALLIED, **drift.TALLIED, **judging.TALLIED}
"""The fields of the detector's tally that are metrics themselves."""
_COMMON_REACTIONS: Final = (*store.REACTIONS, *outages.REACTIONS, *access.CERTIFICATE_REACTIONS)
_FEED_REACTIONS: Final = (*verdicts.REACTIONS, *banks.REACTIONS, *batches.REACTIONS)
UNTALLIED_FIELDS: Final = frozenset({"versions", "kept", "duplicates", "retractions", "look_up_s", "settle_s"})
"""The other fields of the tally. Other metrics show these counts by outcome or by stage."""


class Bounds(NamedTuple):
    """The settings that metrics depend on: the limits of a batch, the sources with their own series, and the workers.

    The first ``sources_max`` sources get series of their own, beginning with ``sources``.
    """

    read: ReadLimits = ReadLimits()
    sources_max: int = SOURCES_MAX
    sources: tuple[str, ...] = ()
    workers: int = 0


class MetricSet:
    """Metrics in a registry of their own: the metrics of ``listeners`` and of the process.

    ``tallied`` has the metric for each field of a detector's tally that is shown.
    """

    def __init__(
        self, listeners: Callable[[Instruments], Sequence[Listener]], tallied: Mapping[str, Measure] = TALLIED
    ) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._instruments = Instruments(self.registry)
        self._listeners = listeners(self._instruments)
        self._tallied = tallied

    def listen(self, hooks: Hooks) -> None:
        """Count occurrences from now on."""
        for listener in self._listeners:
            listener.listen(hooks)

    def show_build(self, build: run.Build) -> None:
        """Show the build. Called once the settings of the store are known, because the build contains them."""
        self._instruments.info(run.BUILD, build._asdict())

    def watch(self, *tallies: Tally) -> None:
        """Also show the sum of these tallies. Called once."""

        def read() -> dict[Measure, float | Series]:
            tally = Tally()
            for each in tallies:
                tally.add(each)
            counts = {measure: getattr(tally, field) for field, measure in self._tallied.items()}
            return {measure: {(): count} if measure.bounds else count for measure, count in counts.items()}

        self._instruments.add_reader(read)


class Metrics(MetricSet):
    """All metrics of one run.

    ``clock`` returns the seconds since 1970 for timestamps in metrics, ``now`` the milliseconds since 1970 with which
    arrivals are compared.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        bounds: Bounds = Bounds(),  # noqa: B008  # immutable
        now: Clock = now_ms,
    ) -> None:
        super().__init__(
            lambda instruments: (
                verdicts.VerdictMetrics(instruments, SourceNames(bounds.sources_max, bounds.sources)),
                banks.BankMetrics(instruments),
                drift.DriftMetrics(instruments),
                batches.BatchMetrics(instruments, now, bounds.read),
                topics.TopicMetrics(instruments),
                store.StoreMetrics(instruments),
                outages.OutageMetrics(instruments),
                run.RunMetrics(instruments, clock, bounds.workers),
                clocks.ClockMetrics(instruments),
                ReactingMetrics(instruments, *_COMMON_REACTIONS, *_FEED_REACTIONS, *topics.REACTIONS),
            )
        )


class ServiceMetrics(MetricSet):
    """All metrics of the service, whose feed is its requests."""

    def __init__(self, bounds: Bounds = Bounds()) -> None:  # noqa: B008  # immutable
        super().__init__(
            lambda instruments: (
                verdicts.VerdictMetrics(instruments, SourceNames(bounds.sources_max, bounds.sources)),
                banks.BankMetrics(instruments),
                drift.DriftMetrics(instruments),
                batches.BatchMetrics(instruments, now_ms, bounds.read),
                requests.RequestMetrics(instruments, requests.SERVICE_REQUESTS),
                clocks.ClockMetrics(instruments),
                store.StoreMetrics(instruments),
                outages.OutageMetrics(instruments),
                run.OwnMemory(instruments),
                ReactingMetrics(
                    instruments,
                    *_COMMON_REACTIONS,
                    *_FEED_REACTIONS,
                    *requests.REACTIONS,
                    requests.CHECK_REACTION,
                    *access.REACTIONS,
                    *inbox.REACTIONS,
                ),
            )
        )


class ConsoleMetrics(MetricSet):
    """All metrics of the console, which judges nothing. Metrics of topics are left out if it reads no topics."""

    def __init__(self, *, reads_topics: bool = True) -> None:
        super().__init__(
            lambda instruments: (
                requests.RequestMetrics(instruments, requests.CONSOLE_REQUESTS),
                *((topics.TopicMetrics(instruments),) if reads_topics else ()),
                clocks.ClockMetrics(instruments),
                store.StoreMetrics(instruments),
                outages.OutageMetrics(instruments),
                run.OwnMemory(instruments),
                ReactingMetrics(
                    instruments,
                    *_COMMON_REACTIONS,
                    *console.REACTIONS,
                    *webhooks.REACTIONS,
                    *requests.REACTIONS,
                    *(topics.REACTIONS if reads_topics else ()),
                ),
            ),
            tallied={},
        )
