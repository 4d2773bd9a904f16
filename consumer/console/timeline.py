"""Copies over time as bars, in the units of the picture that shows them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from consumer.reviews.stories import Bucket

WIDTH: Final = 600
HEIGHT: Final = 96
BARS: Final = 60
"""Bars of a timeline."""
_GAP: Final = 1
_WIDTH_MAX: Final = 24
_MS_PER_S: Final = 1_000
_HEIGHT_MIN: Final = 3
"""One copy beside a thousand is still to be seen."""


class Bar(NamedTuple):
    """A bar of the picture, for the copies that arrived from ``from_ms`` on."""

    x: int
    y: int
    width: int
    height: int
    from_ms: int
    copies: int


class Timeline(NamedTuple):
    """The bars that are not empty, and what the picture has at its ends. ``most`` is the count of the highest bar."""

    bars: tuple[Bar, ...]
    from_ms: int
    to_ms: int
    bucket_s: float
    most: int
    width: int = WIDTH
    height: int = HEIGHT


def timeline(buckets: Sequence[Bucket]) -> Timeline:
    """Return the bars of spans of equal length that follow each other."""
    if not buckets:
        return Timeline((), 0, 0, 0, 0)
    most = max(bucket.copies for bucket in buckets)
    slot = WIDTH // len(buckets)
    bars = [_bar(place * slot, slot, bucket, most) for place, bucket in enumerate(buckets) if bucket.copies]
    bucket_s = (buckets[0].to_ms - buckets[0].from_ms) / _MS_PER_S
    return Timeline(tuple(bars), buckets[0].from_ms, buckets[-1].to_ms, bucket_s, most)


def _bar(x: int, slot: int, bucket: Bucket, most: int) -> Bar:
    height = max(_HEIGHT_MIN, HEIGHT * bucket.copies // most)
    return Bar(x, HEIGHT - height, min(max(slot - _GAP, 1), _WIDTH_MAX), height, bucket.from_ms, bucket.copies)
