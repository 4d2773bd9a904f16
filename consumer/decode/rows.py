"""Parses rows of CSV and TSV tables.

The cells are the same as those of Python's ``csv`` module with ``strict=True``, which is not used here because its
limit on the length of a cell applies to the whole process.
"""

import re
from typing import Final

import msgspec

from consumer.model.article import Reason
from consumer.model.errors import BadRecord
from consumer.model.record import RawRecord, TableLayout

_CELLS: Final = {
    separator: re.compile(rf'(?:"((?:[^"]++|"")*+)"|([^"{separator}\r\n][^{separator}\r\n]*+|))(?:({separator})|\Z)')
    for separator in (",", "\t")
}
_QUOTED: Final = re.compile(r'"(?:[^"]++|"")*+')


def parse_row(data: bytes, table: TableLayout) -> dict[str, str]:
    """Parse a row into its cells by the names of their columns; columns without a name are left out.

    Raises only ``BadRecord``.
    """
    cells = cells_of(decode_row(data, table.encoding), table.separator, len(table.columns))
    if len(cells) != len(table.columns):
        found = f"more than {len(table.columns)}" if len(cells) > len(table.columns) else str(len(cells))
        raise BadRecord(Reason.SCHEMA_MISMATCH, f"the row has {found} fields, and the header has {len(table.columns)}")
    return {name: cell for name, cell in zip(table.columns, cells, strict=True) if name}


def json_value(record: RawRecord) -> bytes:
    """Return a record as the value of a message: a row as a JSON object, anything else unchanged.

    A row that cannot be parsed is unchanged, too. The consumer of the message turns it into a dead letter.
    """
    if record.table is None or record.fault is not None:
        return record.data
    try:
        return msgspec.json.encode(parse_row(record.data, record.table))
    except BadRecord:
        return record.data


def decode_row(data: bytes, encoding: str) -> str:
    """Return the text of a row. Raises ``BadRecord`` if the row has another encoding."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadRecord(
            Reason.INVALID_UTF8, f"the record is not {encoding.upper()}: {error.reason} at byte {error.start}"
        ) from error


def cells_of(text: str, separator: str, cells_max: int) -> list[str]:
    """Return the cells of a row, at most ``cells_max`` + 1.

    Raises ``BadRecord`` if the quotes or line ends are wrong.
    """
    match = _CELLS[separator].match
    cells: list[str] = []
    at = 0
    while len(cells) <= cells_max:
        found = match(text, at)
        if found is None:
            raise BadRecord(Reason.SCHEMA_MISMATCH, _fault(text, at))
        quoted = found[1]
        cells.append(found[2] if quoted is None else quoted.replace('""', '"'))
        if found[3] is None:
            break
        at = found.end()
    return cells


def _fault(text: str, at: int) -> str:
    """Return what is wrong with the cell that begins at ``at``."""
    quoted = _QUOTED.match(text, at)
    if quoted is None:
        return "the row has a carriage return or a line end outside quotes"
    if quoted.end() == len(text):
        return f"the quote at character {at + 1} is not closed"
    return f"text follows the closing quote at character {quoted.end() + 1}; quotes within a field are doubled"
