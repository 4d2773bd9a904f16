"""Describes metrics, and creates the counters, gauges and histograms of a run in its registry.

Names end with the unit if it is one of Prometheus' base units, such as seconds. The values of a label are a
fixed list or have a documented limit. No label has a value per article.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, Final, Literal, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Info
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from consumer.model.histogram import Histogram
from consumer.model.hooks import Hooks

SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
SHORT_SECONDS: Final = (0.0001, 0.0002, 0.0005, *SECONDS)
_Labelled = TypeVar("_Labelled", Counter, Gauge)
_Value = TypeVar("_Value", bound=str)
_Occurrence = TypeVar("_Occurrence")

Series = Mapping[tuple[str, ...], Histogram]
"""Distributions by the values of their labels."""


class Label(NamedTuple):
    """A label: the values that exist from the start, and a description of the other values, if any."""

    name: str
    values: tuple[str, ...] = ()
    others_limit: str = ""


class Measure(NamedTuple):
    """A metric. Only histograms have ``bounds``; their samples add ``_bucket``, ``_sum`` and ``_count`` to the name."""

    name: str
    kind: Literal["counter", "gauge", "histogram", "info"]
    help: str
    unit: str
    labels: tuple[Label, ...] = ()
    bounds: tuple[float, ...] = ()


class MetricGroup(NamedTuple):
    """Metrics about one subject, in the order of the documentation."""

    title: str
    measures: tuple[Measure, ...]


class Reaction(NamedTuple):
    """How a metric reacts to the occurrences of one class; see ``reaction``."""

    measure: Measure
    kind: type[Any]
    value: Callable[[Any], float]
    labels: Callable[[Any], tuple[str, ...]]


def reaction(
    measure: Measure,
    kind: type[_Occurrence],
    value: Callable[[_Occurrence], float] = lambda _: 1,
    labels: Callable[[_Occurrence], tuple[str, ...]] = lambda _: (),
) -> Reaction:
    """Return a reaction: each occurrence of class ``kind`` adds ``value`` to a counter or histogram, or sets a gauge.

    ``labels`` returns the values of the measure's labels. Histograms must not have labels.
    """
    return Reaction(measure, kind, value, labels)


class _Reader(Collector):
    """A collector that reads counts and distributions kept elsewhere, so that nothing is counted twice."""

    def __init__(self, read: Callable[[], Mapping[Measure, float | Series]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""
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
    """A factory for the metrics in one registry.

    Every series with known labels starts at 0, because ``rate`` would miss the first count of a new series.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._made: dict[str, Any] = {}

    def counter(self, measure: Measure) -> Counter:
        """Return the counter of a measure, always the same one."""
        return self._get_or_create(Counter, measure)

    def gauge(self, measure: Measure) -> Gauge:
        """Return the gauge of a measure, always the same one."""
        return self._get_or_create(Gauge, measure)

    def info(self, measure: Measure, values: Mapping[str, str]) -> None:
        """Add a metric whose labels have these values."""
        Info(measure.name.removesuffix("_info"), measure.help, registry=self._registry).info(dict(values))

    def distribution(self, measure: Measure) -> Histogram:
        """Return a histogram that takes many values at once. The client library's histogram locks for each value."""
        distribution = Histogram(measure.bounds)
        self.add_reader(lambda: {measure: {(): distribution}})
        return distribution

    def distributions(self, measure: Measure, values: Sequence[_Value]) -> Mapping[_Value, Histogram]:
        """Return a histogram for each of these values of the measure's only label."""
        distributions = {value: Histogram(measure.bounds) for value in values}
        series: Series = {(str(value),): distribution for value, distribution in distributions.items()}
        self.add_reader(lambda: {measure: series})
        return distributions

    def add_reader(self, read: Callable[[], Mapping[Measure, float | Series]]) -> None:
        """Add metrics whose values are kept elsewhere. Each scrape calls ``read``."""
        self._registry.register(_Reader(read))

    def recorder(self, measure: Measure) -> Callable[[tuple[str, ...], float], None]:
        """Return a function of labels and a value that adds the value to a counter or histogram, or sets a gauge."""
        if measure.kind == "histogram":
            distribution = self.distribution(measure)
            return lambda _, value: distribution.add((value,))
        if measure.kind == "gauge":
            gauge = self.gauge(measure)
            return lambda labels, value: (gauge.labels(*labels) if labels else gauge).set(value)
        counter = self.counter(measure)
        return lambda labels, value: (counter.labels(*labels) if labels else counter).inc(value)

    def _get_or_create(self, make: type[_Labelled], measure: Measure) -> _Labelled:
        if measure.name not in self._made:
            made = make(measure.name, measure.help, _labels(measure), registry=self._registry)
            self._made[measure.name] = _create_series(made, measure)
        found: _Labelled = self._made[measure.name]
        return found


class ReactingMetrics:
    """Metrics that consist only of reactions."""

    def __init__(self, instruments: Instruments, *reactions: Reaction) -> None:
        self._reactions = [(each, instruments.recorder(each.measure)) for each in reactions]

    def listen(self, hooks: Hooks) -> None:
        """React to occurrences from now on."""
        for each, add in self._reactions:
            hooks.on(each.kind, partial(_react, each, add))


def _react(reaction: Reaction, add: Callable[[tuple[str, ...], float], None], occurrence: object) -> None:
    add(reaction.labels(occurrence), reaction.value(occurrence))


def _labels(measure: Measure) -> list[str]:
    return [label.name for label in measure.labels]


def _create_series(labelled: _Labelled, measure: Measure) -> _Labelled:
    if measure.labels:
        for values in product(*(label.values for label in measure.labels)):
            labelled.labels(*values)
    return labelled
