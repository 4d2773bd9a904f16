"""The threshold report: how good each threshold is according to the reviews, and what another one would change.

The page shows figures, and an SVG chart of precision and recall. It changes nothing: thresholds are changed in the
configuration, with a migration.
"""

from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from itertools import groupby
from math import ceil, floor
from typing import Final, NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from consumer.console.faults import N_, PageError
from consumer.console.pages.review_evaluation import PRECISION, ReviewSnapshot
from consumer.console.pages.rule_advice import toml_string
from consumer.console.pages.threshold_rows import (
    ThresholdTableInput,
    interval_text,
    line_text,
    mistakes_text,
    rate_text,
    source_row,
    threshold_rows,
    threshold_text,
)
from consumer.console.visit import SignedInVisit
from consumer.evaluation.curves import Rate
from consumer.evaluation.profile_thresholds import (
    EQUALITY_TOLERANCE,
    ProfileThreshold,
    profile_at,
    profile_thresholds,
    reached_profile,
)
from consumer.evaluation.review_figures import REVIEWS_MIN, ReviewFigures, ReviewPoint, greatest_recall, whole_count
from consumer.reviews import queue

WIDTH: Final = 360
HEIGHT: Final = 230
_LEFT: Final = 32.0
_RIGHT: Final = 350.0
_TOP: Final = 10.0
_BOTTOM: Final = 204.0
_SHARES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
_NARROW_SPAN_MAX: Final = 0.35
"""Up to this span of thresholds, ticks are 0.05 apart; beyond it, 0.1."""
_SPAN_MIN: Final = 0.01
"""The minimum span of thresholds on the axis."""
_INTERVAL_MAX: Final = 0.5
"""The widest interval that is drawn, as a share of the scale. A wider band would say nothing."""
WAIT_S: Final = 0.25
"""How long a page waits for new figures before it shows earlier ones, or says that there are none yet."""
PRECISIONS: Final = (0.8, 0.9, 0.95, 0.98, 0.99, PRECISION, 0.999)
_NAME_CHARS_MAX: Final = 512
_MIXED: Final = "mixed"
_SOURCE_PLACEHOLDER: Final = "SOURCE"


class AxisTick(NamedTuple):
    """A position on an axis, and its value."""

    at: float
    value: float


class RatePlot(NamedTuple):
    """The stretches where a rate is known well enough: the outlines of its intervals, and the points of its lines."""

    bands: tuple[str, ...]
    lines: tuple[str, ...]


class ChartStrip(NamedTuple):
    """A vertical strip of the chart."""

    left: float
    width: float


class ThresholdChart(NamedTuple):
    """The chart. ``now`` is the position of the configured threshold, ``reviewers`` that of the reviewers' line.

    Values with an interval of more than half their scale are left out. ``reviewers`` is None if the line is left out,
    and ``is_whole`` is False if points of a rate are.
    """

    width: int
    height: int
    left: float
    right: float
    top: float
    bottom: float
    precision: RatePlot
    recall: RatePlot | None
    now: float
    reviewers: ChartStrip | None
    is_whole: bool
    thresholds: tuple[AxisTick, ...]
    shares: tuple[AxisTick, ...]


def curve_of(figures: ReviewFigures) -> ThresholdChart:
    """Return the chart of all points."""
    thresholds = [point.threshold for point in figures.points]
    first, last = thresholds[0], max(thresholds[-1], thresholds[0] + _SPAN_MIN)

    def x(threshold: float) -> float:
        inside = min(max(threshold, first), last)
        return round(_LEFT + (_RIGHT - _LEFT) * (inside - first) / (last - first), 1)

    places = [x(threshold) for threshold in thresholds]
    precisions = [point.precision for point in figures.points]
    recalls = [point.recall for point in figures.points if point.recall is not None]
    left, right = x(figures.line.low), x(figures.line.high)
    has_line = right - left <= _INTERVAL_MAX * (_RIGHT - _LEFT)
    return ThresholdChart(
        width=WIDTH,
        height=HEIGHT,
        left=_LEFT,
        right=_RIGHT,
        top=_TOP,
        bottom=_BOTTOM,
        precision=_plot(places, precisions),
        recall=_plot(places, recalls) if len(recalls) == len(places) else None,
        now=x(figures.now),
        reviewers=ChartStrip(left, round(max(right - left, 1.0), 1)) if has_line else None,
        is_whole=all(map(_is_known, [rate for rate in (*precisions, *recalls) if rate.value is not None])),
        thresholds=tuple(AxisTick(x(value), value) for value in _tick_values(first, last)),
        shares=tuple(AxisTick(_y(share), share) for share in _SHARES),
    )


def _plot(places: Sequence[float], rates: Sequence[Rate]) -> RatePlot:
    bands, lines = [], []
    for is_known, group in groupby(zip(places, rates, strict=True), lambda pair: _is_known(pair[1])):
        if is_known:
            stretch = list(group)
            corners = [(x, rate.high) for x, rate in stretch] + [(x, rate.low) for x, rate in reversed(stretch)]
            bands.append(_points(corners))
            lines.append(_points([(x, rate.value or 0.0) for x, rate in stretch]))
    return RatePlot(tuple(bands), tuple(lines))


def _is_known(rate: Rate) -> bool:
    return rate.value is not None and rate.high - rate.low <= _INTERVAL_MAX


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{_y(share):g}" for x, share in places)


def _y(share: float) -> float:
    return round(_BOTTOM - (_BOTTOM - _TOP) * min(max(share, 0.0), 1.0), 1)


def _tick_values(first: float, last: float) -> list[float]:
    step = 5 if last - first <= _NARROW_SPAN_MAX else 10
    low, high = ceil(round(first * 100 / step, 6)), floor(round(last * 100 / step, 6))
    return [number * step / 100 for number in range(low, high + 1)]


class FlagCounts(NamedTuple):
    """Flags gained or lost with another threshold: all, and wrong ones."""

    all: int
    wrong: int


class ProfileAdvice(NamedTuple):
    """A profile whose threshold is reached: its name, its threshold, and the configuration that selects it.

    ``toml`` is for the whole store, or "" if a rule is enough; ``rule`` is for one source, or "" for a lower threshold.
    """

    name: str
    threshold: str
    toml: str
    rule: str


class ThresholdChange(NamedTuple):
    """Another threshold. ``toml`` configures it, or is "" if it is for one source and below the store's threshold.

    A rule cannot set such a threshold. ``flags_gained`` and ``flags_lost`` are None without such flags. ``profile`` is
    the profile that the threshold reaches or passes, if any.
    """

    point: ReviewPoint
    flags_gained: FlagCounts | None
    flags_lost: FlagCounts | None
    toml: str
    profile: ProfileAdvice | None


def show_thresholds(visit: SignedInVisit) -> Response:
    """Show the threshold report, for all pairs or one source."""
    evaluation = visit.context.evaluation
    if evaluation is None:
        return visit.page("thresholds.html", why="plain")
    found = evaluation.latest(WAIT_S)
    if found is None:
        return visit.page("thresholds.html", why="computing")
    if found.overall is None:
        return visit.page("thresholds.html", why="too much" if found.is_too_much else "nothing", found=found)
    if found.overall.counts.reviews < REVIEWS_MIN:
        return visit.page("thresholds.html", why="few", found=found, reviews_min=REVIEWS_MIN)
    with visit.context.database.read_connection() as connection:
        near_misses_open = queue.counts(connection).others_open["near_miss"]
    source = visit.query.exact("source", _NAME_CHARS_MAX)
    figures = _source_figures(found, source) if source else found.overall
    precision = _precision(visit)
    at_precision = greatest_recall(figures.points, precision)
    moved = _chosen_change(visit, figures, at_precision)
    rows = ThresholdTableInput(
        visit.language, figures, at_precision, moved and moved.point, every="every" in visit.query
    )
    return visit.page(
        "thresholds.html",
        why="",
        found=found,
        figures=figures,
        source=source,
        curve=curve_of(figures),
        rows=threshold_rows(rows),
        sources=[] if source else [source_row(visit.language, each, precision) for each in found.sources],
        precision=precision,
        precisions=PRECISIONS,
        at_precision=at_precision,
        moved=moved,
        shows_every=rows.every,
        near_misses_open=near_misses_open,
        now_point=figures.at_now,
        line=line_text(visit.language, figures),
        mistakes=mistakes_text(visit.language, figures),
        days=None if figures.days is None else round(figures.days),
        profile=profile_at(_profiles(visit), figures.now),
        threshold_of=partial(threshold_text, visit.language),
        rate_of=partial(rate_text, visit.language),
        interval_of=partial(interval_text, visit.language),
        href=_href,
    )


def _source_figures(found: ReviewSnapshot, source: str) -> ReviewFigures:
    for figures in found.sources:
        if figures.source == source:
            return figures
    if found.is_whole:
        message = N_("This source has too few decisions for figures of its own.")
        raise PageError(HTTPStatus.NOT_FOUND, message)
    raise PageError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        N_("The figures of sources are still being computed. Try again in a few seconds."),
        retry_s=2,
    )


def _precision(visit: SignedInVisit) -> float:
    value = visit.query.number("precision")
    if value is None:
        return PRECISION
    if not 0 <= value <= 1:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("“%(field)s” must be a number from 0 to 1."), field="precision")
    return value


def _chosen_change(
    visit: SignedInVisit, figures: ReviewFigures, at_precision: ReviewPoint | None
) -> ThresholdChange | None:
    """Return the change to the threshold in the query, or else to a better threshold; None if there is none."""
    value = visit.query.number("threshold")
    if value is None:
        best = figures.best_f1 or at_precision
        return None if best is None or best.threshold == figures.now else _change_to(visit, figures, best)
    for point in figures.points:
        if abs(point.threshold - value) < EQUALITY_TOLERANCE:
            return _change_to(visit, figures, point)
    raise PageError(
        HTTPStatus.BAD_REQUEST,
        N_("There are no figures for this threshold, only for whole percents from %(first)s to %(last)s."),
        first=visit.language.decimal(figures.points[0].threshold),
        last=visit.language.decimal(figures.points[-1].threshold),
    )


def _change_to(visit: SignedInVisit, figures: ReviewFigures, point: ReviewPoint) -> ThresholdChange:
    change = point.change

    def flag_counts(all_of: float, wrong: float) -> FlagCounts | None:
        return FlagCounts(whole_count(all_of), whole_count(wrong)) if all_of else None

    gained, lost = flag_counts(change.come, change.wrong_come), flag_counts(change.gone, change.wrong_gone)
    reached = reached_profile(_profiles(visit), figures.now, point.threshold)
    advice = None if reached is None else _advice(visit, figures, reached)
    return ThresholdChange(point, gained, lost, _toml(visit, figures, point), advice)


def _profiles(visit: SignedInVisit) -> tuple[ProfileThreshold, ...]:
    judging = visit.context.judging
    return () if judging is None else profile_thresholds(judging)


def _advice(visit: SignedInVisit, figures: ReviewFigures, reached: ProfileThreshold) -> ProfileAdvice:
    name, threshold = reached.name, threshold_text(visit.language, reached.similarity_min)
    if reached.similarity_min < figures.now:
        # If only one source has posts, the profile of the store must suit posts and other articles.
        name = name if figures.source is None else _MIXED
        return ProfileAdvice(name, threshold, f'[judge]\nprofile = "{name}"\n', "")
    source = _SOURCE_PLACEHOLDER if figures.source is None else figures.source
    toml = f'[judge]\nprofile = "{name}"\n' if figures.source is None else ""
    return ProfileAdvice(name, threshold, toml, f'[rules.{toml_string(source)}]\nprofile = "{name}"\n')


def _toml(visit: SignedInVisit, figures: ReviewFigures, point: ReviewPoint) -> str:
    judging, setting = visit.context.judging, f"similarity_min = {point.threshold:g}\n"
    if figures.source is None:
        return f"[judge]\n{setting}"
    if judging is not None and point.threshold < judging.similarity_min:
        return ""
    return f"[rules.{toml_string(figures.source)}]\n{setting}"


def _href(**query: object) -> str:
    return f"/thresholds?{urlencode({name: value for name, value in query.items() if value not in ('', None)})}"
