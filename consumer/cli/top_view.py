"""How ``dupwatch top`` shows what it sees: pure functions from what was seen to what a terminal draws."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from consumer.cli.render import plain
from consumer.cli.top_fitting import Figures, stacked, table_width
from consumer.top.scrapes import Interval, mean, quantile, rate
from consumer.top.watching import Seen, ShownFlag, latest
from storage.clock import MS_PER_S

FLAGS_SHOWN: Final = 8
_ARTICLES: Final = "dupwatch_articles_total"
_LATENCY: Final = "dupwatch_end_to_end_seconds"
_STAGE: Final = "dupwatch_stage_seconds"
_HELD: Final = "dupwatch_partition_held"
_STAGES: Final = ("poll", "decode", "fingerprint", "look_up", "settle", "emit", "commit", "back_pressure")
_BAR_CHARS: Final = 30
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_SHORT_MS: Final = 10
_LONG_MS: Final = 10_000
_BAR_CHARS_MIN: Final = 5
_TITLE_CHARS_MAX: Final = 40
_TITLE_CELLS_MIN: Final = 20
"""With less room for titles each flag has lines of its own."""
_STATE_CELLS_MIN: Final = 30
"""As above, of why a consumer is not ready."""
_GAP_CELLS: Final = 2
_FIGURES: Final = ("articles/s", "dup.", "lag", "p50", "p99", "dead", "crowd", "errors", "parts")
_BY_IMPORTANCE: Final = ("articles/s", "lag", "p99", "errors", "dead", "dup.", "p50", "parts", "crowd")
_WHY_CHARS_MAX: Final = 120
_NONE: Final = "–"


class StageTime(NamedTuple):
    """Where the time goes: seconds a second of all consumers together, and how long one turn takes on average."""

    stage: str
    busy: float
    mean_s: float | None


def frame(seen: Sequence[Seen], headline: str, width: int) -> RenderableType:
    """One picture of all consumers for a terminal of so many columns."""
    intervals = [one.interval for one in seen if one.interval is not None]
    parts: list[RenderableType] = [Text(headline, "bold"), _consumers(seen, width)]
    if intervals:
        parts += [Text(), _stages(stage_times(intervals), len(intervals), width)]
    parts += [Text(), _flags(latest(seen, FLAGS_SHOWN), width)]
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
    ms = seconds * MS_PER_S
    if ms >= _LONG_MS:
        return f"{seconds:,.0f} s"
    return f"{ms:,.0f} ms" if ms >= _SHORT_MS or not ms else f"{ms:.2g} ms"


def _consumers(seen: Sequence[Seen], width: int) -> RenderableType:
    rows = [
        Figures(Text(plain(one.name)), _state(one), _shown([] if one.interval is None else [one.interval]))
        for one in seen
    ]
    if len(seen) > 1:
        there = [one.interval for one in seen if one.interval is not None]
        answer = Text(f"{len(there)} of {len(seen)} answer", "bold")
        rows.append(Figures(Text("all", "bold"), answer, _shown(there)))
    names = ("consumer", *_FIGURES)
    states = max(min(one.state.cell_len, _STATE_CELLS_MIN) for one in rows)
    taken = table_width(names, [(one.name.plain, *one.figures) for one in rows])
    if taken + _GAP_CELLS + states > width:
        return Group(*stacked(_FIGURES, rows, _BY_IMPORTANCE, width))
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("consumer", no_wrap=True)
    for name in _FIGURES:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("state", overflow="fold", max_width=width - taken - _GAP_CELLS)
    for one in rows:
        table.add_row(one.name, *one.figures, one.state, style=one.name.style)
    return table


def _shown(intervals: Sequence[Interval]) -> list[str]:
    return _figures(intervals) if intervals else [_NONE] * len(_FIGURES)


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


def _stages(times: Sequence[StageTime], consumers: int, width: int) -> Table:
    """Shares of one consumer's time; fingerprints that are made by several workers at once may take more than all."""
    rows = [(plain(one.stage), f"{one.busy / consumers:.1%}", milliseconds(one.mean_s)) for one in times]
    taken = table_width(("stage", "", "mean"), rows) + _GAP_CELLS
    bar_chars = min(max(width - taken, _BAR_CHARS_MIN), _BAR_CHARS)
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("stage", no_wrap=True)
    table.add_column("share of time", width=bar_chars, no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("mean", justify="right", no_wrap=True)
    for one, (stage, share, mean_time) in zip(times, rows, strict=True):
        style = "dim" if one.stage in {"poll", "back_pressure"} else "cyan"
        table.add_row(stage, Text(bar(one.busy / consumers, bar_chars), style), share, mean_time)
    return table


def _flags(flags: Sequence[ShownFlag] | None, width: int) -> RenderableType:
    if flags is None:
        return Text("No consumer shows its flags here.", "dim")
    if not flags:
        return Text("No flags yet.", "dim")
    names = ("decided, UTC", "flagged", "repeats", "bits", "similar")
    rows = [_flag(one) for one in flags]
    titles = [_title(one) for one in flags]
    room = width - table_width(names, rows) - _GAP_CELLS
    if room < min(_TITLE_CELLS_MIN, max(map(cell_len, titles))):
        return Group(*(line for row, title in zip(rows, titles, strict=True) for line in _lines(row, title)))
    table = Table(box=None, pad_edge=False, header_style="dim", title_justify="left")
    for name in names:
        table.add_column(name, justify="right" if name in {"bits", "similar"} else "left", no_wrap=True)
    # Without a limit rich would take from every column.
    table.add_column("title", overflow="ellipsis", no_wrap=True, max_width=room)
    for (decided, flagged, repeated, *figures), title in zip(rows, titles, strict=True):
        table.add_row(decided, Text(flagged, "bold"), Text(repeated, "cyan"), *figures, title)
    return table


def _lines(row: Sequence[str], title: str) -> list[Text]:
    """A flag where there is no room for a table: ids are whole, since they are what other commands are asked with."""
    decided, flagged, repeated, bits, similar = row
    ids = Text.assemble((flagged, "bold"), " repeats ", (repeated, "cyan"), overflow="fold")
    about = Text(f"  {decided}  {bits} bits, similarity {similar}  {title}", no_wrap=True, overflow="ellipsis")
    return [ids, about]


def _flag(one: ShownFlag) -> tuple[str, str, str, str, str]:
    similarity = _NONE if one.similarity is None else f"{one.similarity:.2f}"
    # Month, day and time of day, of 2026-11-21T10:00:00.123Z.
    decided = plain(one.decided_at)[5:19].replace("T", " ")
    return decided, plain(one.id), plain(one.duplicate_of), str(one.distance), similarity


def _title(one: ShownFlag) -> str:
    title = "" if one.article is None else plain(one.article.title, _TITLE_CHARS_MAX)
    return f"(released) {title}" if one.released else title
