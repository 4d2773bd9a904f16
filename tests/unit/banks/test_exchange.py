"""Items as CSV and as JSON lines."""

import csv
import io

import pytest

from consumer.banks.bank import Bank, BankError, BankItem
from consumer.banks.exchange import csv_of, item_id, items_of_csv, items_of_lines, lines_of

ITEMS = [
    BankItem(
        bank="spam",
        item="offer",
        text='Win "two" tickets,\nnow',
        title="Offer",
        lang="en",
        labels=("casino", "ferry"),
        note="seen since May",
        article="a-17",
        until="2027-01-01T00:00:00.000Z",
        similarity=0.75,
    ),
    BankItem(bank="spam", item="other", text="\u9650\u65f6\u62a2\u8d2d\u4f18\u60e0", enabled=False),
]


def test_csv_keeps_everything() -> None:
    """Quotes, line ends and every script; who added an item is no column."""
    assert list(items_of_csv("spam", csv_of(ITEMS))) == ITEMS


def test_lines_keep_everything() -> None:
    """Items go into the bank that is named; lines about banks are skipped."""
    lines = lines_of([Bank(bank="old", action="deny"), *ITEMS])
    assert list(items_of_lines("spam", [*lines.split(b"\n"), b"  "])) == ITEMS


FORMULAS = (
    "=command()",
    "+1 offer now",
    "-2 offers now",
    "@SUMMARY(A1)",
    "\t=1 letters",
    "'=letters",
    "''-letters",
    "＝letters",
)
HARMLESS = ("letters = 1", "'letters'", "''letters", "letters\n=1")


@pytest.mark.parametrize("text", [*FORMULAS, *HARMLESS])
def test_csv_has_no_formula_and_keeps_the_text(text: str) -> None:
    """Whatever a text begins with; an apostrophe of its own stays, and so do cells of other programs."""
    item = BankItem(bank="spam", item="a", text=text, title=text, note=text)
    written = csv_of([item])
    (row,) = csv.DictReader(io.StringIO(written, newline=""))
    assert row["text"] == row["title"] == row["note"] == (f"'{text}" if text in FORMULAS else text)
    assert list(items_of_csv("spam", written)) == [item]
    if not text.startswith("'"):
        assert [each.text for each in items_of_csv("spam", f'text\n"{text}"\n')] == [text]


def test_a_list_of_texts_may_begin_with_a_byte_order_mark() -> None:
    """As programs on Windows write it; only at the beginning."""
    lines = [b'\xef\xbb\xbf{"text": "Ferry tickets"}', b'{"text": "Harbour tickets"}']
    assert [item.text for item in items_of_lines("spam", lines)] == ["Ferry tickets", "Harbour tickets"]
    with pytest.raises(BankError, match="line 2"):
        list(items_of_lines("spam", [*lines[1:], lines[0]]))


def test_a_list_of_texts_is_enough() -> None:
    """The id is that of the text, however it is composed, so that the same text is one item."""
    (from_csv,) = items_of_csv("spam", "text\nCaf\u00e9 offers\n")
    (from_lines,) = items_of_lines("spam", ['{"text": "Cafe\u0301 offers"}'.encode()])
    assert from_csv.item == from_lines.item == item_id("Caf\u00e9 offers")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("title\nx\n", "has no column text"),
        ('"text"x\nletters\n', "line 1: "),
        ('text\nletters\n"letters"x\n', "line 3: "),
        ("text,colour\nletters,red\n", "has unknown columns: colour"),
        ("text\nletters\nabc\n", "line 3: .*has 3 letters"),
        ("text\nletters,more\n", "line 2: .*more values"),
        ("text,similarity\nletters,high\n", "line 2: similarity: could not convert"),
        ("text,similarity\nletters,0.1\n", r"line 2: the similarity must be from 0\.5"),
        ("text,enabled\nletters,perhaps\n", "must be yes or no"),
        ('text\n"letters\n', "unexpected end of data"),
    ],
)
def test_csv_at_fault_is_refused_with_its_line(content: str, complaint: str) -> None:
    """All or none of a file is imported."""
    with pytest.raises(BankError, match=complaint):
        list(items_of_csv("spam", content))


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"text": 1}', b'{"text": "abc"}', b"\xff"])
def test_lines_at_fault_are_refused_with_their_number(line: bytes) -> None:
    """Whatever they are."""
    with pytest.raises(BankError, match="line 2: "):
        list(items_of_lines("spam", [b'{"text": "letters"}', line]))
