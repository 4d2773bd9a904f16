"""What ``dupwatch top`` shows on a terminal too narrow for a table: lines of their own, columns by importance.

The pictures of a wide terminal are tables of rich, which would squeeze every column a little.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.text import Text

_GAP: Final = "  "
_INDENT: Final = "  "


class Figures(NamedTuple):
    """A consumer: its name, its state, and its figures in the order of their columns."""

    name: Text
    state: Text
    figures: Sequence[str]


def fitting(names: Sequence[str], rows: Sequence[Sequence[str]], importance: Sequence[str], width: int) -> list[int]:
    """Which columns fit beside each other, by place; the least important are left out first, the first never."""
    kept = list(range(len(names)))
    for name in reversed(importance[1:]):
        if _line_width(names, rows, kept) <= width:
            break
        kept.remove(names.index(name))
    return kept


def stacked(names: Sequence[str], consumers: Sequence[Figures], importance: Sequence[str], width: int) -> list[Text]:
    """Each consumer on two lines, its name and state above its figures; what was left out is named below."""
    rows = [one.figures for one in consumers]
    kept = fitting(names, rows, importance, width - len(_INDENT))
    widths = _widths(names, rows)
    lines = [Text(_INDENT + _joined(names, widths, kept), "dim")]
    for one in consumers:
        lines += [Text.assemble(one.name, _GAP, one.state, overflow="fold")]
        lines += [Text(_INDENT + _joined(one.figures, widths, kept))]
    hidden = [name for place, name in enumerate(names) if place not in kept]
    if hidden:
        lines.append(Text(f"A wider terminal also shows: {', '.join(hidden)}", "dim"))
    return lines


def table_width(names: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """How wide columns are that are not squeezed, with the gaps between them."""
    return _line_width(names, rows, range(len(names)))


def _line_width(names: Sequence[str], rows: Sequence[Sequence[str]], kept: Sequence[int]) -> int:
    widths = _widths(names, rows)
    return sum(widths[place] for place in kept) + len(_GAP) * (len(kept) - 1)


def _widths(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Mapping[int, int]:
    return {place: max(map(cell_len, [name, *(row[place] for row in rows)])) for place, name in enumerate(names)}


def _joined(cells: Sequence[str], widths: Mapping[int, int], kept: Sequence[int]) -> str:
    return _GAP.join(cells[place].rjust(widths[place]) for place in kept)
