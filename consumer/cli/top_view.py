"""How ``dupwatch top`` shows what it sees: pure functions from what was seen to what a terminal draws."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from consumer.cli.render import plain
from consumer.top.scrapes import Interval, mean, quantile, rate
from consumer.top.watching import Seen, ShownFlag, latest

FLAGS_SHOWN: Final = 8
_ARTICLES: Final = "dupwatch_articles_total"
_LATENCY: Final = "dupwatch_end_to_end_seconds"
_STAGE: Final = "dupwatch_stage_seconds"
_HELD: Final = "dupwatch_partition_held"
_STAGES: Final = ("poll", "decode", "fingerprint", "look_up", "settle", "emit", "commit", "back_pressure")
_BAR_CHARS: Final = 30
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_MS_PER_S: Final = 1000
_SHORT_MS: Final = 10
_LONG_MS: Final = 10_000
_TITLE_CHARS_MAX: Final = 40
_WHY_CHARS_MAX: Final = 60
_NONE: Final = "–"


class StageTime(NamedTuple):
    """Where the time goes: seconds a second of all consumers together, and how long one turn takes on average."""

    stage: str
    busy: float
    mean_s: float | None


def frame(seen: Sequence[Seen], headline: str) -> RenderableType:
    """One picture of all consumers."""
    intervals = [one.interval for one in seen if one.interval is not None]
    parts: list[RenderableType] = [Text(headline, "bold"), _consumers(seen)]
    if intervals:
        parts += [Text(), _stages(stage_times(intervals), len(intervals))]
    parts += [Text(), _flags(latest(seen, FLAGS_SHOWN))]
    return Group(*parts)


def stage_times(intervals: Sequence[Interval]) -> list[StageTime]:
    """Every stage that the consumers tell of, in the order in which an article goes through them."""
    told = {stage for one in intervals for stage in one.after.values_of(f"{_STAGE}_count", "stage")}
    in_order = [stage for stage in _STAGES if stage in told] + sorted(told - set(_STAGES))
    return [
        StageTime(stage, rate(intervals, f"{_STAGE}_sum", stage=stage), mean(intervals, _STAGE, stage=stage))
        for stage in in_order
    ]


def bar(share: float, chars: int = _BAR_CHARS) -> str:
    """A bar that is so much of its whole length, in steps of an eighth of a character."""
    eighths = round(min(max(share, 0.0), 1.0) * chars * 8)
    rest = _EIGHTHS[eighths % 8].strip()
    return "█" * (eighths // 8) + rest


def milliseconds(seconds: float | None, bound_s: float | None = None) -> str:
    """A time for people; one beyond the last bound of a histogram is known to be that at least."""
    if seconds is None:
        return _NONE
    if math.isinf(seconds):
        return f"> {milliseconds(bound_s)}" if bound_s is not None else "beyond"
    ms = seconds * _MS_PER_S
    if ms >= _LONG_MS:
        return f"{seconds:,.0f} s"
    return f"{ms:,.0f} ms" if ms >= _SHORT_MS or not ms else f"{ms:.2g} ms"


def _consumers(seen: Sequence[Seen]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("consumer", no_wrap=True)
    for name in ("articles/s", "dup.", "lag", "p50", "p99", "dead", "crowd", "errors", "parts"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("state", overflow="fold")
    for one in seen:
        figures = [_NONE] * 9 if one.interval is None else _figures([one.interval])
        table.add_row(plain(one.name), *figures, _state(one))
    there = [one.interval for one in seen if one.interval is not None]
    if len(seen) > 1:
        table.add_row("all", *_figures(there), f"{len(there)} of {len(seen)} answer", style="bold")
    return table


def _figures(intervals: Sequence[Interval]) -> list[str]:
    """Rates over the interval; lag, dead letters, articles with a crowded fingerprint and errors as they are now."""
    articles = rate(intervals, _ARTICLES)
    duplicates = rate(intervals, _ARTICLES, outcome="duplicate")
    bounds = [float(one) for interval in intervals for one in interval.after.values_of(f"{_LATENCY}_bucket", "le")]
    last_s = max((one for one in bounds if not math.isinf(one)), default=None)
    return [
        f"{articles:,.1f}",
        f"{duplicates / articles:.1%}" if articles else _NONE,
        f"{_now(intervals, 'dupwatch_lag_records'):,.0f}",
        milliseconds(quantile(intervals, 0.5, _LATENCY), last_s),
        milliseconds(quantile(intervals, 0.99, _LATENCY), last_s),
        f"{_now(intervals, 'dupwatch_dead_letters_total'):,.0f}",
        f"{_now(intervals, 'dupwatch_crowded_articles_total'):,.0f}",
        f"{_now(intervals, 'dupwatch_errors_total'):,.0f}",
        f"{_now(intervals, 'dupwatch_assigned_partitions'):,.0f}",
    ]


def _now(intervals: Sequence[Interval], name: str) -> float:
    return sum(one.after.total(name) for one in intervals)


def _state(one: Seen) -> Text:
    if one.away is not None:
        return Text(f"away: {plain(one.away, _WHY_CHARS_MAX)}", "bold red")
    if one.ready:
        held = _held(one)
        return Text(f"ready; holds {', '.join(held)}", "yellow") if held else Text("ready", "green")
    why = "; ".join(plain(reason, _WHY_CHARS_MAX) for reason in one.reasons)
    return Text(f"not ready{why and ': '}{why}", "yellow")


def _held(one: Seen) -> list[str]:
    """The partitions that it does not read on, as ``dupwatch poison`` names them."""
    samples = {} if one.interval is None else one.interval.after.samples.get(_HELD, {})
    labels = [dict(found) for found, value in samples.items() if value]
    return sorted(plain(f"{found.get('topic', '')}:{found.get('partition', '')}", _WHY_CHARS_MAX) for found in labels)


def _stages(times: Sequence[StageTime], consumers: int) -> Table:
    """Shares of one consumer's time; fingerprints that are made by several workers at once may take more than all."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("stage", no_wrap=True)
    table.add_column("share of time", width=_BAR_CHARS, no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("mean", justify="right", no_wrap=True)
    for one in times:
        share = one.busy / consumers
        style = "dim" if one.stage in {"poll", "back_pressure"} else "cyan"
        table.add_row(plain(one.stage), Text(bar(share), style), f"{share:.1%}", milliseconds(one.mean_s))
    return table


def _flags(flags: Sequence[ShownFlag] | None) -> RenderableType:
    if flags is None:
        return Text("No consumer shows its flags here.", "dim")
    if not flags:
        return Text("No flags yet.", "dim")
    table = Table(box=None, pad_edge=False, header_style="dim", title_justify="left")
    table.add_column("decided, UTC", no_wrap=True)
    table.add_column("flagged", overflow="ellipsis", no_wrap=True)
    table.add_column("repeats", overflow="ellipsis", no_wrap=True)
    table.add_column("bits", justify="right", no_wrap=True)
    table.add_column("similar", justify="right", no_wrap=True)
    table.add_column("title", overflow="ellipsis", no_wrap=True)
    for one in flags:
        title = "" if one.article is None else plain(one.article.title, _TITLE_CHARS_MAX)
        if one.released:
            title = f"(released) {title}"
        similarity = _NONE if one.similarity is None else f"{one.similarity:.2f}"
        # Month, day and time of day, of 2026-11-21T10:00:00.123Z.
        decided = plain(one.decided_at)[5:19].replace("T", " ")
        flagged, repeated = Text(plain(one.id), "bold"), Text(plain(one.duplicate_of), "cyan")
        table.add_row(decided, flagged, repeated, str(one.distance), similarity, title)
    return table
