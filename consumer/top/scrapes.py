"""Metrics of one scrape, and what happened between two scrapes. Pure functions over Prometheus' text format."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
_BOUND: Final = "le"
_BEGAN: Final = "process_start_time_seconds"


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
        known = {} if self.before is None or self._restarted() else self.before.samples.get(name, {})
        for found, value in self.after.samples.get(name, {}).items():
            described = dict(found)
            if wanted <= described.items():
                grown = value - known.get(found, 0.0)
                yield described, value if grown < 0 else grown

    def _restarted(self) -> bool:
        return self.before is not None and self.before.total(_BEGAN) != self.after.total(_BEGAN)


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
