"""Metrics of running consumers: rates between two scrapes, and which block plans their windows have outgrown. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Final, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from consumer.judge.plan_choice import outgrown_postings

Labels = frozenset[tuple[str, str]]
_BOUND: Final = "le"
_BEGAN: Final = "process_start_time_seconds"
_BUILD: Final = "dupwatch_build_info"
_POSTINGS: Final = "dupwatch_postings_read_total"
_ARTICLES: Final = "dupwatch_articles_total"
_CONNECTIONS: Final = "dupwatch_store_connections_total"
_ARTICLES_MIN: Final = 50
"""With fewer articles in an interval the mean since the start counts: rows differ."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """The samples of one consumer at one time, by name and labels. ``at_s`` is in seconds since 1970."""

    at_s: float
    samples: Mapping[str, Mapping[Labels, float]]

    def values(self, name: str, **labels: str) -> list[float]:
        """Return the values of all samples with this name and these labels."""
        wanted = labels.items()
        return [value for found, value in self.samples.get(name, {}).items() if wanted <= dict(found).items()]

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of these values; 0 if there are none."""
        return sum(self.values(name, **labels))

    def values_of(self, name: str, label: str) -> list[str]:
        """Return the values of a label in the samples with this name, in their order."""
        found = (dict(labels).get(label) for labels in self.samples.get(name, {}))
        return list(dict.fromkeys(value for value in found if value is not None))


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
    """What happened at one consumer between two scrapes, or since it started if there is no first scrape."""

    before: Scrape | None
    after: Scrape

    @property
    def seconds(self) -> float:
        """Its length; never 0."""
        begin_s = self.before.at_s if self.before is not None else self.after.total(_BEGAN)
        return max(self.after.at_s - begin_s, 1e-3)

    def increases(self, name: str, **labels: str) -> Iterator[tuple[dict[str, str], float]]:
        """Yield the increase of each counter with this name and these labels, from 0 if it was reset."""
        wanted = labels.items()
        continues = self.before is not None and self.before.total(_BEGAN) == self.after.total(_BEGAN)
        known = self.before.samples.get(name, {}) if self.before is not None and continues else {}
        for found, value in self.after.samples.get(name, {}).items():
            described = dict(found)
            if wanted <= described.items():
                grown = value - known.get(found, 0.0)
                yield described, value if grown < 0 else grown


def rate(intervals: Sequence[Interval], name: str, **labels: str) -> float:
    """Return the increase per second, over all consumers."""
    return sum(
        sum(grown for _, grown in interval.increases(name, **labels)) / interval.seconds for interval in intervals
    )


def mean(intervals: Sequence[Interval], name: str, **labels: str) -> float | None:
    """Return the mean of the observations of a histogram; None if there are none."""
    count = sum(grown for interval in intervals for _, grown in interval.increases(f"{name}_count", **labels))
    total = sum(grown for interval in intervals for _, grown in interval.increases(f"{name}_sum", **labels))
    return total / count if count else None


def quantile(intervals: Sequence[Interval], share: float, name: str, **labels: str) -> float | None:
    """Return the value below which this share of the observations of a histogram lies, over all consumers.

    Assumes an even distribution within a bucket, like Prometheus' ``histogram_quantile``. None if there are no
    observations; infinity if the value lies above the last bound.
    """
    buckets: dict[float, float] = {0.0: 0.0}
    for interval in intervals:
        for described, grown in interval.increases(f"{name}_bucket", **labels):
            bound = float(described.get(_BOUND, "inf"))
            buckets[bound] = buckets.get(bound, 0.0) + grown
    bounds = sorted(buckets)
    wanted = share * buckets[bounds[-1]]
    if not buckets[bounds[-1]]:
        return None
    for low, high in pairwise(bounds):
        if buckets[high] >= wanted:
            inside = buckets[high] - buckets[low]
            return high if math.isinf(high) or not inside else low + (high - low) * (wanted - buckets[low]) / inside
    return None


class OutgrownPlan(NamedTuple):
    """A plan, the postings that articles read with it on average, the most that fit it, and the plan to move to."""

    plan: str
    read: float
    postings_max: int
    larger: str


def outgrown_plans(intervals: Sequence[Interval]) -> Iterator[OutgrownPlan]:
    """Yield each plan that the window of some of these consumers has outgrown.

    Consumers with the same plan share a window. Their store is taken for a remote one if any of them has opened
    connections to one. A plan without a larger one that finds the same pairs is not outgrown.
    """
    by_plan: dict[tuple[str, str], list[Interval]] = {}
    for interval in intervals:
        build = interval.after
        for plan, larger in product(build.values_of(_BUILD, "plan"), build.values_of(_BUILD, "larger_plan")):
            by_plan.setdefault((plan, larger), []).append(interval)
    for (plan, larger), consumers in by_plan.items():
        read = _postings_an_article(consumers)
        remote = any(consumer.after.total(_CONNECTIONS) for consumer in consumers)
        most = outgrown_postings(remote=remote)
        if larger and read > most:
            yield OutgrownPlan(plan, read, most, larger)


def _postings_an_article(intervals: Sequence[Interval]) -> float:
    if _grown(intervals, _ARTICLES) < _ARTICLES_MIN:
        intervals = [Interval(None, interval.after) for interval in intervals]
    articles = _grown(intervals, _ARTICLES)
    return _grown(intervals, _POSTINGS) / articles if articles else 0.0


def _grown(intervals: Sequence[Interval], name: str) -> float:
    return sum(grown for interval in intervals for _, grown in interval.increases(name))
