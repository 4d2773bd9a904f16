"""Import and export of items: CSV for spreadsheets, JSON lines for other programs and bank files."""

import csv
import hashlib
import io
from codecs import BOM_UTF8
from collections.abc import Collection, Iterable, Iterator
from typing import Final

import msgspec

from consumer.banks.bank import BankError, BankItem, Entry, check_entry, decode_entry, encode_entry, explained
from consumer.fingerprint import normalise
from consumer.text.spreadsheet import text_cell, text_of_cell

COLUMNS: Final = (
    "item", "text", "title", "lang", "labels", "note", "article", "until", "similarity", "enabled", "confirmed",
)  # fmt: skip
"""The columns of a CSV file; ``text`` is required. Labels are separated by spaces."""
_ITEM_BYTES: Final = 6
_YES: Final = frozenset({"1", "true", "yes"})
_NO: Final = frozenset({"0", "false", "no"})


def item_id(text: str) -> str:
    """Return the id for an item without an id: a digest of its text, so that equal texts become one item."""
    return hashlib.blake2b(normalise(text).encode(), digest_size=_ITEM_BYTES).hexdigest()


def items_of_csv(bank: str, content: str) -> Iterator[BankItem]:
    """Yield the items of a CSV file whose header has the column ``text``, and any others of ``COLUMNS``.

    Raises ``BankError``, which names the invalid line.
    """
    reader = csv.DictReader(io.StringIO(content, newline=""), strict=True)
    try:
        _check_header(reader.fieldnames or ())
        for row in reader:
            try:
                yield _item_of_row(bank, row)
            except msgspec.ValidationError as error:
                raise BankError(f"line {reader.line_num}: {explained(error)}") from None
            except BankError as error:
                raise BankError(f"line {reader.line_num}: {error}") from None
    except csv.Error as error:
        # The number of the outer reader is that of the previous row.
        raise BankError(f"line {reader.reader.line_num}: {error}") from None


def items_of_lines(bank: str, lines: Iterable[bytes]) -> Iterator[BankItem]:
    """Yield the items of JSON lines, as written by ``lines_of``, moved to this bank.

    Empty lines and lines about banks are skipped. An item without an id gets one from its text, and needs no bank
    either. Raises ``BankError``, which names the invalid line.
    """
    for number, raw in enumerate(lines, 1):
        line = raw.removeprefix(BOM_UTF8) if number == 1 else raw
        if not line.strip():
            continue
        try:
            entry = decode_entry(_with_item_id(line))
        except BankError as error:
            raise BankError(f"line {number}: {error}") from None
        if isinstance(entry, BankItem):
            yield msgspec.structs.replace(entry, bank=bank)


def csv_of(items: Iterable[BankItem]) -> str:
    """Return items as CSV with a header. An apostrophe precedes values that a spreadsheet could read as formulas."""
    written = io.StringIO()
    writer = csv.DictWriter(written, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for item in items:
        row = {name: getattr(item, name) for name in COLUMNS} | {
            "labels": " ".join(item.labels),
            "enabled": "yes" if item.enabled else "no",
            "confirmed": "yes" if item.confirmed else "no",
        }
        writer.writerow({name: text_cell(value) if isinstance(value, str) else value for name, value in row.items()})
    return written.getvalue()


def lines_of(entries: Iterable[Entry]) -> bytes:
    """Return entries as JSON lines."""
    return b"".join(encode_entry(entry) + b"\n" for entry in entries)


def _check_header(names: Collection[str]) -> None:
    unknown = set(names) - set(COLUMNS)
    if unknown or "text" not in names:
        fault = f"has unknown columns: {', '.join(sorted(unknown))}" if unknown else "has no column text"
        raise BankError(
            f"its first line {fault}; write a header with the column text, and any others of {', '.join(COLUMNS)}"
        )


def _with_item_id(line: bytes) -> bytes:
    """Return the line. An item without an id gets one from its text, so that plain lists of texts can be imported."""
    try:
        values = msgspec.json.decode(line, type=dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return line
    if "item" in values or not isinstance(values.get("text"), str):
        return line
    # The caller replaces the bank.
    return msgspec.json.encode({"bank": "x", **values, "item": item_id(values["text"])})


def _item_of_row(bank: str, row: dict[str, str | None]) -> BankItem:
    values = {name: text_of_cell(value) for name, value in row.items() if name is not None and value}
    if None in row:
        raise BankError("it has more values than columns")
    text = values.pop("text", "")
    enabled = _yes_or_no(values, "enabled", empty=True)
    confirmed = _yes_or_no(values, "confirmed", empty=False)
    try:
        similarity = float(values.pop("similarity")) if "similarity" in values else None
    except ValueError as error:
        raise BankError(f"similarity: {error}") from None
    item = msgspec.convert(
        values
        | {
            "bank": bank,
            "item": values.get("item") or item_id(text),
            "text": text,
            "labels": values.get("labels", "").split(),
            "similarity": similarity,
            "enabled": enabled,
            "confirmed": confirmed,
        },
        BankItem,
    )
    check_entry(item)
    return item


def _yes_or_no(values: dict[str, str], name: str, *, empty: bool) -> bool:
    """Remove a yes-or-no value from a row and return it, or ``empty`` if it is missing. Raises ``BankError``."""
    value = values.pop(name, "").lower()
    if value not in {"", *_YES, *_NO}:
        raise BankError(f"{name} is {value!r}, and must be yes or no")
    return value in _YES if value else empty
