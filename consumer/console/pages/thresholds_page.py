"""Threshold report: how good each threshold is by what people decided, and what another one would change.

Figures are shown, and a curve of precision and recall as an SVG picture. A threshold is changed by a person, in the
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
from consumer.console.pages.rule_advice import quoted
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
    SAME_WITHIN,
    ProfileThreshold,
    profile_at,
    profile_reached,
    profile_thresholds,
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
_FEW: Final = 0.35
"""Up to this span of thresholds every twentieth is named, beyond it every tenth."""
_LEAST_SPAN: Final = 0.01
_KNOWN_WITHIN: Final = 0.5
"""A wider interval, as a share of its scale, is not drawn: a band over most of the picture says nothing."""
WAIT_S: Final = 0.25
"""How long a page waits for figures before it shows those that were found before, or says that there are none yet."""
PRECISIONS: Final = (0.8, 0.9, 0.95, 0.98, 0.99, PRECISION, 0.999)
_NAME_CHARS_MAX: Final = 512
_MIXED: Final = "mixed"
_ANY_SOURCE: Final = "SOURCE"


class AxisTick(NamedTuple):
    """A place on an axis, and its value."""

    at: float
    value: float


class RatePlot(NamedTuple):
    """A rate where it is known well enough: the corners of each band of its intervals, and the points of its lines."""

    bands: tuple[str, ...]
    lines: tuple[str, ...]


class ChartStrip(NamedTuple):
    """A strip from top to bottom."""

    left: float
    width: float


class ThresholdChart(NamedTuple):
    """Everything there is to draw. ``now`` is where the configured threshold is, ``reviewers`` where their line is.

    Nothing is drawn that is not known to within half of its scale: ``reviewers`` is None then, ``is_whole`` is False
    where points of a rate are missing.
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
    """Return the picture of all points."""
    thresholds = [point.threshold for point in figures.points]
    first, last = thresholds[0], max(thresholds[-1], thresholds[0] + _LEAST_SPAN)

    def x(threshold: float) -> float:
        inside = min(max(threshold, first), last)
        return round(_LEFT + (_RIGHT - _LEFT) * (inside - first) / (last - first), 1)

    places = [x(threshold) for threshold in thresholds]
    precisions = [point.precision for point in figures.points]
    recalls = [point.recall for point in figures.points if point.recall is not None]
    left, right = x(figures.line.low), x(figures.line.high)
    has_line = right - left <= _KNOWN_WITHIN * (_RIGHT - _LEFT)
    return ThresholdChart(
        width=WIDTH,
        height=HEIGHT,
        left=_LEFT,
        right=_RIGHT,
        top=_TOP,
        bottom=_BOTTOM,
        precision=_drawn(places, precisions),
        recall=_drawn(places, recalls) if len(recalls) == len(places) else None,
        now=x(figures.now),
        reviewers=ChartStrip(left, round(max(right - left, 1.0), 1)) if has_line else None,
        is_whole=all(map(_is_known, [rate for rate in (*precisions, *recalls) if rate.value is not None])),
        thresholds=tuple(AxisTick(x(value), value) for value in _named(first, last)),
        shares=tuple(AxisTick(_y(share), share) for share in _SHARES),
    )


def _drawn(places: Sequence[float], rates: Sequence[Rate]) -> RatePlot:
    bands, lines = [], []
    for is_known, group in groupby(zip(places, rates, strict=True), lambda pair: _is_known(pair[1])):
        if is_known:
            stretch = list(group)
            corners = [(x, rate.high) for x, rate in stretch] + [(x, rate.low) for x, rate in reversed(stretch)]
            bands.append(_points(corners))
            lines.append(_points([(x, rate.value or 0.0) for x, rate in stretch]))
    return RatePlot(tuple(bands), tuple(lines))


def _is_known(rate: Rate) -> bool:
    return rate.value is not None and rate.high - rate.low <= _KNOWN_WITHIN


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{_y(share):g}" for x, share in places)


def _y(share: float) -> float:
    return round(_BOTTOM - (_BOTTOM - _TOP) * min(max(share, 0.0), 1.0), 1)


def _named(first: float, last: float) -> list[float]:
    step = 5 if last - first <= _FEW else 10
    low, high = ceil(round(first * 100 / step, 6)), floor(round(last * 100 / step, 6))
    return [number * step / 100 for number in range(low, high + 1)]


class FlagCounts(NamedTuple):
    """Flags that would come or go with another threshold, all and wrong ones."""

    all: int
    wrong: int


class ProfileAdvice(NamedTuple):
    """A profile whose threshold another one reaches: its name and threshold, and the lines that choose it.

    ``toml`` is for the whole store, "" where a rule is enough; ``rule`` is for one source, "" for a lower threshold.
    """

    name: str
    threshold: str
    toml: str
    rule: str


class ThresholdChange(NamedTuple):
    """Another threshold: its point, and what the configuration says then, "" where a rule cannot be less strict.

    What would come and go is None where nothing would, and ``profile`` where no profile is reached.
    """

    point: ReviewPoint
    come: FlagCounts | None
    gone: FlagCounts | None
    toml: str
    profile: ProfileAdvice | None


def show_thresholds(asked: SignedInVisit) -> Response:
    """Show what reviews say of the threshold, of all pairs or of one source."""
    kept = asked.desk.evaluation
    if kept is None:
        return asked.page("thresholds.html", why="plain")
    found = kept.latest(WAIT_S)
    if found is None:
        return asked.page("thresholds.html", why="computing")
    if found.overall is None:
        return asked.page("thresholds.html", why="too much" if found.is_too_much else "nothing", found=found)
    if found.overall.counts.reviews < REVIEWS_MIN:
        return asked.page("thresholds.html", why="few", found=found, reviews_min=REVIEWS_MIN)
    with asked.desk.database.reading() as connection:
        near_misses_open = queue.counts(connection).others_open["near_miss"]
    source = asked.query.exact("source", _NAME_CHARS_MAX)
    figures = _of_source(found, source) if source else found.overall
    precision = _precision(asked)
    reaching = greatest_recall(figures.points, precision)
    moved = _moved(asked, figures, reaching)
    rows = ThresholdTableInput(asked.language, figures, reaching, moved and moved.point, every="every" in asked.query)
    return asked.page(
        "thresholds.html",
        why="",
        found=found,
        figures=figures,
        source=source,
        curve=curve_of(figures),
        rows=threshold_rows(rows),
        sources=[] if source else [source_row(asked.language, each, precision) for each in found.sources],
        precision=precision,
        precisions=PRECISIONS,
        reaching=reaching,
        moved=moved,
        shows_every=rows.every,
        near_misses_open=near_misses_open,
        now_point=figures.at_now,
        line=line_text(asked.language, figures),
        mistakes=mistakes_text(asked.language, figures),
        days=None if figures.days is None else round(figures.days),
        profile=profile_at(_profiles(asked), figures.now),
        threshold_of=partial(threshold_text, asked.language),
        rate_of=partial(rate_text, asked.language),
        interval_of=partial(interval_text, asked.language),
        href=_href,
    )


def _of_source(found: ReviewSnapshot, source: str) -> ReviewFigures:
    for figures in found.sources:
        if figures.source == source:
            return figures
    if found.is_whole:
        message = N_("This source has too few reviews for figures of its own.")
        raise PageError(HTTPStatus.NOT_FOUND, message)
    raise PageError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        N_("The figures of sources are still being computed. Try again in some seconds."),
        retry_s=2,
    )


def _precision(asked: SignedInVisit) -> float:
    wanted = asked.query.number("precision")
    if wanted is None:
        return PRECISION
    if not 0 <= wanted <= 1:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("“%(field)s” is a share, from 0 to 1."), field="precision")
    return wanted


def _moved(asked: SignedInVisit, figures: ReviewFigures, reaching: ReviewPoint | None) -> ThresholdChange | None:
    """Return the threshold that was asked for; without that, one that is better than the configured one."""
    wanted = asked.query.number("threshold")
    if wanted is None:
        best = figures.best_f1 or reaching
        return None if best is None or best.threshold == figures.now else _with_setting(asked, figures, best)
    for point in figures.points:
        if abs(point.threshold - wanted) < SAME_WITHIN:
            return _with_setting(asked, figures, point)
    raise PageError(
        HTTPStatus.BAD_REQUEST,
        N_("There are no figures for this threshold, only for whole percents from %(first)s to %(last)s."),
        first=asked.language.decimal(figures.points[0].threshold),
        last=asked.language.decimal(figures.points[-1].threshold),
    )


def _with_setting(asked: SignedInVisit, figures: ReviewFigures, point: ReviewPoint) -> ThresholdChange:
    change = point.change

    def changed(all_of: float, wrong: float) -> FlagCounts | None:
        return FlagCounts(whole_count(all_of), whole_count(wrong)) if all_of else None

    come, gone = changed(change.come, change.wrong_come), changed(change.gone, change.wrong_gone)
    reached = profile_reached(_profiles(asked), figures.now, point.threshold)
    advice = None if reached is None else _advice(asked, figures, reached)
    return ThresholdChange(point, come, gone, _setting(asked, figures, point), advice)


def _profiles(asked: SignedInVisit) -> tuple[ProfileThreshold, ...]:
    judging = asked.desk.judging
    return () if judging is None else profile_thresholds(judging)


def _advice(asked: SignedInVisit, figures: ReviewFigures, reached: ProfileThreshold) -> ProfileAdvice:
    name, threshold = reached.name, threshold_text(asked.language, reached.similarity_min)
    if reached.similarity_min < figures.now:
        # One source of a store is posts, so the store is for both.
        name = name if figures.source is None else _MIXED
        return ProfileAdvice(name, threshold, f'[judge]\nprofile = "{name}"\n', "")
    source = _ANY_SOURCE if figures.source is None else figures.source
    toml = f'[judge]\nprofile = "{name}"\n' if figures.source is None else ""
    return ProfileAdvice(name, threshold, toml, f'[rules.{quoted(source)}]\nprofile = "{name}"\n')


def _setting(asked: SignedInVisit, figures: ReviewFigures, point: ReviewPoint) -> str:
    judging, setting = asked.desk.judging, f"similarity_min = {point.threshold:g}\n"
    if figures.source is None:
        return f"[judge]\n{setting}"
    if judging is not None and point.threshold < judging.similarity_min:
        return ""
    return f"[rules.{quoted(figures.source)}]\n{setting}"


def _href(**query: object) -> str:
    return f"/thresholds?{urlencode({name: value for name, value in query.items() if value not in ('', None)})}"
