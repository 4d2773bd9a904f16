"""Draws the copies of a story over time: bars of round lengths on a scale that fits their span. Pure functions."""

from collections.abc import Sequence
from itertools import chain, count
from typing import Final, Literal, NamedTuple

from consumer.reviews.stories import Bucket
from storage.clock import MS_PER_S

BARS_MAX: Final = 60
TICKS_MAX: Final = 5
"""The maximum number of tick labels that fit on a phone, where the font is smaller."""
HEIGHT_PX: Final = 96
"""The height of the highest bar."""
TOP_PX: Final = 18
"""The room above the bars for the count of the highest bar."""
BOTTOM_PX: Final = 20
"""The room below the bars for the tick labels."""
_WIDTH_MAX: Final = 4.0
"""The maximum width of a bar, in percent, so that a few bars do not fill the picture."""
_HEIGHT_PX_MIN: Final = 3
"""The minimum height of a bar, so that one copy next to a thousand remains visible."""
_WHOLE: Final = 100.0
_MINUTE_S: Final = 60
_DAY_S: Final = 86_400
_LENGTHS_S: Final = (
    *(1, 2, 5, 10, 15, 30),
    *(_MINUTE_S, 120, 300, 600, 900, 1_800),
    *(3_600, 7_200, 10_800, 21_600, 43_200),
    *(days * _DAY_S for days in (1, 2, 3, 7, 14, 28, 91, 182, 364)),
)
"""Possible lengths of bars and of tick intervals. They are aligned with the epoch, so days begin at midnight UTC."""
_YEAR_S: Final = 364 * _DAY_S
_EDGE: Final = 8.0
_EDGE_WITH_YEAR: Final = 13.0
"""A tick closer than this to an edge of the picture, in percent, has its label moved inwards."""

TickUnit = Literal["second", "minute", "day", "year"]


class Bar(NamedTuple):
    """A bar for the copies that arrived from ``from_ms`` on.

    ``x`` and ``width`` are percentages of the picture; ``y`` and ``height`` are in pixels.
    """

    x: float
    width: float
    y: int
    height: int
    from_ms: int
    copies: int


class TimeTick(NamedTuple):
    """A tick at ``x`` percent. ``unit`` is the precision of its label; ``anchor`` keeps the label in the picture."""

    x: float
    anchor: Literal["start", "middle", "end"]
    at_ms: int
    unit: TickUnit


class Chart(NamedTuple):
    """The non-empty bars and the scale. ``most`` is the count of the highest bar."""

    bars: tuple[Bar, ...]
    ticks: tuple[TimeTick, ...]
    bar_s: float
    most: int
    top: int = TOP_PX
    bottom: int = TOP_PX + HEIGHT_PX
    height: int = TOP_PX + HEIGHT_PX + BOTTOM_PX


def bar_length_ms(first_ms: int, last_ms: int) -> int:
    """Return the length of a bar for copies between these times, both included."""
    return _length_ms(first_ms, last_ms, BARS_MAX)


def chart_of(buckets: Sequence[Bucket]) -> Chart | None:
    """Return the chart of consecutive buckets, or None if there is nothing to compare."""
    if len(buckets) <= 1 or not any(bucket.copies for bucket in buckets):
        return None
    from_ms, to_ms = buckets[0].from_ms, buckets[-1].to_ms
    most = max(bucket.copies for bucket in buckets)

    def x(at_ms: int) -> float:
        return round(_WHOLE * (at_ms - from_ms) / (to_ms - from_ms), 3)

    def bar(bucket: Bucket) -> Bar:
        height = max(_HEIGHT_PX_MIN, HEIGHT_PX * bucket.copies // most)
        left, right = x(bucket.from_ms), x(bucket.to_ms)
        width, top = round(min(right - left, _WIDTH_MAX), 3), TOP_PX + HEIGHT_PX - height
        return Bar(left, width, top, height, bucket.from_ms, bucket.copies)

    step_ms = _length_ms(from_ms, to_ms, TICKS_MAX)
    ticks = [
        _tick(x(at_ms), at_ms, step_ms // MS_PER_S, to_ms - from_ms)
        for at_ms in range(-(-from_ms // step_ms) * step_ms, to_ms + 1, step_ms)
    ]
    bars = tuple(bar(bucket) for bucket in buckets if bucket.copies)
    return Chart(bars, tuple(ticks), (buckets[0].to_ms - from_ms) / MS_PER_S, most)


def _length_ms(from_ms: int, to_ms: int, most: int) -> int:
    """Return the shortest length that divides the span, both ends included, into at most ``most`` intervals.

    The lengths are ``_LENGTHS_S`` and, for spans of decades, multiples of the longest one.
    """
    lengths_s = chain(_LENGTHS_S, count(2 * _LENGTHS_S[-1], _LENGTHS_S[-1]))
    lengths = (length_s * MS_PER_S for length_s in lengths_s)
    return next(length for length in lengths if to_ms // length - from_ms // length < most)


def _tick(x: float, at_ms: int, step_s: int, span_ms: int) -> TimeTick:
    if span_ms >= _YEAR_S * MS_PER_S:
        unit: TickUnit = "year"
    elif at_ms % (_DAY_S * MS_PER_S) == 0:
        unit = "day"
    else:
        unit = "second" if step_s < _MINUTE_S else "minute"
    edge = _EDGE_WITH_YEAR if unit == "year" else _EDGE
    anchor: Literal["start", "middle", "end"] = "start" if x < edge else "end" if x > _WHOLE - edge else "middle"
    return TimeTick(x, anchor, at_ms, unit)
