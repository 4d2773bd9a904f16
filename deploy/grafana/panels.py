"""What a dashboard consists of, in the words of whoever writes one."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["timeseries", "stat", "heatmap", "table", "state-timeline"]
Colour = Literal["green", "yellow", "orange", "red", "blue", "text"]


class Query(NamedTuple):
    """PromQL, and what its series are called. ``$of`` stands for the chosen jobs and instances.

    ``legend`` may name labels: ``{{part}}``.
    """

    expr: str
    legend: str = ""


class Step(NamedTuple):
    """From this value on it has this colour."""

    value: float
    colour: Colour


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One picture. ``unit`` is Grafana's name of it; ``width`` is of 24.

    ``steps`` are where its colour changes; a picture over time shows them as lines, where alerts have their
    thresholds. ``runbooks`` are names of pages in ``docs/runbooks``.
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
    """From 0 to 1, whatever comes."""
    texts: tuple[tuple[float, str, Colour], ...] = ()
    """What stands in a value's place, and its colour."""


class Row(NamedTuple):
    """Panels below a heading, from left to right; what does not fit goes on below."""

    title: str
    panels: tuple[Panel, ...]


class Dashboard(NamedTuple):
    """One page. ``name`` is that of its file and its place in addresses."""

    name: str
    title: str
    about: str
    rows: tuple[Row, ...]


def stat(
    title: str,
    about: str,
    expr: str,
    unit: str = "short",
    *,
    steps: tuple[Step, ...] = (),
    runbooks: tuple[str, ...] = (),
) -> Panel:
    """One number, as it is now."""
    return Panel(
        title=title, about=about, queries=(Query(expr),), unit=unit, kind="stat", width=4, height=4, steps=steps,
        runbooks=runbooks,
    )  # fmt: skip


def heatmap(title: str, about: str, name: str, unit: str = "short", *, runbooks: tuple[str, ...] = ()) -> Panel:
    """How the values of a histogram are distributed, and how that changes."""
    query = Query(f"sum by (le) (increase({name}_bucket{{$of}}[$__rate_interval]))", "{{le}}")
    return Panel(title=title, about=about, queries=(query,), unit=unit, kind="heatmap", runbooks=runbooks)


def quantiles(name: str, *by: str, also: str = "", shares: tuple[float, ...] = (0.5, 0.99)) -> tuple[Query, ...]:
    """Queries for quantiles of a histogram: of all, or ``by`` labels; ``also`` are further matchers."""
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
    """PromQL for the mean of a histogram's values."""
    return f"sum(rate({name}_sum{{$of}}[{window}])) / sum(rate({name}_count{{$of}}[{window}]))"
