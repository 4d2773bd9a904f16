"""The view of ``dupwatch top`` on a terminal that is too narrow for a table: two lines per consumer.

The least important columns are left out. Rich's tables, which a wide terminal gets, would squeeze every column instead.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.text import Text

_GAP: Final = "  "
_INDENT: Final = "  "


class Figures(NamedTuple):
    """The name of a consumer, its state, and its figures in the order of the columns."""

    name: Text
    state: Text
    figures: Sequence[str]


def fitting(names: Sequence[str], rows: Sequence[Sequence[str]], importance: Sequence[str], width: int) -> list[int]:
    """Return the indexes of the columns that fit. The least important go first; the most important one always stays."""
    shown = list(range(len(names)))
    for name in reversed(importance[1:]):
        if _line_width(names, rows, shown) <= width:
            break
        shown.remove(names.index(name))
    return shown


def stacked(names: Sequence[str], consumers: Sequence[Figures], importance: Sequence[str], width: int) -> list[Text]:
    """Return two lines per consumer, name and state above the figures, and a last line that names hidden columns."""
    rows = [consumer.figures for consumer in consumers]
    shown = fitting(names, rows, importance, width - len(_INDENT))
    widths = _widths(names, rows)
    lines = [Text(_INDENT + _joined(names, widths, shown), "dim")]
    for consumer in consumers:
        lines += [Text.assemble(consumer.name, _GAP, consumer.state, overflow="fold")]
        lines += [Text(_INDENT + _joined(consumer.figures, widths, shown))]
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


def _joined(cells: Sequence[str], widths: Mapping[int, int], shown: Sequence[int]) -> str:
    return _GAP.join(cells[place].rjust(widths[place]) for place in shown)
