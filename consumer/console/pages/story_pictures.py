"""Pictures of stories: copies over time as bars, and a table of which source copies which."""

from collections.abc import Callable, Sequence
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
NAMES_MAX: Final = 10
"""Rows and columns; others are in the list of pairs."""
HEAT_STEPS: Final = 4
"""How many shades a cell may have besides none."""


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


class PairLine(NamedTuple):
    """A pair of sources in a list."""

    source: str
    original_source: str
    copies: int
    step: int
    href: str

    @property
    def is_within(self) -> bool:
        """Whether a source copied itself."""
        return self.source == self.original_source


class Cell(NamedTuple):
    """Copies of one pair; ``step`` is its shade."""

    copies: int
    step: int
    href: str


class Row(NamedTuple):
    """A source that copied, and its cells in the order of the columns."""

    name: str
    cells: tuple[Cell, ...]


class Matrix(NamedTuple):
    """The table. ``is_cut``: there are more sources than it has."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    is_cut: bool


def source_matrix(pairs: Sequence[PairLine], href: Callable[[str, str], str]) -> Matrix:
    """Return the table of the sources with the most copies, most first."""
    rows, columns = (
        _most([(pair.source, pair.copies) for pair in pairs]),
        _most([(pair.original_source, pair.copies) for pair in pairs]),
    )
    copies = {(pair.source, pair.original_source): pair.copies for pair in pairs}
    most = max(copies.values(), default=1)

    def cell(row: str, column: str) -> Cell:
        count = copies.get((row, column), 0)
        return Cell(count, -(-count * HEAT_STEPS // most), href(row, column))

    return Matrix(
        tuple(columns),
        tuple(Row(row, tuple(cell(row, column) for column in columns)) for row in rows),
        is_cut=any(pair.source not in rows or pair.original_source not in columns for pair in pairs),
    )


def _most(counted: Sequence[tuple[str, int]]) -> list[str]:
    total: dict[str, int] = {}
    for name, copies in counted:
        total[name] = total.get(name, 0) + copies
    return sorted(total, key=lambda name: (-total[name], name))[:NAMES_MAX]
