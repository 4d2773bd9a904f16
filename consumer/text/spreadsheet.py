"""Writes and reads cells of CSV files that spreadsheets must show as text."""

import re
from typing import Final

_FORMULA: Final = re.compile("'*[=+\\-@\t\r＝＋－＠]")
"""The beginning of a cell that a spreadsheet may read as a formula, with any apostrophes before it."""
_QUOTED: Final = re.compile("'+[=+\\-@\t\r＝＋－＠]")


def text_cell(text: str) -> str:
    """Return a text as a cell, with an apostrophe in front if a spreadsheet could read it as a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def text_of_cell(cell: str) -> str:
    """Return the text of a cell from ``text_cell``. A cell without an apostrophe before a formula is unchanged."""
    return cell[1:] if _QUOTED.match(cell) else cell
