"""Reads the header of a table, and explains what is wrong with it and what to set."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from consumer.decode.article import FieldPaths
from consumer.decode.feed_format import FEED, UNKNOWN, encoding_advice, likely_names, mapping_advice
from consumer.decode.rows import cells_of, decode_row
from consumer.model.article import Reason
from consumer.model.errors import BadRecord
from consumer.model.record import RawRecord, TableLayout
from consumer.text.visible import cut

COLUMNS_MAX: Final = 10_000
_BYTE_ORDER_MARK: Final = "\ufeff"
_NAME_CHARS_MAX: Final = 16
_ADVICE_OF_SEPARATORS: Final = {
    ";": f"semicolons: convert it, as with mlr --icsv --ifs ';' --ojsonl cat {FEED}",
    "\t": "tabs: set source.format=tsv",
    "|": f"bars: convert it, as with mlr --icsv --ifs '|' --ojsonl cat {FEED}",
    ",": "commas: set source.format=csv",
}


def read_header(record: RawRecord, separator: str, encoding: str, fields: FieldPaths) -> TableLayout:
    """Return the layout of a table with this header.

    Raises ``ValueError``, whose message says what is wrong with it.
    """
    try:
        text = decode_row(record.whole(), encoding).removeprefix(_BYTE_ORDER_MARK)
        if text.lstrip().startswith("{"):
            raise ValueError("is JSON: set source.format=jsonl")
        if "\0" in text:
            raise ValueError("has NUL characters: set source.encoding, for example to utf-16-le")
        columns = tuple(name.strip() for name in cells_of(text, separator, COLUMNS_MAX))
    except BadRecord as fault:
        raise ValueError(_advice(record.data, fault)) from None
    if len(columns) > COLUMNS_MAX:
        raise ValueError(f"names more than {COLUMNS_MAX:,} columns")
    repeated = [name for name, times in Counter(columns).items() if name and times > 1]
    if repeated:
        raise ValueError(f"names the column {_shown(repeated[0])} more than once; rename all but one")
    missing = [(field, name) for field, name in (("id", fields.id), ("body", fields.body)) if name not in columns]
    if missing:
        raise ValueError(_missing(missing, columns, fields.title))
    return TableLayout(columns, separator, encoding)


def _advice(data: bytes, fault: BadRecord) -> str:
    if fault.reason == Reason.INVALID_UTF8:
        return f"cannot be decoded: {encoding_advice([data])}"
    if b"\r" in data:
        return "ends with a carriage return alone: write line feeds, as with tr '\\r' '\\n'"
    return f"cannot be read: {fault.detail}"


def _missing(missing: Sequence[tuple[str, str]], columns: Sequence[str], title: str) -> str:
    """Return a message about missing columns, given as fields and names, with the settings to add."""
    names = " or ".join(_shown(name) for _, name in missing)
    only = columns[0] if len(columns) == 1 else ""
    for separator, advice in _ADVICE_OF_SEPARATORS.items():
        if separator in only:
            return f"has no column {names}; its columns are separated by {advice}"
    named = [name for name in columns if name]
    suggested = {field: next(iter(likely_names(field, named)), UNKNOWN) for field, _ in missing}
    return f"has no column {names}; {mapping_advice(suggested, dict.fromkeys(named, 1), title, _shown)}"


def _shown(name: str) -> str:
    return repr(cut(name, _NAME_CHARS_MAX))
