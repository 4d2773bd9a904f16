"""Cells of CSV files that spreadsheets show as text, and what such cells said before."""

import re
from typing import Final

_FORMULA: Final = re.compile("'*[=+\\-@\t\r＝＋－＠]")
"""How a cell begins that a spreadsheet may take for a formula, also after one apostrophe or several."""
_QUOTED: Final = re.compile("'+[=+\\-@\t\r＝＋－＠]")


def text_cell(text: str) -> str:
    """Return a text as a cell: with an apostrophe in front where a spreadsheet could take it for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def text_of_cell(cell: str) -> str:
    """Return the text that ``text_cell`` made this cell of. Cells of other programs stay as they are."""
    return cell[1:] if _QUOTED.match(cell) else cell
