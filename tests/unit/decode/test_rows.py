"""Rows and headers of tables: what is wrong with one, and what to do."""

import json

import pytest

from consumer.decode.article import ArticleDecoder, FieldMap, FieldPaths
from consumer.decode.json_value import parse_json
from consumer.decode.rows import json_value, parse_row
from consumer.decode.table_header import COLUMNS_MAX, read_header
from consumer.model.article import Reason
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits
from consumer.model.record import RawRecord, TableLayout

TABLE = TableLayout(("id", "", "body"), ",", "utf-8")


def row(data: bytes, table: TableLayout | None = TABLE, fault: BadRecord | None = None) -> RawRecord:
    """A row of a table."""
    return RawRecord(2, 10, data, len(data), None, fault, table=table)


def decoded(data: bytes) -> tuple[str, str | None]:
    """The id and the body of a row."""
    article = ArticleDecoder(FieldMap(), DecodeLimits(), "text", parse_json).record(row(data))
    return article.id, article.body


def test_cells_have_the_names_of_their_columns() -> None:
    """Columns without a name are ignored, as unknown members of JSON are."""
    assert parse_row(b'1,x,"say ""hi""\r\nthere"', TABLE) == {"id": "1", "body": 'say "hi"\r\nthere'}
    assert decoded(b"1,x,") == ("1", "")


@pytest.mark.parametrize(
    ("data", "reason", "detail"),
    [
        (b"1,x", Reason.SCHEMA_MISMATCH, "the row has 2 fields, and the header has 3"),
        (b"1,x,y,z", Reason.SCHEMA_MISMATCH, "the row has more than 3 fields, and the header has 3"),
        (b'1,x,"y', Reason.SCHEMA_MISMATCH, "the quote at character 5 is not closed"),
        (b'1,"x"y,z', Reason.SCHEMA_MISMATCH, "text follows the closing quote at character 5"),
        (b"1,x\ry,z", Reason.SCHEMA_MISMATCH, "a carriage return or a line end outside quotes"),
        (b"1,x,\xff", Reason.INVALID_UTF8, "the record is not UTF-8: invalid start byte at byte 4"),
        (b",x,y", Reason.EMPTY_ID, "id is an empty string"),
        (b"1,x,y\0", Reason.NUL_CHARACTER, "body contains a NUL"),
    ],
)
def test_a_bad_row_is_a_bad_record(data: bytes, reason: Reason, detail: str) -> None:
    """With a sentence that says where to look."""
    with pytest.raises(BadRecord) as caught:
        decoded(data)
    assert caught.value.reason == reason
    assert detail in caught.value.detail


def test_undecodable_bytes_are_found_in_any_encoding() -> None:
    """Their position is that in the row."""
    with pytest.raises(BadRecord, match=r"the record is not GB18030: .* at byte 2"):
        parse_row("a,中".encode("gb18030")[:-1], TableLayout(("id", "body"), ",", "gb18030"))


def test_rows_become_json_for_topics() -> None:
    """And what is not a valid row stays as it is, to become a dead letter there."""
    assert json.loads(json_value(row("1,x,中".encode()))) == {"id": "1", "body": "中"}
    assert json_value(row(b"1,x")) == b"1,x"
    assert json_value(row(b"{}", None)) == b"{}"
    assert json_value(row(b"1,x,y", fault=BadRecord("record_too_long", "too long"))) == b"1,x,y"


@pytest.mark.parametrize(
    ("header", "advice"),
    [
        (b"id,text,lang", "has no column 'body'; found: 'text', 'id', 'lang'. Add --set source.fields.body=text"),
        (
            b"guid,content",
            "has no column 'id' or 'body'; found: 'guid', 'content'. Add --set source.fields.id=guid --set",
        ),
        (b"a,b,c,d,e,f,id", "found: 'a', 'b', 'c', 'd', 'e', …. Add --set source.fields.body=NAME"),
        (
            b"headline,text",
            "--set source.fields.title=headline. If nothing identifies an article, add a number to each",
        ),
        (b"guid,title,full_text", "Add --set source.fields.id=guid --set source.fields.body=full_text"),
        (b"id,body,id", "names the column 'id' more than once"),
        (b"id;body", "separated by semicolons: convert it, as with mlr --icsv --ifs ';' --ojsonl cat FEED"),
        (b"id\tbody", "separated by tabs: set source.format=tsv"),
        (b'{"id": "a", "body": "b"}', "is JSON: set source.format=jsonl"),
        ("id,标题,body".encode("gbk"), "cannot be decoded: set source.encoding, for example to gb18030"),
        ("id,café,body".encode("latin-1"), "cannot be decoded: set source.encoding, for example to windows-1252"),
        ("\ufeffid,body".encode("utf-16-le"), "set source.encoding, for example to UTF-16"),
        ("\ufeffid,body".encode("utf-32-le"), "set source.encoding, for example to UTF-32"),
        ("id,body".encode("utf-16-be"), "has NUL characters: set source.encoding"),
        (b"id,body\r1,x\r2,y", "ends with a carriage return alone"),
        (b'id,"body"x', "cannot be read: text follows the closing quote at character 9"),
        (b"id,body" + b"," * COLUMNS_MAX, "names more than 10,000 columns"),
    ],
)
def test_a_wrong_header_says_what_to_do(header: bytes, advice: str) -> None:
    """Before anything is judged."""
    with pytest.raises(ValueError, match=r"^(has|names|is|cannot|ends) ") as caught:
        read_header(row(header, None), ",", "utf-8", FieldPaths())
    assert advice in str(caught.value)


def test_names_are_taken_without_the_white_space_around_them() -> None:
    """Columns without a name may repeat: spreadsheets and data frames write them."""
    table = read_header(row(b"\xef\xbb\xbf, id , body ,,", None), ",", "utf-8", FieldPaths())
    assert table == TableLayout(("", "id", "body", "", ""), ",", "utf-8")
    assert read_header(row("标识\tbody".encode("gbk"), None), "\t", "gbk", FieldPaths(id="标识")).columns[0] == "标识"
