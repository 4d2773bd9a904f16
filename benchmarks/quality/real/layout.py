"""What the readers of published files share: a clear error, and texts without markup."""

import csv
import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

_TAG: Final = re.compile(r"<[^<>]*>")
_SPACE: Final = re.compile(r"\s+")
_FIELD_CHARS_MAX: Final = 1 << 24


class LayoutError(ValueError):
    """A set is there, but not as its publisher lays it out; the message names the file and what it should be."""


def required(path: Path) -> Path:
    """Return a file or folder that has to be there. Raises ``LayoutError`` if it is not."""
    if not path.exists():
        raise LayoutError(f"{path} is missing")
    return path


def rows_of(path: Path, columns: Sequence[str], delimiter: str, *, quoted: bool = True) -> Iterator[dict[str, str]]:
    """Yield the rows of a table as the values of these columns. Raises ``LayoutError`` if a column is missing."""
    csv.field_size_limit(_FIELD_CHARS_MAX)
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    with required(path).open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.DictReader(lines, delimiter=delimiter, quoting=quoting)
        missing = [column for column in columns if column not in (reader.fieldnames or ())]
        if missing:
            raise LayoutError(
                f"{path} has no column {', '.join(missing)}; its first line should name {', '.join(columns)}"
            )
        for number, row in enumerate(reader, 2):
            if any(row[column] is None for column in columns):
                raise LayoutError(f"{path}, row {number} has fewer columns than the first line")
            yield {column: row[column] for column in columns}


def without_markup(text: str) -> str:
    """Return the text of a piece of HTML, on one line."""
    return _SPACE.sub(" ", html.unescape(_TAG.sub(" ", text))).strip()
