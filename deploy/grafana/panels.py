"""Panels, rows and dashboards, without the details of Grafana."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["timeseries", "stat", "heatmap", "table", "state-timeline"]
Colour = Literal["green", "yellow", "orange", "red", "blue", "text"]


class Query(NamedTuple):
    """PromQL and the legend of its series, which may contain labels: ``{{part}}``.

    ``$of`` in the expression is replaced by matchers for the selected jobs and instances.
    """

    expr: str
    legend: str = ""


class Step(NamedTuple):
    """The colour of values from ``value`` on, up to the next step."""

    value: float
    colour: Colour


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel. ``about`` is its description, ``unit`` a unit id of Grafana, ``width`` a number of the 24 columns.

    ``steps`` say where the colour changes; a time series shows them as lines, for the thresholds of alerts.
    ``runbooks`` are names of pages in ``docs/operate/runbooks``, or of an alert's section in one (``page#Alert``).
    """

    title: str
    about: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: Kind = "timeseries"
    width: int = 8
    height: int = 8
    steps: tuple[Step, ...] = ()
    runbooks: tuple[str, ...] = ()
    stacked: bool = False
    share: bool = False
    """The axis goes from 0 to 1."""
    texts: tuple[tuple[float, str, Colour], ...] = ()
    """Values that are shown as texts, with their colours."""


class Row(NamedTuple):
    """Panels below a heading, from left to right, in several lines if they do not fit into one."""

    title: str
    panels: tuple[Panel, ...]


class Dashboard(NamedTuple):
    """One dashboard. ``name`` is the name of its file and the end of its uid.

    ``listed_by`` is a metric of every process that can be selected in the dashboard.
    """

    name: str
    title: str
    about: str
    rows: tuple[Row, ...]
    listed_by: str = "dupwatch_workers"


def stat(
    title: str,
    about: str,
    expr: str,
    unit: str = "short",
    *,
    steps: tuple[Step, ...] = (),
    runbooks: tuple[str, ...] = (),
) -> Panel:
    """Return a panel with one current number."""
    return Panel(
        title=title, about=about, queries=(Query(expr),), unit=unit, kind="stat", width=4, height=4, steps=steps,
        runbooks=runbooks,
    )  # fmt: skip


def heatmap(title: str, about: str, name: str, unit: str = "short", *, runbooks: tuple[str, ...] = ()) -> Panel:
    """Return a panel that shows the distribution of a histogram over time."""
    query = Query(f"sum by (le) (increase({name}_bucket{{$of}}[$__rate_interval]))", "{{le}}")
    return Panel(title=title, about=about, queries=(query,), unit=unit, kind="heatmap", runbooks=runbooks)


def quantiles(name: str, *by: str, also: str = "", shares: tuple[float, ...] = (0.5, 0.99)) -> tuple[Query, ...]:
    """Return queries for quantiles of a histogram, grouped by the labels ``by``; ``also`` adds matchers."""
    labels = ", ".join(("le", *by))
    of = f"$of, {also}" if also else "$of"
    named = "".join(f"{{{{{label}}}}} " for label in by)
    return tuple(
        Query(
            f"histogram_quantile({share:g}, sum by ({labels}) (rate({name}_bucket{{{of}}}[$__rate_interval])))",
            f"{named}p{share * 100:g}",
        )
        for share in shares
    )


def mean(name: str, window: str = "$__rate_interval") -> str:
    """Return PromQL for the mean of a histogram."""
    return f"sum(rate({name}_sum{{$of}}[{window}])) / sum(rate({name}_count{{$of}}[{window}]))"
