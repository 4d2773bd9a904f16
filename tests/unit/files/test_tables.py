"""Tables as files and streams: headers, encodings, resuming, and quotes that nobody closes."""

import gzip
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from consumer.files.lines import Position
from consumer.files.source import FileSource
from consumer.files.tables import OPEN_QUOTE_FACTOR, FileForm, in_units, open_table
from consumer.model.article import Reason
from consumer.model.errors import ConfigError, SourceError
from consumer.model.limits import ReadLimits
from consumer.model.record import RawBatch, RawRecord, TableLayout
from tests.zstandard import zstd

BEGIN = Position()
TEXT = '\ufeffid,body\r\n1,"one\nor two"\r\n\r\n2,"say ""hi"""\n3,"bad" row\n4,four\n5,\u4e2d\u0a0a\n6,last'
LINES = [2, 5, 6, 7, 8, 9]
"""The lines on which its rows begin."""
ENCODINGS = ["utf-8", "utf-16", "utf-16-be", "gb18030"]
FORMS: dict[str, Callable[[bytes], bytes]] = {"plain": bytes, "gzip": gzip.compress, "zstd": zstd.compress}
SMALL = ReadLimits(record_bytes_max=100, batch_records_max=2)


def written(path: Path, text: str = TEXT, encoding: str = "utf-8", form: str = "plain") -> Path:
    """A file with a table."""
    mark = "\ufeff" if encoding == "utf-16" and text[:1] != "\ufeff" else ""
    path.write_bytes(FORMS[form]((mark + text).encode("utf-16-le" if encoding == "utf-16" else encoding)))
    return path


def opened(
    path: Path | None, start: Position = BEGIN, encoding: str = "utf-8", limits: ReadLimits = SMALL
) -> FileSource:
    """A source of CSV."""
    return FileSource(path, limits, start, FileForm("csv", encoding))


def rows(path: Path, start: Position = BEGIN, encoding: str = "utf-8") -> list[RawRecord]:
    """All rows of a table from a position on."""
    with closing(opened(path, start, encoding)) as source:
        return [row for batch in source.batches() for row in batch.records]


def read_on(path: Path, position: Position, encoding: str, found: list[RawRecord]) -> Position:
    """Add the rows from a position on to those that were found; where the next run begins."""
    with closing(opened(path, position, encoding)) as source:
        for batch in source.batches():
            found += batch.records
            assert isinstance(batch.end, Position)
            position = batch.end
    return position


@contextmanager
def standard_input(data: bytes) -> Iterator[None]:
    """These bytes, and no more, on standard input."""
    kept = os.dup(0)
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    os.dup2(reader, 0)
    os.close(reader)
    try:
        yield
    finally:
        os.dup2(kept, 0)
        os.close(kept)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_resuming_at_any_position_gives_the_rest(tmp_path: Path, encoding: str, form: str) -> None:
    """The header is no row, every row knows it, and a run that begins at a row's end reads what follows."""
    path = written(tmp_path / "feed", encoding=encoding, form=form)
    whole = rows(path, encoding=encoding)
    assert [row.line for row in whole] == LINES
    assert {row.table for row in whole} == {
        TableLayout(("id", "body"), ",", "utf-16-le" if encoding == "utf-16" else encoding)
    }
    for row in whole:
        assert isinstance(row.end, Position)
        assert rows(path, row.end, encoding) == [later for later in whole if later.line > row.line]


def test_all_bytes_are_in_the_header_or_a_row(tmp_path: Path) -> None:
    """Except empty lines, so that what is unique can be written as it came."""
    path = written(tmp_path / "feed")
    with closing(opened(path)) as source:
        found = [row for batch in source.batches() for row in batch.records]
        assert source.header == "\ufeffid,body\r\n".encode()
        assert source.header + b"".join(row.data + row.line_end for row in found) == path.read_bytes().replace(
            b"\r\n\r\n", b"\r\n"
        )
        assert source.blank_lines == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_table_that_grows_is_read_on(tmp_path: Path, encoding: str) -> None:
    """Row by row as they are appended, beginning with less than a header."""
    path = tmp_path / "feed"
    data = written(path, TEXT, encoding).read_bytes()
    whole = rows(path, encoding=encoding)
    position, found = BEGIN, list[RawRecord]()
    ends = [row.start for row in whole] + [len(data)]
    for end in [0, *ends, len(data)]:
        path.write_bytes(data[:end])
        position = read_on(path, position, encoding, found)
    assert found == whole


@pytest.mark.parametrize("encoding", ["utf-16-be", "utf-32-le"])
def test_a_table_that_ends_within_a_code_unit_is_read_on(tmp_path: Path, encoding: str) -> None:
    """Its last row is told once, and the rest of the unit does not shift what follows."""
    path = tmp_path / "feed"
    data = written(path, "id,body\n1,one\n2,\u4e2d\u0a0a\n3,three\n", encoding).read_bytes()
    whole = rows(path, encoding=encoding)
    for cut in range(whole[0].start, whole[2].start):
        found, position = list[RawRecord](), BEGIN
        for end in (cut, cut, cut + 1, len(data), len(data)):
            path.write_bytes(data[:end])
            position = read_on(path, position, encoding, found)
        assert found[-1].data == whole[2].data
        assert len(found) <= len(whole) + 2
        assert position.offset == len(data)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-be"])
@pytest.mark.parametrize("form", ["gzip", "zstd"])
def test_a_packed_table_that_is_cut_is_read_on_once_it_is_whole(tmp_path: Path, form: str, encoding: str) -> None:
    """Wherever it is cut, the row at the cut is told once, also within the header, and read later."""
    whole = rows(written(tmp_path / "whole", encoding=encoding), encoding=encoding)
    packed = written(tmp_path / "feed", encoding=encoding, form=form).read_bytes()
    path = tmp_path / "feed"
    for cut in range(1, len(packed), 5):
        found, position = list[RawRecord](), BEGIN
        for end in (cut, cut, len(packed), len(packed)):
            path.write_bytes(packed[:end])
            position = read_on(path, position, encoding, found)
        broken = [row for row in found if row.fault is not None]
        assert [row.fault.reason for row in broken if row.fault] == [Reason.TRUNCATED_INPUT]
        assert [row for row in found if row.fault is None] == whole


@pytest.mark.parametrize("begins", ["\ufeff\n", "\n\r\n"])
def test_what_comes_before_a_header_that_breaks_off_is_not_a_row(tmp_path: Path, begins: str) -> None:
    """Neither a byte order mark nor an empty line; the break is told once."""
    packed = gzip.compress((begins + "id,body\n").encode("utf-16-le"), compresslevel=0)
    path, position, found = tmp_path / "feed", BEGIN, list[RawRecord]()
    for end in (-13, -13, len(packed)):
        path.write_bytes(packed[:end])
        position = read_on(path, position, "utf-16-le", found)
    assert [(row.start, row.fault and row.fault.reason) for row in found] == [(0, Reason.TRUNCATED_INPUT)]


@pytest.mark.parametrize("header", ["id,body", '"id","bo'])
def test_a_header_that_breaks_off_is_kept(tmp_path: Path, header: str) -> None:
    """Its dead letter has what could be read, whether or not a quote is open."""
    packed = gzip.compress(f"\n{header}dy\n".encode(), compresslevel=0)
    path, found = tmp_path / "feed", list[RawRecord]()
    path.write_bytes(packed[: -8 - len("dy\n")])
    read_on(path, BEGIN, "utf-8", found)
    assert [(row.data, row.fault and row.fault.reason) for row in found] == [(header.encode(), Reason.TRUNCATED_INPUT)]


def test_a_byte_that_is_left_over_is_an_invalid_row(tmp_path: Path) -> None:
    """A run that resumes behind it has nothing to do, and one whose file became shorter says so."""
    path = written(tmp_path / "feed", "id,body\n1,one\n", "utf-16-le")
    path.write_bytes(path.read_bytes() + b"\n")
    *_, last = rows(path, encoding="utf-16-le")
    assert (last.line, last.data) == (3, b"\n")
    assert isinstance(last.end, Position)
    assert rows(path, last.end, "utf-16-le") == []
    with closing(opened(path, Position(9, 99), "utf-16-le")) as source:
        assert "shorter than the 99 bytes" in delivered(source)[1]


def test_the_name_says_the_format(tmp_path: Path) -> None:
    """Unless the setting does; a compression may stand behind it."""
    form = FileForm()
    names = [
        "a.csv",
        "a.CSV.gz",
        "a.csv.zst",
        "a.tsv",
        "a.tsv.gz",
        "a.jsonl",
        "a.csv.jsonl",
        "csv",
        "a.gz",
        "a.csv.bz2",
    ]
    assert [form.separator(tmp_path / name) for name in names] == [",", ",", ",", "\t", "\t", *[None] * 5]
    assert form.separator(None) is None
    assert FileForm("tsv").separator(Path("a.csv")) == "\t"
    assert FileForm("jsonl").separator(Path("a.csv")) is None
    assert FileForm("csv").separator(None) == ","


def test_json_lines_have_no_other_encoding() -> None:
    """It would be ignored, and every line would be a dead letter."""
    assert FileForm(encoding="UTF8").separator(None) is None
    with pytest.raises(ConfigError, match="iconv -f gb18030 -t UTF-8 FEED"):
        FileForm(encoding="gb18030").separator(Path("a.jsonl"))


@pytest.mark.parametrize(
    ("text", "encoding", "why"),
    [
        ("id,text\n", "utf-8", "has no column 'body'"),
        ("id,body\n", "utf-16-le", "has no column"),
        ("id,body\n", "utf-16", "has no byte order mark: set source.encoding=utf-16-le or utf-16-be"),
        ('id,"body\n' + "a,b\n" * 100, "utf-8", "has a quote that is not closed"),
        ('id,"body', "utf-8", "has a quote that is not closed"),
        ("id,body" + "," * 100, "utf-8", "does not end within record_bytes_max = 100 bytes"),
    ],
)
def test_a_wrong_header_is_refused(tmp_path: Path, text: str, encoding: str, why: str) -> None:
    """A file when it is opened, before a run creates anything; a stream when it is read."""
    data = text.encode("utf-8" if encoding != "utf-16" else "utf-16-le")
    (tmp_path / "feed").write_bytes(data)
    with pytest.raises(SourceError, match=r"the header of .*feed ") as caught:
        opened(tmp_path / "feed", encoding=encoding)
    assert why in str(caught.value)
    with standard_input(data), closing(opened(None, encoding=encoding)) as source:
        assert why in delivered(source)[1]


@pytest.mark.parametrize("chunk", [b"x" * 50, b"\n" * 50])
def test_a_header_without_an_end_takes_no_memory(chunk: bytes) -> None:
    """Nor do empty lines before one."""
    with pytest.raises(ValueError, match="does not end within record_bytes_max"):
        open_table(itertools.repeat(chunk), SMALL, FileForm("csv"), ",")


@pytest.mark.parametrize("text", ["", "\ufeff", "\n\n", "id,body", "id,body\n"])
def test_a_table_without_rows_is_none_to_complain_about(tmp_path: Path, text: str) -> None:
    """Nothing is in it."""
    assert rows(written(tmp_path / "feed", text)) == []


def delivered(source: FileSource) -> tuple[list[RawBatch], str]:
    """The batches before the input is refused, and why it is."""
    batches = list[RawBatch]()
    with pytest.raises(SourceError) as caught:
        batches.extend(source.batches())
    return batches, str(caught.value)


@pytest.mark.parametrize("rest", ["\n7,seven\n" * 3, "\n7,seven" * 200])
def test_an_open_quote_ends_the_run(tmp_path: Path, rest: str) -> None:
    """What comes before it is judged. A file is read on once the quote is closed; a stream has a dead letter of it."""
    text = 'id,body\n1,one\n2,"two' + rest
    assert (len(text) > 100 * OPEN_QUOTE_FACTOR) == (len(rest) > 1_000)
    path = written(tmp_path / "feed", text)
    with closing(opened(path)) as source:
        batches, why = delivered(source)
    assert "the row that begins in line 3 has a quote that is not closed" in why
    assert [row.data for batch in batches for row in batch.records] == [b"1,one"]
    assert batches[-1].end == Position(2, 14)
    written(path, text.replace('"two', '"two"'))
    assert [row.line for row in rows(path, Position(2, 14))][:2] == [3, 4]
    with standard_input(text.encode()), closing(opened(None)) as source:
        batches, _ = delivered(source)
    one, two = (row for batch in batches for row in batch.records)
    assert (one.data, one.fault) == (b"1,one", None)
    assert (two.line, two.size_bytes) == (3, len(text) - 14)
    assert two.fault is not None
    assert two.fault.reason == Reason.TRUNCATED_INPUT


def test_a_quote_that_is_open_for_too_long_is_not_waited_for(tmp_path: Path) -> None:
    """It would take a file of any size, even if a quote follows at last."""
    path = written(tmp_path / "feed", 'id,body\n1,one\n2,"two' + "\n7,seven" * 50_000 + '"\n')
    with closing(opened(path)) as source:
        batches, why = delivered(source)
    assert "the row that begins in line 3 has a quote that is not closed" in why
    assert [row.data for batch in batches for row in batch.records] == [b"1,one"]


def test_chunks_are_cut_between_code_units() -> None:
    """Except at the end of input that was cut within one."""
    assert list(in_units(iter([b"a", b"bc", b"", b"defg", b"h", b"i"]), 2)) == [b"ab", b"cdef", b"gh", b"i"]
    assert list(in_units(iter([b"a", b"bc"]), 1)) == [b"a", b"bc"]
    data = TEXT.encode("utf-16-le")
    pieces = (data[at : at + 3] for at in range(0, len(data), 3))
    chunks = list(open_table(pieces, SMALL, FileForm("csv", "utf-16"), ",").chunks)
    assert (b"".join(chunks), {len(chunk) % 2 for chunk in chunks}) == (data, {0})


def test_a_row_that_is_too_long_does_not_end_the_run(tmp_path: Path) -> None:
    """As long as its quote is closed within the limit on open quotes."""
    long = '2,"' + "two\n" * (100 * OPEN_QUOTE_FACTOR // 4 - 1) + '"\n'
    found = rows(written(tmp_path / "feed", f"id,body\n1,one\n{long}3,three\n"))
    assert [row.fault.reason if row.fault else None for row in found] == [None, Reason.RECORD_TOO_LONG, None]


def test_a_table_that_was_cut_short_is_not_resumed(tmp_path: Path) -> None:
    """As other files."""
    path = written(tmp_path / "feed", "id,body\n1,one\n")
    with closing(opened(path, Position(3, 20))) as source:
        assert "shorter than the 20 bytes" in delivered(source)[1]
