"""The view of ``dupwatch top``: pure functions that turn the answers of consumers into a picture on a terminal."""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from consumer.cli.render import number_columns, plain, table
from consumer.doctor.scrapes import Interval, OutgrownPlan, mean, outgrown_plans, quantile, rate
from consumer.doctor.watching import ConsumerStatus, ShownFlag, ShownText, latest_flags, returning_texts
from storage.clock import MS_PER_S

FLAGS_SHOWN_MAX: Final = 8
TEXTS_SHOWN_MAX: Final = 5
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
"""If there is less space for titles and they do not fit, each flag takes two lines."""
_STATE_CELLS_MIN: Final = 30
"""If there is less space for the states and they do not fit, each consumer takes two lines."""
_GAP_CELLS: Final = 2
_FIGURES: Final = ("articles/s", "dup.", "lag", "p50", "p99", "dead", "crowd", "errors", "parts")
_FIGURES_BY_IMPORTANCE: Final = ("articles/s", "lag", "p99", "errors", "dead", "dup.", "p50", "parts", "crowd")
_WHY_CHARS_MAX: Final = 120
_NONE: Final = "–"
_GAP: Final = "  "
_INDENT: Final = "  "


class StageTime(NamedTuple):
    """The time of a stage: busy seconds per second, summed over all consumers, and the mean of its measured durations.

    A measured duration is that of one batch, or of one wait.
    """

    stage: str
    busy: float
    mean_s: float | None


def frame(statuses: Sequence[ConsumerStatus], headline: str, width: int) -> RenderableType:
    """Return one picture of all consumers for a terminal of ``width`` columns."""
    intervals = [consumer.interval for consumer in statuses if consumer.interval is not None]
    parts: list[RenderableType] = [Text(headline, "bold"), _consumers(statuses, width)]
    parts += [_outgrown_line(found) for found in outgrown_plans(intervals)]
    parts += [_banks(intervals)] if _latest_total(intervals, "dupwatch_bank_items") else []
    if intervals:
        parts += [Text(), _stages(stage_times(intervals), len(intervals), width)]
    parts += [Text(), _flags(latest_flags(statuses, FLAGS_SHOWN_MAX), width)]
    texts = returning_texts(statuses, TEXTS_SHOWN_MAX)
    if texts:
        parts += [Text(), _returning(texts)]
    return Group(*parts)


def stage_times(intervals: Sequence[Interval]) -> list[StageTime]:
    """Return the times of all stages that the consumers report, in the order in which an article passes them."""
    reported = {stage for interval in intervals for stage in interval.after.values_of(f"{_STAGE}_count", "stage")}
    in_order = [stage for stage in _STAGES if stage in reported] + sorted(reported - set(_STAGES))
    return [
        StageTime(stage, rate(intervals, f"{_STAGE}_sum", stage=stage), mean(intervals, _STAGE, stage=stage))
        for stage in in_order
    ]


def bar(share: float, chars: int = _BAR_CHARS) -> str:
    """Return a bar that fills this share of ``chars`` characters, in steps of an eighth of a character."""
    eighths = round(min(max(share, 0.0), 1.0) * chars * 8)
    rest = _EIGHTHS[eighths % 8].strip()
    return "█" * (eighths // 8) + rest


def milliseconds(seconds: float | None, bound_s: float | None = None) -> str:
    """Return a time as text. An infinite time is above ``bound_s``, the last bound of its histogram."""
    if seconds is None:
        return _NONE
    if math.isinf(seconds):
        return f"> {milliseconds(bound_s)}" if bound_s is not None else "beyond"
    ms = seconds * MS_PER_S
    if ms >= _LONG_MS:
        return f"{seconds:,.0f} s"
    return f"{ms:,.0f} ms" if ms >= _SHORT_MS or not ms else f"{ms:.2g} ms"


def _consumers(statuses: Sequence[ConsumerStatus], width: int) -> RenderableType:
    rows = [
        ConsumerRow(
            Text(plain(consumer.name)),
            _state(consumer),
            _figures_or_dashes([] if consumer.interval is None else [consumer.interval]),
        )
        for consumer in statuses
    ]
    if len(statuses) > 1:
        intervals = [consumer.interval for consumer in statuses if consumer.interval is not None]
        answer = Text(f"{len(intervals)} of {len(statuses)} answer", "bold")
        rows.append(ConsumerRow(Text("all", "bold"), answer, _figures_or_dashes(intervals)))
    names = ("consumer", *_FIGURES)
    states = max(min(row.state.cell_len, _STATE_CELLS_MIN) for row in rows)
    taken = table_width(names, [(row.name.plain, *row.figures) for row in rows])
    if taken + _GAP_CELLS + states > width:
        return Group(*stacked_lines(_FIGURES, rows, _FIGURES_BY_IMPORTANCE, width))
    state = Column("state", overflow="fold", max_width=width - taken - _GAP_CELLS)
    columns = [Column("consumer", no_wrap=True), *number_columns(*_FIGURES), state]
    shown = table(columns, (), header_style="dim")
    for row in rows:
        shown.add_row(row.name, *row.figures, row.state, style=row.name.style)
    return shown


def _outgrown_line(found: OutgrownPlan) -> Text:
    return Text(
        f"The window has outgrown the plan {found.plan}: look-ups read {found.read:,.0f} postings on average, more than"
        f" {found.postings_max:,}. Move to {found.larger} with dupwatch migrate; dupwatch doctor prints the commands.",
        "yellow",
    )


def _banks(intervals: Sequence[Interval]) -> Text:
    """Return the figures of banks. All consumers have the same items, but may find different ones busy."""
    busy = {
        action: max(interval.after.total("dupwatch_bank_items_busy", action=action) for interval in intervals)
        for action in ("deny", "allow")
    }
    found = ", ".join(f"{count:,.0f} busy ({action})" for action, count in busy.items() if count)
    return Text(
        f"Banks: {rate(intervals, 'dupwatch_bank_matches_total'):,.1f} matches/s, "
        f"{_latest_total(intervals, 'dupwatch_bank_matches_withheld_total'):,.0f} withheld, {found or 'no busy items'}",
        "yellow" if found else "",
    )


def _figures_or_dashes(intervals: Sequence[Interval]) -> list[str]:
    return _figures(intervals) if intervals else [_NONE] * len(_FIGURES)


def _figures(intervals: Sequence[Interval]) -> list[str]:
    """Return the figures: rates and latencies over the interval, and current totals of all others."""
    articles = rate(intervals, _ARTICLES)
    duplicates = rate(intervals, _ARTICLES, outcome="duplicate")
    bounds = [float(bound) for interval in intervals for bound in interval.after.values_of(f"{_LATENCY}_bucket", "le")]
    last_s = max((bound for bound in bounds if not math.isinf(bound)), default=None)
    return [
        f"{articles:,.1f}",
        f"{duplicates / articles:.1%}" if articles else _NONE,
        f"{_latest_total(intervals, 'dupwatch_lag_records'):,.0f}",
        milliseconds(quantile(intervals, 0.5, _LATENCY), last_s),
        milliseconds(quantile(intervals, 0.99, _LATENCY), last_s),
        f"{_latest_total(intervals, 'dupwatch_dead_letters_total'):,.0f}",
        f"{_latest_total(intervals, 'dupwatch_crowded_articles_total'):,.0f}",
        f"{_latest_total(intervals, 'dupwatch_errors_total'):,.0f}",
        f"{_latest_total(intervals, 'dupwatch_assigned_partitions'):,.0f}",
    ]


def _latest_total(intervals: Sequence[Interval], name: str) -> float:
    return sum(interval.after.total(name) for interval in intervals)


def _state(consumer: ConsumerStatus) -> Text:
    if consumer.away is not None:
        return Text(f"unreachable: {plain(consumer.away, _WHY_CHARS_MAX)}", "bold red")
    if consumer.ready:
        partitions = _held_partitions(consumer)
        return Text(f"ready; holds {', '.join(partitions)}", "yellow") if partitions else Text("ready", "green")
    why = "; ".join(plain(reason, _WHY_CHARS_MAX) for reason in consumer.reasons)
    return Text(f"not ready{why and ': '}{why}", "yellow")


def _held_partitions(consumer: ConsumerStatus) -> list[str]:
    """Return the held partitions of a consumer, as ``dupwatch poison`` names them."""
    samples = {} if consumer.interval is None else consumer.interval.after.samples.get(_HELD, {})
    labels = [dict(pairs) for pairs, value in samples.items() if value]
    return sorted(plain(f"{label.get('topic', '')}:{label.get('partition', '')}", _WHY_CHARS_MAX) for label in labels)


def _stages(times: Sequence[StageTime], consumers: int, width: int) -> Table:
    """Return a table of each stage's share of a consumer's time. Several workers can take more than 100 %."""
    rows = [(plain(time.stage), f"{time.busy / consumers:.1%}", milliseconds(time.mean_s)) for time in times]
    taken = table_width(("stage", "", "mean"), rows) + _GAP_CELLS
    bar_chars = min(max(width - taken, _BAR_CHARS_MIN), _BAR_CHARS)
    columns = [
        Column("stage", no_wrap=True),
        Column("share of time", width=bar_chars, no_wrap=True),
        *number_columns("", "mean"),
    ]
    shown = table(columns, (), header_style="dim")
    for time, (stage, share, mean_time) in zip(times, rows, strict=True):
        style = "dim" if time.stage in {"poll", "back_pressure"} else "cyan"
        shown.add_row(stage, Text(bar(time.busy / consumers, bar_chars), style), share, mean_time)
    return shown


def _flags(flags: Sequence[ShownFlag] | None, width: int) -> RenderableType:
    if flags is None:
        return Text("The latest flags are not available.", "dim")
    if not flags:
        return Text("No flags yet.", "dim")
    names = ("decided, UTC", "flagged", "repeats", "bits", "similar")
    rows = [_flag(flag) for flag in flags]
    titles = [_title(flag) for flag in flags]
    title_cells = width - table_width(names, rows) - _GAP_CELLS
    if title_cells < min(_TITLE_CELLS_MIN, max(map(cell_len, titles))):
        return Group(*(line for row, title in zip(rows, titles, strict=True) for line in _flag_lines(row, title)))
    columns = [*(Column(name, no_wrap=True) for name in names[:3]), *number_columns(*names[3:])]
    # Without this limit, rich would shrink every column.
    columns.append(Column("title", overflow="ellipsis", no_wrap=True, max_width=title_cells))
    shown = (
        (decided, Text(flagged, "bold"), Text(repeated, "cyan"), bits, similar, title)
        for (decided, flagged, repeated, bits, similar), title in zip(rows, titles, strict=True)
    )
    return table(columns, shown, header_style="dim")


def _returning(texts: Sequence[ShownText]) -> RenderableType:
    """Return the texts that came back most often, one per line, each with the id of its latest article."""
    columns = [
        Column("texts that came back", overflow="fold"),
        *number_columns("times"),
        Column("first, UTC", no_wrap=True),
    ]
    rows = ((Text(plain(text.id), "bold"), f"{text.times:,}", plain(text.first)[:10]) for text in texts)
    return table(columns, rows, header_style="dim")


def _flag_lines(row: Sequence[str], title: str) -> list[Text]:
    """Return a flag on two lines. Ids are never cut, since other commands take them as arguments."""
    decided, flagged, repeated, bits, similar = row
    ids = Text.assemble((flagged, "bold"), " repeats ", (repeated, "cyan"), overflow="fold")
    about = Text(f"  {decided}  {bits} bits, similarity {similar}  {title}", no_wrap=True, overflow="ellipsis")
    return [ids, about]


def _flag(flag: ShownFlag) -> tuple[str, str, str, str, str]:
    similarity = _NONE if flag.similarity is None else f"{flag.similarity:.2f}"
    # The month, day and time of day in 2026-11-21T10:00:00.123Z.
    decided = plain(flag.decided_at)[5:19].replace("T", " ")
    return decided, plain(flag.id), plain(flag.duplicate_of), str(flag.distance), similarity


def _title(flag: ShownFlag) -> str:
    title = "" if flag.article is None else plain(flag.article.title, _TITLE_CHARS_MAX)
    return f"(released) {title}" if flag.released else title


class ConsumerRow(NamedTuple):
    """The name of a consumer, its state, and its figures in the order of the columns."""

    name: Text
    state: Text
    figures: Sequence[str]


def fitting_columns(
    names: Sequence[str], rows: Sequence[Sequence[str]], importance: Sequence[str], width: int
) -> list[int]:
    """Return the indexes of the columns that fit. Drop the least important first, and never the most important."""
    shown = list(range(len(names)))
    for name in reversed(importance[1:]):
        if _line_width(names, rows, shown) <= width:
            break
        shown.remove(names.index(name))
    return shown


def stacked_lines(
    names: Sequence[str], consumers: Sequence[ConsumerRow], importance: Sequence[str], width: int
) -> list[Text]:
    """Return a header, and two lines per consumer: name and state above the figures.

    If columns are hidden, a last line names them.
    """
    rows = [consumer.figures for consumer in consumers]
    shown = fitting_columns(names, rows, importance, width - len(_INDENT))
    widths = _widths(names, rows)
    lines = [Text(_INDENT + _join_cells(names, widths, shown), "dim")]
    for consumer in consumers:
        lines += [Text.assemble(consumer.name, _GAP, consumer.state, overflow="fold")]
        lines += [Text(_INDENT + _join_cells(consumer.figures, widths, shown))]
    hidden = [name for place, name in enumerate(names) if place not in shown]
    if hidden:
        lines.append(Text(f"A wider terminal also shows: {', '.join(hidden)}", "dim"))
    return lines


def table_width(names: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return the width of a table at full column widths, gaps included."""
    return _line_width(names, rows, range(len(names)))


def _line_width(names: Sequence[str], rows: Sequence[Sequence[str]], shown: Sequence[int]) -> int:
    widths = _widths(names, rows)
    return sum(widths[place] for place in shown) + len(_GAP) * (len(shown) - 1)


def _widths(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Mapping[int, int]:
    return {place: max(map(cell_len, [name, *(row[place] for row in rows)])) for place, name in enumerate(names)}


def _join_cells(cells: Sequence[str], widths: Mapping[int, int], shown: Sequence[int]) -> str:
    return _GAP.join(cells[place].rjust(widths[place]) for place in shown)
