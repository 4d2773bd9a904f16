"""Decoding: every kind of bad record gets the reason that is its own, and nothing else is ever raised."""

import json
import math
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.decode.article import FieldMap, decode
from consumer.decode.json_value import parse_json
from consumer.decode.published_at import Instant
from consumer.model.article import Article, BodyForm, Reason, TimeFault
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits

LIMITS = DecodeLimits()


def decoded(data: bytes | str, fields: FieldMap | None = None, limits: DecodeLimits = LIMITS) -> Article:
    """Decode as a plain feed is decoded."""
    return decode(data.encode() if isinstance(data, str) else data, fields or FieldMap(), limits, "text")


def reason(data: bytes | str, fields: FieldMap | None = None, limits: DecodeLimits = LIMITS) -> str:
    """Why a record is refused."""
    with pytest.raises(BadRecord) as caught:
        decoded(data, fields, limits)
    assert caught.value.detail
    assert "\n" not in caught.value.detail
    return caught.value.reason


BAD = {
    "half a character": (b'{"id": "a", "body": "\xe4\xbd"}', Reason.INVALID_UTF8),
    "Latin-1": (b'{"id": "a", "body": "caf\xe9"}', Reason.INVALID_UTF8),
    "a surrogate in UTF-8": (b'{"id": "a", "body": "\xed\xa0\x80"}', Reason.INVALID_UTF8),
    "bad UTF-8 outside a string": (b'{"id": "a", \xff "body": ""}', Reason.INVALID_UTF8),
    "bad UTF-8 after an escape": (b'{"id": "a", "body": "\\\xff"}', Reason.INVALID_UTF8),
    "UTF-16": ('{"id": "a"}'.encode("utf-16"), Reason.INVALID_UTF8),
    "no JSON": (b"id=a", Reason.INVALID_JSON),
    "nothing": (b"", Reason.INVALID_JSON),
    "only a byte order mark": (b"\xef\xbb\xbf", Reason.INVALID_JSON),
    "cut short": (b'{"id": "a", "body": "x', Reason.INVALID_JSON),
    "two in one line": (b'{"id": "a", "body": ""}{"id": "b", "body": ""}', Reason.INVALID_JSON),
    "NaN": (b'{"id": "a", "body": "", "published_at": NaN}', Reason.INVALID_JSON),
    "infinite": (b'{"id": "a", "body": "", "published_at": -Infinity}', Reason.INVALID_JSON),
    "a bare control character": (b'{"id": "a", "body": "a\x01b"}', Reason.INVALID_JSON),
    "a bare NUL": (b'{"id": "a", "body": "a\x00b"}', Reason.INVALID_JSON),
    "Python's repr": (b"{'id': 'a', 'body': ''}", Reason.INVALID_JSON),
    "a high half last": (b'{"id": "a", "body": "\\ud800"}', Reason.LONE_SURROGATE),
    "a high half, then text": (b'{"id": "a", "body": "\\ud800 and much more text"}', Reason.LONE_SURROGATE),
    "a low half": (b'{"id": "a", "body": "x\\udc00y"}', Reason.LONE_SURROGATE),
    "two high halves": (b'{"id": "a", "body": "\\ud83d\\ud83d\\ude00"}', Reason.LONE_SURROGATE),
    "a half in a name": (b'{"id": "a", "body": "", "\\udfff": 1}', Reason.LONE_SURROGATE),
    "a half that is spelt out": (b'{"id": "a", "body": "\\\\ud800" x}', Reason.INVALID_JSON),
    "1e400": (b'{"id": "a", "body": "", "published_at": 1e400}', Reason.NUMBER_OUT_OF_RANGE),
    "1e400 where nobody looks": (b'{"id": "a", "body": "", "x": [-1e400]}', Reason.NUMBER_OUT_OF_RANGE),
    "5000 digits": (b'{"id": ' + b"1" * 5000 + b', "body": ""}', Reason.NUMBER_OUT_OF_RANGE),
    "100,000 lists": (b"[" * 100_000, Reason.NESTED_TOO_DEEP),
    "100,000 objects": (b'{"a":' * 100_000, Reason.NESTED_TOO_DEEP),
    "100,000 lists behind half a pair": (b'{"id": "\\ud800", "x": ' + b"[" * 100_000, Reason.NESTED_TOO_DEEP),
    "33 levels": (b'{"id": "a", "body": "", "x": ' + b"[" * 32 + b"]" * 32 + b"}", Reason.NESTED_TOO_DEEP),
    "33 levels that are no object": (b"[" * 33 + b"]" * 33, Reason.NESTED_TOO_DEEP),
    "a list": (b'[{"id": "a", "body": ""}]', Reason.NOT_AN_OBJECT),
    "a string": (b'"a"', Reason.NOT_AN_OBJECT),
    "null": (b"null", Reason.NOT_AN_OBJECT),
    "no id": (b'{"body": ""}', Reason.MISSING_ID),
    "id null": (b'{"id": null, "body": ""}', Reason.MISSING_ID),
    "id true": (b'{"id": true, "body": ""}', Reason.ID_WRONG_TYPE),
    "id 1.0": (b'{"id": 1.0, "body": ""}', Reason.ID_WRONG_TYPE),
    "id a list": (b'{"id": ["a"], "body": ""}', Reason.ID_WRONG_TYPE),
    "id empty": (b'{"id": "", "body": ""}', Reason.EMPTY_ID),
    "id of 513 bytes": (json.dumps({"id": "a" * 513, "body": ""}).encode(), Reason.ID_TOO_LONG),
    "id of 171 characters": (json.dumps({"id": "字" * 171, "body": ""}).encode(), Reason.ID_TOO_LONG),
    "id of 513 digits": (b'{"id": ' + b"9" * 513 + b', "body": ""}', Reason.ID_TOO_LONG),
    "id of 4300 digits": (b'{"id": ' + b"9" * 4300 + b', "body": ""}', Reason.ID_TOO_LONG),
    "NUL in the id": (b'{"id": "a\\u0000", "body": ""}', Reason.NUL_CHARACTER),
    "no body": (b'{"id": "a"}', Reason.MISSING_BODY),
    "body a number": (b'{"id": "a", "body": 1}', Reason.BODY_WRONG_TYPE),
    "body an object": (b'{"id": "a", "body": {}}', Reason.BODY_WRONG_TYPE),
    "body too long": (json.dumps({"id": "a", "body": "x" * 1_000_001}).encode(), Reason.BODY_TOO_LONG),
    "a body that folding makes too long": (
        json.dumps({"id": "a", "body": "\ufdfa" * 556}).encode(),
        Reason.FOLDED_TOO_LONG,
    ),
    "too many values": (b'{"id": "a", "body": "", "x": [' + b"1," * 500_000 + b"1]}", Reason.TOO_MANY_VALUES),
    "NUL in the body": (b'{"id": "a", "body": "x\\u0000y"}', Reason.NUL_CHARACTER),
    "title a number": (b'{"id": "a", "body": "", "title": 7}', Reason.FIELD_WRONG_TYPE),
    "lang a list": (b'{"id": "a", "body": "", "lang": ["en"]}', Reason.FIELD_WRONG_TYPE),
    "NUL in the title": (b'{"id": "a", "body": "", "title": "\\u0000"}', Reason.NUL_CHARACTER),
    "title too long": (json.dumps({"id": "a", "body": "", "title": "x" * 4097}).encode(), Reason.FIELD_TOO_LONG),
    "source too long": (json.dumps({"id": "a", "body": "", "source": "x" * 513}).encode(), Reason.FIELD_TOO_LONG),
    "url too long": (json.dumps({"id": "a", "body": "", "url": "x" * 8193}).encode(), Reason.FIELD_TOO_LONG),
    "lang too long": (json.dumps({"id": "a", "body": "", "lang": "x" * 65}).encode(), Reason.FIELD_TOO_LONG),
}


@pytest.mark.parametrize("name", BAD)
def test_each_kind_of_bad_record_has_its_own_reason(name: str) -> None:
    """A bad record is refused for what is wrong with it, and not for something more general."""
    data, expected = BAD[name]
    assert reason(data) == expected


def test_every_reason_that_decoding_can_give_is_shown_here() -> None:
    """The list above leaves out what reading finds, what needs a huge record, and what HTML, keys or schemas have."""
    shown = {expected for _, expected in BAD.values()}
    elsewhere = {Reason.RECORD_TOO_LONG, Reason.TRUNCATED_INPUT, Reason.TRAILING_GARBAGE, Reason.MARKUP_TOO_COMPLEX}
    of_keys = {Reason.MISSING_KEY, Reason.INVALID_KEY, Reason.KEY_CONTRADICTS_ID, Reason.NULL_VALUE}
    of_schemas = {Reason.NO_SCHEMA_ID, Reason.UNKNOWN_SCHEMA, Reason.UNUSABLE_SCHEMA, Reason.SCHEMA_MISMATCH}
    assert set(Reason) - shown == elsewhere | of_keys | of_schemas | {Reason.UNREADABLE_MESSAGE}


def test_markup_too_complex_is_a_bad_record() -> None:
    """What the parser would lose or stall over is refused, in text as it is in html only."""
    data = json.dumps({"id": "a", "body": "<div>" * 3_000}).encode()
    with pytest.raises(BadRecord) as caught:
        decode(data, FieldMap(), LIMITS, "html/2")
    assert caught.value.reason == Reason.MARKUP_TOO_COMPLEX
    assert decode(data, FieldMap(), LIMITS, "text").body == "<div>" * 3_000


def test_a_record_over_the_limit_is_refused_before_it_is_parsed() -> None:
    """The size of a record is checked first, whatever is in it."""
    limits = DecodeLimits(record_bytes_max=10)
    assert reason(b"x" * 11, limits=limits) == Reason.RECORD_TOO_LONG
    assert reason(b"x" * 10, limits=limits) == Reason.INVALID_JSON


def test_limits_themselves_are_allowed() -> None:
    """A record at each limit is an article."""
    record = {
        "id": "a" * 512,
        "body": "x" * 1_000_000,
        "title": "t" * 4096,
        "source": "s" * 512,
        "url": "u" * 8192,
        "lang": "l" * 64,
        "published_at": 9_999_999_999.5,
    }
    deep = {"a": json.loads("[" * 31 + "]" * 31)}
    article = decoded(json.dumps(record | deep))
    assert {name: getattr(article, name) for name in record} == record


@pytest.mark.parametrize(
    ("body", "folded"),
    [
        ("\ufdfa" * 69_444, 1_249_992),
        ("\ufdfa" * 1_000 + "中" * 4_000, 22_000),
        ("\ufdfa" * 555, 9_990),
        ("…" * 416_666, 1_249_998),
        ("㌖" * 1_666, 9_996),
        ("中" * 1_000_000, 1_000_000),
        ("a\u0301" * 500_000, 1_000_000),
    ],
)
def test_the_length_after_folding_is_limited(body: str, folded: int) -> None:
    """By the limit of all, and by how much the text grows; what is refused is refused for its length alone."""
    data = json.dumps({"id": "a", "body": body}, ensure_ascii=False).encode()
    grows = folded > 10_000 and folded > 4 * len(body)
    assert (article_or_reason(data, "text") == Reason.FOLDED_TOO_LONG) == grows
    free = DecodeLimits(fold_growth_max=18)
    assert decoded(data, limits=free).body == body
    assert decoded(data, limits=DecodeLimits(fold_growth_max=18, folded_chars_max=folded)).body == body
    assert reason(data, limits=DecodeLimits(fold_growth_max=18, folded_chars_max=folded - 1)) == Reason.FOLDED_TOO_LONG


def test_the_text_of_markup_is_what_is_folded() -> None:
    """Markup does not count, and references are characters."""
    short = b'{"id": "a", "body": "' + b"<p>&#64058;</p>" * 555 + b'"}'
    assert isinstance(article_or_reason(short, "html/2"), Article)
    long = b'{"id": "a", "body": "' + b"&#xFDFA;" * 5_550 + b'"}'
    assert isinstance(article_or_reason(long, "text"), Article)
    assert article_or_reason(long, "html/2") == Reason.FOLDED_TOO_LONG


@pytest.mark.parametrize(
    "inner", [b"[%s]" % b",".join([b"[]"] * 9), b"{%s}" % b",".join([b'"":{}'] * 9), b"[%s]" % b",".join([b"0"] * 9)]
)
def test_values_are_counted_and_not_what_stands_in_strings(inner: bytes) -> None:
    """Objects, lists, members and items are; commas, brackets and quotes of a text are not."""
    text = rb"a, [b] {c} \" \\" * 99
    data = b'{"id": "a", "body": "%s", "x": %s}' % (text, inner)
    most = next(number for number in range(1, 100) if not _refused(data, number))
    assert 11 <= most <= 30
    assert parse_json(data, most) == json.loads(data)
    # Unlimited, and without any string in it, it is what it was.
    assert _refused(data.replace(text, b""), most - 1)
    assert not _refused(data.replace(text, b""), most)


def _refused(data: bytes, values_max: int) -> bool:
    try:
        parse_json(data, values_max)
    except BadRecord:
        return True
    return False


def test_what_is_not_said_is_empty() -> None:
    """Optional fields that are missing or null read as empty."""
    nulls = '{"id": "a", "body": "x", "title": null, "source": null, "url": null, "lang": null, "published_at": null}'
    assert decoded('{"id": "a", "body": "x"}') == decoded(nulls) == Article(id="a", body="x")


def test_null_retracts_and_an_empty_body_does_not() -> None:
    """Only a body of null is a retraction; an empty one is an article without words."""
    assert decoded('{"id": "a", "body": null}').body is None
    assert decoded('{"id": "a", "body": ""}').body == ""


@pytest.mark.parametrize(
    ("given_id", "expected"), [("17", "17"), ("-1", "-1"), ('"017"', "017"), ("9" * 512, "9" * 512)]
)
def test_an_integer_id_is_its_decimal_text(given_id: str, expected: str) -> None:
    """Feeds number their articles; the number and its text are one id."""
    assert decoded(f'{{"id": {given_id}, "body": ""}}').id == expected


def test_a_byte_order_mark_is_passed_over() -> None:
    """Files from some editors begin with one."""
    assert decoded(b'\xef\xbb\xbf{"id": "a", "body": "x"}').id == "a"


def test_a_surrogate_pair_is_one_character() -> None:
    """Two halves that belong together are the character they stand for."""
    assert decoded(rb'{"id": "a", "body": "\ud83d\ude00"}').body == "😀"


def test_a_published_at_that_cannot_be_read_costs_the_field_only() -> None:
    """The article is judged without it, and says why; one that is missing or null is no fault."""
    assert decoded('{"id": "a", "body": "x", "published_at": "yesterday"}') == Article(
        id="a", body="x", time_fault=TimeFault.NOT_A_TIME
    )
    assert decoded('{"id": "a", "body": "x", "published_at": null}') == Article(id="a", body="x")
    assert decoded('{"id": "a", "body": "x", "published_at": 1700000000}') == Article(
        id="a", body="x", published_at=1_700_000_000
    )


def test_a_time_of_a_schema_is_no_text() -> None:
    """A field that has one is told from numbers and null."""
    with pytest.raises(BadRecord, match="title is a time, not a string"):
        decode(b"raw", FieldMap(), LIMITS, "text", None, lambda _: {"id": "a", "body": "", "title": Instant(1)})


def test_fields_are_found_at_their_paths() -> None:
    """A dotted path goes into nested objects, also below names that have dots."""
    record = {"meta": {"key": "a", "x.y": {"z": "t"}}, "content": {"text": {"plain": "x"}}}
    fields = FieldMap(id="meta.key", body="content.text.plain", title="meta.x.y.z")
    assert decoded(json.dumps(record), fields) == Article(id="a", body="x", title="t")


def test_a_name_with_dots_goes_before_the_path() -> None:
    """The longest name that is there is taken, without a way back."""
    record: dict[str, Any] = {"a.b": "literal", "a": {"b": "nested", "c": "deep"}, "id": "1", "body": ""}
    assert decoded(json.dumps(record), FieldMap(title="a.b")).title == "literal"
    assert decoded(json.dumps(record), FieldMap(title="a.c")).title == "deep"
    assert decoded(json.dumps(record), FieldMap(title="a.b.c")).title == ""


def test_a_path_through_something_else_finds_nothing() -> None:
    """What stands below a string or null is absent, so a missing body is told as missing and does not retract."""
    assert reason('{"id": "a", "content": null}', FieldMap(body="content.text")) == Reason.MISSING_BODY
    assert reason('{"meta": "a", "body": ""}', FieldMap(id="meta.id")) == Reason.MISSING_ID


def test_values_that_json_does_not_have_are_told_by_name() -> None:
    """Other formats have bytes; the mapping and its checks are the same whatever parsed the record."""

    def parse(data: bytes) -> object:
        return {"id": "a", "body": data, "x": 1.5}

    with pytest.raises(BadRecord, match="body is bytes, not a string or null"):
        decode(b"raw", FieldMap(), LIMITS, "text", None, parse)
    with pytest.raises(BadRecord, match="record_too_long"):
        decode(b"raw", FieldMap(), DecodeLimits(record_bytes_max=2), "text", None, parse)
    with pytest.raises(BadRecord, match="x is a number, not a string"):
        decode(b"raw", FieldMap(id="x"), LIMITS, "text", None, parse)


def test_html_is_read_as_text() -> None:
    """With the html format the body is the text of the markup; its limit is of the markup."""
    article = decode(b'{"id": "a", "body": "<p>one<p>two &amp; <b>three</b>"}', FieldMap(), LIMITS, "html/2")
    assert article.body == "one\ntwo & three"
    with pytest.raises(BadRecord) as caught:
        decode(b'{"id": "a", "body": "<p>x"}', FieldMap(), DecodeLimits(body_chars_max=3), "html/2")
    assert caught.value.reason == Reason.BODY_TOO_LONG


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
RECORDS = st.fixed_dictionaries({}, optional=dict.fromkeys((field.name for field in fields(FieldMap)), JSON_VALUES))


def article_or_reason(data: bytes, body_form: BodyForm) -> Article | Reason:
    """What decoding comes to; an error of another kind, or a reason not in the list, goes through."""
    try:
        return decode(data, FieldMap(title="title.x"), LIMITS, body_form)
    except BadRecord as error:
        return Reason(error.reason)


@given(st.binary(max_size=200) | st.text(alphabet='{}[]":,\\ud8a0 1e9.', max_size=60).map(str.encode), st.booleans())
def test_arbitrary_bytes_raise_nothing_but_bad_record(data: bytes, html: bool) -> None:  # noqa: FBT001
    """Whatever the bytes are, decoding gives an article or refuses with a known reason."""
    outcome = article_or_reason(data, "html/2" if html else "text")
    assert isinstance(outcome, Article | Reason)


@given(JSON_VALUES | RECORDS, st.booleans(), st.booleans())
def test_arbitrary_json_raises_nothing_but_bad_record(value: object, ascii_only: bool, html: bool) -> None:  # noqa: FBT001
    """Whatever the JSON says, decoding gives an article that holds to its types, or refuses."""
    data = json.dumps(value, ensure_ascii=ascii_only).encode(errors="surrogatepass")
    outcome = article_or_reason(data, "html/2" if html else "text")
    if isinstance(outcome, Article):
        assert outcome.id
        assert outcome.published_at is None or math.isfinite(outcome.published_at)
        (outcome.id + outcome.title + (outcome.body or "")).encode()
