"""The curve of precision and recall over thresholds, as shapes of an SVG picture. Pure."""

from collections.abc import Sequence
from math import ceil, floor
from typing import Final, NamedTuple

from consumer.evaluation.curves import Rate
from consumer.evaluation.review_figures import ReviewFigures

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


class Tick(NamedTuple):
    """A place on an axis, and its value."""

    at: float
    value: float


class Drawn(NamedTuple):
    """A rate: the corners of the band of its intervals, and the points of its line."""

    band: str
    line: str


class Span(NamedTuple):
    """A strip from top to bottom."""

    left: float
    width: float


class Curve(NamedTuple):
    """Everything there is to draw. ``now`` is where the configured threshold is, ``reviewers`` where their line is."""

    width: int
    height: int
    left: float
    right: float
    top: float
    bottom: float
    precision: Drawn
    recall: Drawn | None
    now: float
    reviewers: Span
    thresholds: tuple[Tick, ...]
    shares: tuple[Tick, ...]


def curve_of(figures: ReviewFigures) -> Curve:
    """Return the picture of all points."""
    thresholds = [point.threshold for point in figures.points]
    first, last = thresholds[0], max(thresholds[-1], thresholds[0] + _LEAST_SPAN)

    def x(threshold: float) -> float:
        inside = min(max(threshold, first), last)
        return round(_LEFT + (_RIGHT - _LEFT) * (inside - first) / (last - first), 1)

    places = [x(threshold) for threshold in thresholds]
    recalls = [point.recall for point in figures.points if point.recall is not None]
    left, right = x(figures.line.low), x(figures.line.high)
    return Curve(
        width=WIDTH,
        height=HEIGHT,
        left=_LEFT,
        right=_RIGHT,
        top=_TOP,
        bottom=_BOTTOM,
        precision=_drawn(places, [point.precision for point in figures.points]),
        recall=_drawn(places, recalls) if len(recalls) == len(places) else None,
        now=x(figures.now),
        reviewers=Span(left, round(max(right - left, 1.0), 1)),
        thresholds=tuple(Tick(x(value), value) for value in _named(first, last)),
        shares=tuple(Tick(_y(share), share) for share in _SHARES),
    )


def _drawn(places: Sequence[float], rates: Sequence[Rate]) -> Drawn:
    counted = [(x, rate, rate.value) for x, rate in zip(places, rates, strict=True) if rate.value is not None]
    corners = [(x, rate.high) for x, rate, _ in counted] + [(x, rate.low) for x, rate, _ in reversed(counted)]
    return Drawn(_points(corners), _points([(x, value) for x, _, value in counted]))


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{_y(share):g}" for x, share in places)


def _y(share: float) -> float:
    return round(_BOTTOM - (_BOTTOM - _TOP) * min(max(share, 0.0), 1.0), 1)


def _named(first: float, last: float) -> list[float]:
    step = 5 if last - first <= _FEW else 10
    low, high = ceil(round(first * 100 / step, 6)), floor(round(last * 100 / step, 6))
    return [number * step / 100 for number in range(low, high + 1)]
