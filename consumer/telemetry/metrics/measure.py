"""What describes a metric: its name, type, help text, unit and labels.

Units are Prometheus' base units and stand at the end of a name. Labels are bounded, by a fixed list of values or by
something that is named. No label has a value per article.
"""

from typing import Final, Literal, NamedTuple

SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
SHORT_SECONDS: Final = (0.0001, 0.0002, 0.0005, *SECONDS)


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
