"""Avro's binary encoding: what fastavro reads is read the same, and nothing that a payload can be does any harm."""

import io
import struct
from contextlib import suppress
from typing import Any

import fastavro
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.decode.schemas.avro import avro_reader
from consumer.decode.schemas.budgets import ValueBudget
from consumer.decode.schemas.registry import StoredSchema, UnusableSchema
from consumer.model.article import Reason
from consumer.model.errors import BadRecord
from tests.examples import examples

NODE = {
    "type": "record",
    "name": "Node",
    "namespace": "tree",
    "fields": [{"name": "next", "type": ["null", "Node"]}, {"name": "x", "type": "int"}],
}
EVERYTHING = {
    "type": "record",
    "name": "Everything",
    "namespace": "a.b",
    "doc": "one of each",
    "fields": [
        {"name": "nothing", "type": "null"},
        {"name": "yes", "type": "boolean", "default": False},
        {"name": "small", "type": "int"},
        {"name": "large", "type": {"type": "long"}},
        {"name": "single", "type": "float"},
        {"name": "double", "type": "double"},
        {"name": "raw", "type": "bytes"},
        {"name": "text", "type": {"type": "string", "avro.java.string": "String"}},
        {"name": "four", "type": {"type": "fixed", "name": "Four", "size": 4}},
        {"name": "again", "type": "Four"},
        {"name": "suit", "type": {"type": "enum", "name": "c.Suit", "symbols": ["HEARTS", "SPADES"]}},
        {"name": "other", "type": ["null", "c.Suit", "string"]},
        {"name": "names", "type": {"type": "map", "values": ["null", "a.b.Four", "long"]}},
        {"name": "tree", "type": ["null", NODE]},
        {"name": "node", "type": ["null", "tree.Node"]},
    ],
}
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
INTS = st.integers(-(1 << 31), (1 << 31) - 1)
NODES: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.fixed_dictionaries({"next": st.none(), "x": INTS}),
    lambda inner: st.fixed_dictionaries({"next": inner, "x": INTS}),
    max_leaves=5,
)
VALUES = st.fixed_dictionaries(
    {
        "nothing": st.none(),
        "yes": st.booleans(),
        "small": INTS,
        "large": LONGS,
        "single": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "raw": st.binary(max_size=200),
        "text": st.text(max_size=200),
        "four": st.binary(min_size=4, max_size=4),
        "again": st.binary(min_size=4, max_size=4),
        "suit": st.sampled_from(["HEARTS", "SPADES"]),
        "other": st.none() | st.just("SPADES"),
        "names": st.dictionaries(
            st.text(max_size=5), st.none() | st.binary(min_size=4, max_size=4) | LONGS, max_size=5
        ),
        "tree": st.none() | NODES,
        "node": st.none() | NODES,
    }
)


def stored(schema: object, **references: object) -> StoredSchema:
    """A schema as the registry has it."""
    texts = {name: msgspec.json.encode(schema).decode() for name, schema in references.items()}
    return StoredSchema("AVRO", msgspec.json.encode(schema).decode(), texts)


def read(schema: object, payload: bytes, depth_max: int = 32) -> Any:  # noqa: ANN401  # plain values
    """What a payload comes to."""
    return avro_reader(stored(schema))(payload, ValueBudget(len(payload), depth_max))


def reason(schema: object, payload: bytes, depth_max: int = 32) -> str:
    """Why a payload is refused."""
    with pytest.raises(BadRecord) as caught:
        read(schema, payload, depth_max)
    return caught.value.reason


def number(value: int) -> bytes:
    """A number as Avro writes it."""
    value = (value << 1) ^ (value >> 63)
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def of_one_field(kind: object) -> dict[str, object]:
    """A record with a field ``x``."""
    return {"type": "record", "name": "R", "fields": [{"name": "x", "type": kind}]}


READ_EVERYTHING = avro_reader(stored(EVERYTHING))
PARSED = fastavro.parse_schema(EVERYTHING)


@examples(40)
@given(VALUES)
def test_what_fastavro_writes_is_read(value: dict[str, Any]) -> None:
    """Every type, names in namespaces, types within themselves; and a payload that is cut anywhere is refused."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, PARSED, value)
    payload = out.getvalue()
    assert READ_EVERYTHING(payload, ValueBudget(len(payload), 32)) == fastavro.schemaless_reader(
        io.BytesIO(payload), PARSED
    )
    for end in range(0, len(payload), 7):
        with pytest.raises(BadRecord):
            READ_EVERYTHING(payload[:end], ValueBudget(end, 32))
    with pytest.raises(BadRecord, match="1 bytes are left over"):
        READ_EVERYTHING(payload + b"\0", ValueBudget(len(payload), 32))


@given(st.binary(max_size=300))
def test_arbitrary_bytes_raise_nothing_but_bad_record(payload: bytes) -> None:
    """Whatever the payload is, it is read or refused."""
    with suppress(BadRecord):
        assert isinstance(READ_EVERYTHING(payload, ValueBudget(len(payload), 32)), dict)


@pytest.mark.parametrize(
    ("kind", "payload", "expected"),
    [
        ("string", number(5) + b"four", Reason.SCHEMA_MISMATCH),
        ("string", number(-1), Reason.SCHEMA_MISMATCH),
        ("string", number(1 << 50), Reason.SCHEMA_MISMATCH),
        ("string", number(2) + b"\xff\xfe", Reason.INVALID_UTF8),
        ("boolean", b"\2", Reason.SCHEMA_MISMATCH),
        ("long", b"\xff" * 11, Reason.SCHEMA_MISMATCH),
        (["null", "string"], number(2), Reason.SCHEMA_MISMATCH),
        (["null", "string"], number(-1) + number(1) + b"a", Reason.SCHEMA_MISMATCH),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, number(1), Reason.SCHEMA_MISMATCH),
        ({"type": "map", "values": "null"}, number(1 << 40) + b"\0" * 99, Reason.TOO_MANY_VALUES),
    ],
)
def test_a_payload_that_does_not_fit_has_a_reason(kind: object, payload: bytes, expected: Reason) -> None:
    """What is announced and not there, branches and symbols that do not exist, text that is none."""
    assert reason(of_one_field(kind), payload) == expected


def test_a_size_below_nothing_goes_nowhere() -> None:
    """It would lead back to what was read already."""
    with pytest.raises(BadRecord, match="it announces -1 bytes where 0 are left"):
        read(of_one_field("string"), number(-1))


def test_a_type_within_itself_goes_no_deeper_than_records_may() -> None:
    """A compiled reader overruns its stack on this payload, and the process is gone; the limit is the one of JSON."""
    assert reason(NODE, b"\2" * 4_000_000) == Reason.NESTED_TOO_DEEP
    assert reason(NODE, b"\2" * 4_000_000, depth_max=500) == Reason.NESTED_TOO_DEEP
    deep = b"\2" * 31 + b"\0" + b"\2" * 32
    assert read(NODE, deep)["next"]["next"]["x"] == 1
    assert reason(NODE, b"\2" + deep + b"\2") == Reason.NESTED_TOO_DEEP
    endless = {"type": "record", "name": "R", "fields": [{"name": "x", "type": "R"}]}
    assert reason(endless, b"") == Reason.NESTED_TOO_DEEP
    lists: object = "int"
    for _ in range(32):
        lists = {"type": "array", "items": lists}
    assert reason(of_one_field(lists), number(1) * 32) == Reason.NESTED_TOO_DEEP
    with pytest.raises(BadRecord) as caught:
        read(NODE, b"\2" * 100)
    assert caught.value.limit == "depth_max"


LATER = {"type": "record", "name": "Q", "fields": []}
EMPTY_LISTS: dict[str, list[tuple[str, object]]] = {
    "null": [("x", {"type": "array", "items": "null"})],
    "fixed": [("x", {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}})],
    "record": [("x", {"type": "array", "items": LATER})],
    "a record that is defined later": [("x", {"type": "array", "items": "Q"}), ("y", LATER)],
    "a union of one": [("x", {"type": "array", "items": ["null"]})],
}


@pytest.mark.parametrize("fields", EMPTY_LISTS.values(), ids=EMPTY_LISTS)
def test_items_that_take_no_bytes_are_counted(fields: list[tuple[str, object]]) -> None:
    """Ten bytes announce a quintillion items, which none of the readers looks at one by one."""
    schema = {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields]}
    for announced in (1 << 60, 1 << 61, (1 << 63) - 1, 20_000):
        assert reason(schema, number(announced) + b"\0") == Reason.TOO_MANY_VALUES
        assert reason(schema, number(-announced) + number(0) + b"\0") == Reason.TOO_MANY_VALUES


def test_records_have_no_more_values_than_the_limit() -> None:
    """However long the payload is."""
    reading = avro_reader(stored(of_one_field({"type": "array", "items": "boolean"})))
    payload = number(2_000) + b"\0" * 2_001
    assert reading(payload, ValueBudget(len(payload), 32, 2_001)) == {"x": []}
    with pytest.raises(BadRecord) as caught:
        reading(payload, ValueBudget(len(payload), 32, 2_000))
    assert caught.value.reason == Reason.TOO_MANY_VALUES


def test_a_payload_stands_for_no_more_values_than_it_has_bytes() -> None:
    """A map of records of a thousand empty fields would be a thousand values for four bytes."""
    wide = {"type": "record", "name": "W", "fields": [{"name": f"f{n}", "type": "null"} for n in range(1000)]}
    entries = b"".join(number(3) + b"%03d" % n for n in range(100))
    assert (
        reason(of_one_field({"type": "map", "values": wide}), number(100) + entries + b"\0") == Reason.TOO_MANY_VALUES
    )
    assert (
        read(of_one_field({"type": "map", "values": wide}), number(1) + entries[:4] + b"\0")["x"]["000"]["f999"] is None
    )


def test_lists_and_maps_come_in_blocks() -> None:
    """A block may say its size, behind a negative count; lists come out empty, since no field is taken from one."""
    blocks = number(-1) + number(1) + number(7) + number(1) + number(8) + number(0)
    assert read(of_one_field({"type": "array", "items": "int"}), blocks) == {"x": []}
    entries = (
        number(-1) + number(3) + number(1) + b"a" + number(7) + number(1) + number(1) + b"b" + number(8) + number(0)
    )
    assert read(of_one_field({"type": "map", "values": "int"}), entries) == {"x": {"a": 7, "b": 8}}


@pytest.mark.parametrize(
    ("base", "logical", "value", "expected"),
    [
        ("long", "timestamp-millis", 1_769_847_330_251, 1_769_847_330.251),
        ("long", "timestamp-micros", 1_769_847_330_251_001, 1_769_847_330.251001),
        ("long", "timestamp-nanos", -1_500_000_000, -1.5),
        ("long", "timestamp-millis", (1 << 63) - 1, ((1 << 63) - 1) / 1000),
        ("int", "date", 20_000, 1_728_000_000),
        ("long", "local-timestamp-millis", 1_769_847_330_250, "2026-01-31T08:15:30.250000"),
        ("long", "local-timestamp-nanos", 1_769_847_330_250_000_999, "2026-01-31T08:15:30.250000"),
        ("long", "local-timestamp-micros", (1 << 63) - 1, ((1 << 63) - 1) / 10**6),
        ("long", "of-our-own", 5, 5),
        ("int", "timestamp-millis", 5, 5),
    ],
)
def test_moments_are_what_the_mapping_takes(base: str, logical: str, value: int, expected: object) -> None:
    """Seconds since 1970, midnight in UTC, or a text without an offset; beyond the calendar nothing breaks."""
    assert read(of_one_field({"type": base, "logicalType": logical}), number(value)) == {"x": expected}


def test_types_of_other_schemas_are_found_by_their_names() -> None:
    """Two that share a third, as the registry gives them: what others use comes first."""
    base = of_one_field("string") | {"namespace": "n", "name": "Base"}
    left = of_one_field("Base") | {"namespace": "n", "name": "Left"}
    right = of_one_field("n.Base") | {"name": "Right"}
    top = {
        "type": "record",
        "name": "Top",
        "fields": [{"name": "l", "type": "n.Left"}, {"name": "r", "type": "Right"}],
    }
    reading = avro_reader(stored(top, base=base, left=left, right=right))
    assert reading(b"\2a\2b", ValueBudget(4, 32)) == {"l": {"x": {"x": "a"}}, "r": {"x": {"x": "b"}}}


@pytest.mark.parametrize(
    "schema",
    [
        "Missing",
        17,
        None,
        {"type": "record", "name": "R"},
        {"type": "record", "name": "R", "fields": [{"type": "int"}]},
        {"type": "record", "name": "R", "fields": ["x"]},
        {"type": "enum", "name": "E"},
        {"type": "fixed", "name": "F", "size": -1},
        {"type": "array"},
        {"name": "R"},
        of_one_field(["null", "gone.Type"]),
    ],
)
def test_what_is_no_schema_is_unusable(schema: object) -> None:
    """Answer when the schema comes, and not when the field does."""
    with pytest.raises(UnusableSchema):
        avro_reader(stored(schema))


@pytest.mark.parametrize("text", ["", "{", 'syntax = "proto3";', "[" * 100_000])
def test_text_that_is_no_json_is_unusable(text: str) -> None:
    """Whatever is registered as Avro."""
    with pytest.raises(UnusableSchema):
        avro_reader(StoredSchema("AVRO", text, {}))


def test_a_schema_need_not_be_a_record() -> None:
    """What it is then is said by the article's checks."""
    assert read("string", b"\2a") == "a"
    assert read({"type": "map", "values": "double"}, b"\2\2a" + struct.pack("<d", 1.5) + b"\0") == {"a": 1.5}
