"""A table that shows which source copies which. Rows and columns have the same order. Pure functions."""

from collections.abc import Callable, Sequence
from math import ceil, log1p
from typing import Final, NamedTuple

NAMES_MAX: Final = 10
"""The maximum number of rows, and of columns. The list of pairs shows the other sources."""
HEAT_STEPS: Final = 4
"""The number of shades of a cell with copies; an empty cell has none."""


class PairLine(NamedTuple):
    """A pair of sources in a list. ``step`` is the length of its bar."""

    source: str
    original_source: str
    copies: int
    step: int
    href: str


class MatrixCell(NamedTuple):
    """Copies of one pair; ``step`` is its shade."""

    copies: int
    step: int
    href: str


class MatrixRow(NamedTuple):
    """A copying source, and its cells in the order of the columns."""

    name: str
    cells: tuple[MatrixCell, ...]


class Matrix(NamedTuple):
    """The table. ``is_cut``: some sources were left out."""

    columns: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    is_cut: bool


def source_matrix(pairs: Sequence[PairLine], href: Callable[[str, str], str]) -> Matrix:
    """Return the table of the sources with the most copies, most first, without empty rows and columns.

    Shades grow with the logarithm of the count, so that one large pair does not flatten the others.
    """
    chosen = _top_sources(pairs)
    shown = [pair for pair in pairs if pair.source in chosen and pair.original_source in chosen]
    copies = {(pair.source, pair.original_source): pair.copies for pair in shown}
    columns = [name for name in chosen if any(pair.original_source == name for pair in shown)]
    rows = [name for name in chosen if any(pair.source == name for pair in shown)]
    most = log1p(max(copies.values(), default=1))

    def cell(row: str, column: str) -> MatrixCell:
        count = copies.get((row, column), 0)
        return MatrixCell(count, ceil(HEAT_STEPS * log1p(count) / most), href(row, column))

    return Matrix(
        tuple(columns),
        tuple(MatrixRow(row, tuple(cell(row, column) for column in columns)) for row in rows),
        is_cut=len(shown) < len(pairs),
    )


def _top_sources(pairs: Sequence[PairLine]) -> list[str]:
    total: dict[str, int] = {}
    for pair in pairs:
        for name in {pair.source, pair.original_source}:
            total[name] = total.get(name, 0) + pair.copies
    return sorted(total, key=lambda name: (-total[name], name))[:NAMES_MAX]
