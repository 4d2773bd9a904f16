"""Metrics of running consumers: rates between two scrapes, and outgrown block plans. Pure functions."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Final, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from consumer.judge.plan_choice import outgrown_postings

Labels = frozenset[tuple[str, str]]
_BOUND: Final = "le"
_START_TIME: Final = "process_start_time_seconds"
_BUILD: Final = "dupwatch_build_info"
_POSTINGS: Final = "dupwatch_postings_read_total"
_ARTICLES: Final = "dupwatch_articles_total"
_CONNECTIONS: Final = "dupwatch_store_connections_total"
_ARTICLES_MIN: Final = 50
"""With fewer articles in an interval, use the mean since the consumers started, because posting rows vary in size."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """The samples of one consumer at one time, by name and labels; ``at_s`` is in seconds since 1970."""

    at_s: float
    samples: Mapping[str, Mapping[Labels, float]]

    def values(self, name: str, **labels: str) -> list[float]:
        """Return the values of all samples with this name and at least these labels."""
        return [
            value
            for sample_labels, value in self.samples.get(name, {}).items()
            if labels.items() <= dict(sample_labels).items()
        ]

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of the values of all samples with this name and at least these labels; 0 if there are none."""
        return sum(self.values(name, **labels))

    def values_of(self, name: str, label: str) -> list[str]:
        """Return the different values of a label in the samples with this name, in order of appearance."""
        values = (dict(labels).get(label) for labels in self.samples.get(name, {}))
        return list(dict.fromkeys(value for value in values if value is not None))


def parse_scrape(text: str, at_s: float) -> Scrape:
    """Parse Prometheus' text format. Raises ``ValueError`` for anything else."""
    samples: dict[str, dict[Labels, float]] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                samples.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
    except (ValueError, KeyError, IndexError) as error:
        raise ValueError(f"its metrics are not in Prometheus' text format: {error}") from error
    return Scrape(at_s, samples)


@dataclass(frozen=True, slots=True)
class Interval:
    """The interval between two scrapes of a consumer, or since its start if there is no first scrape."""

    before: Scrape | None
    after: Scrape

    @property
    def seconds(self) -> float:
        """The length of the interval, at least a millisecond."""
        begin_s = self.before.at_s if self.before is not None else self.after.total(_START_TIME)
        return max(self.after.at_s - begin_s, 1e-3)

    def increases(self, name: str, **labels: str) -> Iterator[tuple[dict[str, str], float]]:
        """Yield all labels and the increase of each counter with this name and at least these labels.

        A counter that was reset, such as by a restart of the consumer, increases from 0.
        """
        same_process = self.before is not None and self.before.total(_START_TIME) == self.after.total(_START_TIME)
        earlier = self.before.samples.get(name, {}) if self.before is not None and same_process else {}
        for sample_labels, value in self.after.samples.get(name, {}).items():
            of_sample = dict(sample_labels)
            if labels.items() <= of_sample.items():
                increase = value - earlier.get(sample_labels, 0.0)
                yield of_sample, value if increase < 0 else increase


def rate(intervals: Sequence[Interval], name: str, **labels: str) -> float:
    """Return the increase of a counter per second, summed over all consumers."""
    return sum(
        sum(increase for _, increase in interval.increases(name, **labels)) / interval.seconds for interval in intervals
    )


def mean(intervals: Sequence[Interval], name: str, **labels: str) -> float | None:
    """Return the mean of the observations of a histogram; None if there are none."""
    count = _increase(intervals, f"{name}_count", **labels)
    return _increase(intervals, f"{name}_sum", **labels) / count if count else None


def quantile(intervals: Sequence[Interval], share: float, name: str, **labels: str) -> float | None:
    """Return the quantile ``share`` of the observations of a histogram, over all consumers.

    Assumes an even distribution within a bucket, like Prometheus' ``histogram_quantile``. Returns None if there are no
    observations, and infinity if the quantile is above the last finite bound.
    """
    buckets: dict[float, float] = {0.0: 0.0}
    for interval in intervals:
        for of_bucket, increase in interval.increases(f"{name}_bucket", **labels):
            bound = float(of_bucket.get(_BOUND, "inf"))
            buckets[bound] = buckets.get(bound, 0.0) + increase
    bounds = sorted(buckets)
    rank = share * buckets[bounds[-1]]
    if not buckets[bounds[-1]]:
        return None
    for low, high in pairwise(bounds):
        if buckets[high] >= rank:
            inside = buckets[high] - buckets[low]
            return high if math.isinf(high) or not inside else low + (high - low) * (rank - buckets[low]) / inside
    return None


class OutgrownPlan(NamedTuple):
    """A plan, the mean number of postings read per article, the limit on that mean, and the plan to move to."""

    plan: str
    read: float
    postings_max: int
    larger: str


def outgrown_plans(intervals: Sequence[Interval]) -> Iterator[OutgrownPlan]:
    """Yield the plans that the windows of these consumers have outgrown.

    Consumers with the same plan are assumed to share a window. Their store counts as remote if any of these consumers
    has opened connections to a store. Only a plan for which a larger plan finds the same pairs can be outgrown.
    """
    by_plan: dict[tuple[str, str], list[Interval]] = {}
    for interval in intervals:
        build = interval.after
        for plan, larger in product(build.values_of(_BUILD, "plan"), build.values_of(_BUILD, "larger_plan")):
            by_plan.setdefault((plan, larger), []).append(interval)
    for (plan, larger), consumers in by_plan.items():
        read = _postings_per_article(consumers)
        remote = any(consumer.after.total(_CONNECTIONS) for consumer in consumers)
        postings_max = outgrown_postings(remote=remote)
        if larger and read > postings_max:
            yield OutgrownPlan(plan, read, postings_max, larger)


def _postings_per_article(intervals: Sequence[Interval]) -> float:
    if _increase(intervals, _ARTICLES) < _ARTICLES_MIN:
        intervals = [Interval(None, interval.after) for interval in intervals]
    articles = _increase(intervals, _ARTICLES)
    return _increase(intervals, _POSTINGS) / articles if articles else 0.0


def _increase(intervals: Sequence[Interval], name: str, **labels: str) -> float:
    return sum(increase for interval in intervals for _, increase in interval.increases(name, **labels))
