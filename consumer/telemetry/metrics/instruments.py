"""Describes metrics, and makes the counters, gauges and histograms of a run in its registry.

Units are Prometheus' base units and stand at the end of a name. Labels are bounded, by a fixed list of values or by
something that is named. No label has a value per article.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final, Literal, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Info
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from consumer.model.histogram import Histogram

SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
SHORT_SECONDS: Final = (0.0001, 0.0002, 0.0005, *SECONDS)
_Labelled = TypeVar("_Labelled", Counter, Gauge)
_Value = TypeVar("_Value", bound=str)

Series = Mapping[tuple[str, ...], Histogram]
"""Distributions by the values of their labels."""


class Label(NamedTuple):
    """A label: the values that exist from the start, and what bounds its other values, if there can be any."""

    name: str
    values: tuple[str, ...] = ()
    others: str = ""


class Measure(NamedTuple):
    """A metric. Only histograms have ``bounds``; their samples add ``_bucket``, ``_sum`` and ``_count`` to the name."""

    name: str
    kind: Literal["counter", "gauge", "histogram", "info"]
    help: str
    unit: str
    labels: tuple[Label, ...] = ()
    bounds: tuple[float, ...] = ()


class Group(NamedTuple):
    """Metrics about one subject, in the order in which the documentation has them."""

    title: str
    measures: tuple[Measure, ...]


class _Reader(Collector):
    """Reads counts and distributions that are kept elsewhere when Prometheus asks, so that nothing is counted twice."""

    def __init__(self, read: Callable[[], Mapping[Measure, float | Series]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """All of them, as they are now."""
        for measure, value in self._read().items():
            if isinstance(value, Mapping):
                family = HistogramMetricFamily(measure.name, measure.help, labels=_labels(measure))
                bounds = [*map(floatToGoString, measure.bounds), "+Inf"]
                for labels, distribution in value.items():
                    buckets = list(zip(bounds, distribution.cumulative(), strict=True))
                    family.add_metric(labels, buckets, distribution.total)
                yield family
            else:
                yield CounterMetricFamily(measure.name, measure.help, value)


class Instruments:
    """Makes metrics in one registry. Every series with known labels begins at 0.

    A rate does not see the first count of a series that was not there before.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def counter(self, measure: Measure) -> Counter:
        """Return a counter."""
        return _begin(Counter(measure.name, measure.help, _labels(measure), registry=self._registry), measure)

    def gauge(self, measure: Measure) -> Gauge:
        """Return a gauge."""
        return _begin(Gauge(measure.name, measure.help, _labels(measure), registry=self._registry), measure)

    def info(self, measure: Measure, values: Mapping[str, str]) -> None:
        """Add a metric whose labels are these values."""
        Info(measure.name.removesuffix("_info"), measure.help, registry=self._registry).info(dict(values))

    def distribution(self, measure: Measure) -> Histogram:
        """Return a histogram that takes many values at once: the client library's takes locks for each value."""
        distribution = Histogram(measure.bounds)
        self.read(lambda: {measure: {(): distribution}})
        return distribution

    def distributions(self, measure: Measure, values: Sequence[_Value]) -> Mapping[_Value, Histogram]:
        """Return a histogram for each value of the only label."""
        distributions = {value: Histogram(measure.bounds) for value in values}
        series: Series = {(str(value),): distribution for value, distribution in distributions.items()}
        self.read(lambda: {measure: series})
        return distributions

    def read(self, read: Callable[[], Mapping[Measure, float | Series]]) -> None:
        """Add metrics whose values are kept elsewhere: ``read`` is called by each scrape."""
        self._registry.register(_Reader(read))


def _labels(measure: Measure) -> list[str]:
    return [label.name for label in measure.labels]


def _begin(labelled: _Labelled, measure: Measure) -> _Labelled:
    if measure.labels:
        for values in product(*(label.values for label in measure.labels)):
            labelled.labels(*values)
    return labelled
