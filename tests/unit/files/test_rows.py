"""Splitting tables into rows, compared with Python's ``csv`` module."""

import csv
import io
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from consumer.decode.encodings import Encoding
from consumer.decode.rows import cells_of
from consumer.files.lines import Position
from consumer.files.rows import RowSplitter
from consumer.model.article import Reason
from consumer.model.record import RawRecord

SEPARATORS = st.sampled_from(",\t")
ENCODINGS = st.sampled_from(["utf-8", "gb18030", "utf-16-le", "utf-16-be", "utf-32-le"]).map(Encoding)
CUTS = st.lists(st.integers(0, 200), max_size=8)
SIGNS = ['"', '"', '""', ",", "\t", "\n", "\r\n", "a", " ", "中", "\u0a0a", "\u220d", "𠮷"]
"""Some code units of the last ones have bytes of line ends and quotes in them."""
LIMIT = 1 << 20


def split(
    data: bytes, separator: str, encoding: Encoding, cuts: list[int] | None = None, limit: int = LIMIT
) -> tuple[list[RawRecord], RowSplitter]:
    """The rows of a table without a header, which arrives in chunks."""
    splitter = RowSplitter(limit, Position(), separator, encoding)
    at = [0, *sorted(cut % (len(data) + 1) for cut in cuts or []), len(data)]
    rows = [row for begin, end in pairwise(at) for row in splitter.feed(data[begin:end])]
    last = splitter.finish()
    return (rows if last is None else [*rows, last]), splitter


def cells(rows: list[RawRecord], separator: str, encoding: Encoding) -> list[list[str]]:
    """The cells of rows."""
    return [cells_of(row.data.decode(encoding.name), separator, 1_000) for row in rows]


@given(
    st.lists(st.lists(st.lists(st.sampled_from(SIGNS), max_size=6).map("".join), min_size=1, max_size=4), max_size=6),
    SEPARATORS,
    ENCODINGS,
    CUTS,
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_what_csv_writes_is_read(
    table: list[list[str]], separator: str, encoding: Encoding, cuts: list[int], line_end: str, quoting: int
) -> None:
    """Cell for cell, whatever is in the cells, and wherever the chunks are cut."""
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator=line_end, quoting=quoting).writerows(table)  # type: ignore[arg-type]
    rows, _ = split(out.getvalue().encode(encoding.name), separator, encoding, cuts)
    assert cells(rows, separator, encoding) == table


@given(st.lists(st.sampled_from(SIGNS), max_size=40).map("".join), SEPARATORS)
@example('"a""\n"\n', ",")
@example('a"b,"c\nd"\n', ",")
def test_what_csv_accepts_is_read_alike(text: str, separator: str) -> None:
    """Texts that no program wrote: quotes that stand within fields, empty lines, a last line without an end."""
    try:
        wanted = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True) if row]
    except csv.Error:
        return
    rows, _ = split(text.encode(), separator, Encoding("utf-8"))
    assert cells(rows, separator, Encoding("utf-8")) == wanted


@given(st.lists(st.sampled_from([*SIGNS, "\r"]), max_size=40).map("".join), SEPARATORS, ENCODINGS, CUTS)
def test_chunks_make_no_difference(text: str, separator: str, encoding: Encoding, cuts: list[int]) -> None:
    """Valid or not, the same rows come out; each has its bytes, its line and its line end, and nothing is left out."""
    data = text.encode(encoding.name)
    whole, splitter = split(data, separator, encoding)
    assert split(data, separator, encoding, cuts)[0] == whole
    assert splitter.position.offset == len(data)
    between = b""
    at = 0
    for row in whole:
        assert isinstance(row.end, Position)
        assert data[row.start : row.end.offset] == row.data + row.line_end
        assert row.line == data[: row.start].decode(encoding.name).count("\n") + 1
        between += data[at : row.start]
        at = row.end.offset
    between += data[at:]
    assert between.decode(encoding.name).strip("\r\n") == ""
    assert splitter.blank_lines >= between.decode(encoding.name).count("\n")


def test_a_row_has_the_line_on_which_it_begins() -> None:
    """And ends where the next one begins, however many lines it has."""
    data = b'a,"one\r\ntwo\n\n"\r\n\nb,c\n"d'
    rows, splitter = split(data, ",", Encoding("utf-8"))
    assert [(row.line, row.start, row.data, row.line_end) for row in rows] == [
        (1, 0, b'a,"one\r\ntwo\n\n"', b"\r\n"),
        (6, 17, b"b,c", b"\n"),
        (7, 21, b'"d', b""),
    ]
    assert (splitter.position, splitter.blank_lines) == (Position(7, len(data)), 1)


@pytest.mark.parametrize("text", ['"a"b,"c\n1\n', '"a""b" ,"\n1\n', '1,"a"\r,"\n1\n', '1,"a"\r\n1\n', '"""",a"\n1\n'])
def test_an_invalid_row_ends_with_its_line(text: str) -> None:
    """Text behind a closing quote: what follows on the next line is a row of its own, as after a valid row."""
    for cut in range(len(text)):
        rows, _ = split(text.encode(), ",", Encoding("utf-8"), [cut])
        assert [row.data + row.line_end for row in rows] == [text.encode()[:-2], b"1\n"]


@pytest.mark.parametrize("cuts", [[], list(range(0, 400, 7))])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_a_long_row_is_rejected_and_the_next_one_read(encoding: str, cuts: list[int]) -> None:
    """Of one over the limit, lines within quotes too, and the limit is one of bytes."""
    row = 'a,"' + "b\n" * 50 + '"'
    data = f"{row}\r\nc,d\n".encode(encoding)
    rows, _ = split(data, ",", Encoding(encoding), cuts, limit=60)
    assert [(row.line, row.fault.reason if row.fault else None) for row in rows] == [
        (1, Reason.RECORD_TOO_LONG),
        (52, None),
    ]
    assert rows[0].size_bytes == len(row.encode(encoding))


def test_an_open_quote_takes_no_memory() -> None:
    """What is behind the limits is hashed and forgotten, and how long the quote has been open is known."""
    splitter = RowSplitter(1_000, Position(), ",", Encoding("utf-8"))
    chunk = b"line within quotes\n" * 10_000
    assert list(splitter.feed(b'a,"')) == []
    for _ in range(20):
        assert list(splitter.feed(chunk)) == []
    assert splitter.quoted_bytes == 3 + 20 * len(chunk)
    last = splitter.finish()
    assert last is not None
    assert (len(last.data), last.size_bytes) == (1 << 16, 3 + 20 * len(chunk))
