"""Who copies whom, as a table: each row a source that copied, each column the source of the original."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

NAMES_MAX: Final = 10
"""Rows and columns; others are in the list of pairs."""
HEAT_STEPS: Final = 4
"""How many shades a cell may have besides none."""


class Pair(Protocol):
    """How often one source copied another."""

    @property
    def source(self) -> str:
        """Who copied."""
        ...

    @property
    def original_source(self) -> str:
        """Who was copied."""
        ...

    @property
    def copies(self) -> int:
        """How many articles."""
        ...


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


def source_matrix(pairs: Sequence[Pair], href: Callable[[str, str], str]) -> Matrix:
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
