"""The names of metrics: documentation and code agree, and the names follow Prometheus' rules."""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from prometheus_client import Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from consumer.judge.tally import Tally
from consumer.telemetry.metrics import GROUPS, Build, ConsoleMetrics, Metrics, MetricSet, ServiceMetrics
from consumer.telemetry.metrics.banks import BUSY, MATCHES, WITHHELD
from consumer.telemetry.metrics.instruments import Measure
from consumer.telemetry.metrics.run import BUILD, OWN_MEMORY
from consumer.telemetry.metrics.topics import LAG, PARTITION_HELD, UNDER_REPLICATED
from consumer.telemetry.metrics.verdicts import SOURCE_ARTICLES
from consumer.telemetry.metrics_page import page

PAGE = Path(__file__).resolve().parents[3] / "docs" / "operate" / "metrics.md"
MEASURES = [measure for group in GROUPS for measure in group.measures]
OWN = pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
BANKS = (MATCHES, WITHHELD, BUSY)
UNITS = {"seconds": "_seconds", "bytes": "_bytes", "ratio": "_ratio", "seconds since 1970": "_timestamp_seconds"}
ENDS = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",), "info": ("",)}
FOREIGN_UNIT = re.compile(
    r"_([mun]?s|[mu]?sec|second|milliseconds|min|minutes?|h|hours?|d|days?|[kmgt]i?b|byte|b|bits?|pct|percents?)(?=_|$)"
)
"""What stands for a unit that is none of Prometheus' base units, as ``promtool check metrics`` has it."""


@pytest.fixture(scope="module")
def families() -> dict[str, Metric]:
    """All metrics of a run, the service and the console before anything has happened, as Prometheus parses them."""
    return shown_by(ConsoleMetrics()) | shown_by(ServiceMetrics()) | shown_by(Metrics())


def shown_by(metrics: MetricSet) -> dict[str, Metric]:
    """What Prometheus reads of these."""
    metrics.show_build(Build("1.2.3", "jieba-tfidf/1", "4x16", "00ff"))
    metrics.watch(Tally())
    text = generate_latest(metrics.registry).decode()
    return {
        family.name: family for family in text_string_to_metric_families(text) if not family.name.endswith("_created")
    }


def family_of(measure: Measure, families: dict[str, Metric]) -> Metric:
    """The metric family of a measure."""
    return families[measure.name.removesuffix("_total") if measure.kind == "counter" else measure.name]


def series(measure: Measure) -> Iterator[dict[str, str]]:
    """The label values that have to exist from the start."""
    names = [label.name for label in measure.labels]
    for values in product(*(label.values for label in measure.labels)):
        yield dict(zip(names, values, strict=True))


def test_the_page_is_true() -> None:
    """``docs/operate/metrics.md`` is what ``python -m consumer.telemetry.metrics_page`` makes today."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_what_is_written_down_is_told(families: dict[str, Metric]) -> None:
    """Every documented metric exists, and no other except those of the process; no name occurs twice."""
    names = [measure.name for measure in MEASURES]
    assert len(names) == len(set(names))
    own = {name for name in families if not name.startswith("process_")}
    assert own == {family_of(measure, families).name for measure in MEASURES}


@OWN
def test_a_metric_is_told_as_it_is_written_down(measure: Measure, families: dict[str, Metric]) -> None:
    """Type, help and labels are as documented."""
    family = family_of(measure, families)
    assert family.type == {"info": "gauge"}.get(measure.kind, measure.kind)
    assert family.documentation == measure.help
    labels = {name for sample in family.samples for name in sample.labels} - {"le"}
    if family.samples:
        assert labels == {label.name for label in measure.labels}
    bounds = {float(sample.labels["le"]) for sample in family.samples if "le" in sample.labels}
    assert bounds == ({*measure.bounds, float("inf")} if measure.bounds else set())


@OWN
def test_every_series_that_is_known_begins_at_0(measure: Measure, families: dict[str, Metric]) -> None:
    """A rate does not see the first count of a series that was not there before."""
    if measure in {BUILD, OWN_MEMORY}:
        # They say what is.
        return
    values: dict[tuple[str, tuple[tuple[str, str], ...]], set[float]] = {}
    for sample in family_of(measure, families).samples:
        labels = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
        values.setdefault((sample.name, labels), set()).add(sample.value)
    expected = {
        (measure.name + end.removeprefix("_total"), tuple(sorted(labels.items())))
        for end in ENDS[measure.kind]
        for labels in series(measure)
    }
    assert values.keys() == expected
    assert all(found == {0} for found in values.values())


@OWN
def test_labels_are_bounded(measure: Measure) -> None:
    """By a fixed list, or by something named: partitions, one value per run, or a number of sources."""
    for label in measure.labels:
        assert label.values or label.others_limit
        assert not label.others_limit or measure in {
            LAG,
            PARTITION_HELD,
            UNDER_REPLICATED,
            BUILD,
            SOURCE_ARTICLES,
            *BANKS,
        }
        assert len(set(label.values)) == len(label.values)


@OWN
def test_a_name_keeps_to_the_rules(measure: Measure) -> None:
    """Those of ``promtool check metrics``: base units at the end, ``_total`` for counters only, no type in a name."""
    assert re.fullmatch(r"dupwatch_[a-z0-9]+(_[a-z0-9]+)*", measure.name)
    assert measure.name.endswith("_total") == (measure.kind == "counter")
    assert measure.name.endswith("_info") == (measure.kind == "info")
    assert not measure.name.endswith(("_bucket", "_sum", "_count", "_created"))
    assert not set(measure.name.split("_")) & {"counter", "gauge", "histogram", "summary", "metric"}
    assert not FOREIGN_UNIT.search(measure.name)
    assert not {label.name for label in measure.labels} & {"le", "quantile", "job", "instance"}
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", label.name) for label in measure.labels)


@OWN
def test_a_unit_stands_at_the_end_of_a_name(measure: Measure) -> None:
    """The unit of a metric is the end of its name, and no other unit is."""
    name = measure.name.removesuffix("_total")
    if measure.unit in UNITS:
        assert name.endswith(UNITS[measure.unit])
    else:
        assert not name.endswith(tuple(UNITS.values()))


@OWN
def test_help_is_a_sentence(measure: Measure) -> None:
    """It begins with a capital letter or a figure, ends with a full stop, and fits into a table."""
    assert re.fullmatch(r"[A-Z0-9][^|\n]*\.", measure.help)
