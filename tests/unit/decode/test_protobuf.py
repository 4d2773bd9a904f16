"""Protobuf by the schema that the registry gives: which message, what becomes of its fields, what is refused."""

import base64
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

import pytest
from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from hypothesis import given
from hypothesis import strategies as st

from consumer.decode.schemas import protobuf as module
from consumer.decode.schemas.budgets import MessageShape, ValueBudget, count_values
from consumer.decode.schemas.protobuf import message_indexes, protobuf_reader
from consumer.decode.schemas.registry import StoredSchema, UnusableSchema
from consumer.model.article import Reason
from consumer.model.errors import BadRecord

FIRST = b"\0"
"""The first message of the file."""
TYPES = {"double": 1, "float": 2, "int64": 3, "int32": 5, "bool": 8, "string": 9, "bytes": 12}
MESSAGE, ENUM = 11, 14


def file_of(name: str = "f.proto", *needs: str, package: str = "p") -> descriptor_pb2.FileDescriptorProto:
    """An empty file."""
    return descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax="proto3", dependency=[*needs])


def add(message: Any, name: str, kind: str, **more: Any) -> None:  # noqa: ANN401  # a message's proto; a field's members
    """Add a field: of a scalar type, or of a message by its full name."""
    known = {"type": TYPES[kind]} if kind in TYPES else {"type": MESSAGE, "type_name": f".{kind}"}
    message.field.add(**{"name": name, "number": len(message.field) + 1, "label": 1, **known, **more})


def stored(
    file: descriptor_pb2.FileDescriptorProto, references: Mapping[str, descriptor_pb2.FileDescriptorProto] = {}
) -> StoredSchema:
    """A schema as the registry has it."""
    texts = {name: base64.b64encode(descriptor.SerializeToString()).decode() for name, descriptor in references.items()}
    return StoredSchema("PROTOBUF", base64.b64encode(file.SerializeToString()).decode(), texts)


def message_class(file: descriptor_pb2.FileDescriptorProto, name: str, *others: Any) -> Any:  # noqa: ANN401  # a class of a message
    """The class that protoc would have generated."""
    pool = descriptor_pool.DescriptorPool()
    for other in others:
        pool.AddSerializedFile(other.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def read(schema: StoredSchema, payload: bytes, depth_max: int = 32) -> Any:  # noqa: ANN401  # plain values
    """What a payload comes to."""
    return protobuf_reader(schema)(payload, ValueBudget(len(payload), depth_max))


def reason(schema: StoredSchema, payload: bytes, depth_max: int = 32) -> str:
    """Why a payload is refused."""
    with pytest.raises(BadRecord) as caught:
        read(schema, payload, depth_max)
    return caught.value.reason


def scalars() -> descriptor_pb2.FileDescriptorProto:
    """A message with a field of each scalar type, an optional one, and a oneof."""
    file = file_of()
    message = file.message_type.add(name="M")
    for kind in TYPES:
        add(message, kind, kind)
    message.oneof_decl.add(name="choice")
    message.oneof_decl.add(name="_maybe")
    add(message, "one", "string", oneof_index=0)
    add(message, "other", "int32", oneof_index=0)
    add(message, "maybe", "string", oneof_index=1, proto3_optional=True)
    return file


def nested() -> descriptor_pb2.FileDescriptorProto:
    """A message within itself, in fields, in a list and in a map."""
    file = file_of()
    node = file.message_type.add(name="Node")
    entry = node.nested_type.add(name="NamedEntry")
    entry.options.map_entry = True
    add(entry, "key", "int32")
    add(entry, "value", "p.Node")
    add(node, "next", "p.Node")
    add(node, "all", "p.Node", label=3)
    add(node, "named", "p.Node.NamedEntry", label=3)
    add(node, "x", "int32")
    return file


def test_scalars_are_as_they_are() -> None:
    """Integers stay integers; what was set and what is always there is there."""
    given: dict[str, Any] = {
        "double": 1.5, "float": -2.5, "int64": 1 << 60, "int32": -1, "bool": True, "string": "港口", "bytes": b"\xff",
        "other": 0, "maybe": "",
    }  # fmt: skip
    file = scalars()
    assert read(stored(file), FIRST + message_class(file, "p.M")(**given).SerializeToString()) == given


def test_what_was_not_set_is_missing_or_its_default() -> None:
    """A field that cannot be told to be missing has its default; an optional one and a oneof are missing."""
    assert read(stored(scalars()), FIRST) == {
        "double": 0.0, "float": 0.0, "int64": 0, "int32": 0, "bool": False, "string": "", "bytes": b"",
    }  # fmt: skip


def test_messages_lists_and_maps() -> None:
    """Objects in each other; lists come out empty, since no field is taken from one; a map's keys are texts."""
    file = nested()
    node = message_class(file, "p.Node")
    message = node(next=node(x=2), all=[node(), node()], named={7: node(x=3)}, x=1)
    assert read(stored(file), FIRST + message.SerializeToString()) == {
        "next": {"all": [], "named": {}, "x": 2},
        "all": [],
        "named": {"7": {"all": [], "named": {}, "x": 3}},
        "x": 1,
    }


def test_enums_are_their_names() -> None:
    """And a number that has none stays a number."""
    file = file_of()
    suit = file.enum_type.add(name="Suit")
    suit.value.add(name="HEARTS", number=0)
    suit.value.add(name="SPADES", number=4)
    message = file.message_type.add(name="M")
    for name in ("a", "b", "c"):
        add(message, name, "p.Suit", type=ENUM)
    assert read(stored(file), FIRST + message_class(file, "p.M")(b=4, c=9).SerializeToString()) == {
        "a": "HEARTS", "b": "SPADES", "c": 9,
    }  # fmt: skip


def test_well_known_types_are_what_they_stand_for() -> None:
    """Times are seconds, wrappers their values, Struct an object; no registry is asked for their files."""
    names = ("timestamp", "struct", "wrappers", "any")
    file = file_of("f.proto", *(f"google/protobuf/{name}.proto" for name in names))
    message = file.message_type.add(name="M")
    add(message, "at", "google.protobuf.Timestamp")
    add(message, "never", "google.protobuf.Timestamp")
    add(message, "text", "google.protobuf.StringValue")
    add(message, "free", "google.protobuf.Struct")
    add(message, "none", "google.protobuf.Value")
    add(message, "any", "google.protobuf.Any")
    value = message_class(file, "p.M", timestamp_pb2, struct_pb2, wrappers_pb2, any_pb2)(text={"value": "t"})
    value.at.FromJsonString("1969-12-31T23:59:58.500Z")
    value.free.update({"a": {"b": "c", "n": None, "l": [1, 2]}, "d": 1.5, "e": True})
    value.none.null_value = 0
    value.any.type_url = "type.googleapis.com/nobody.Knows"
    assert read(stored(file), FIRST + value.SerializeToString()) == {
        "at": -1.5,
        "text": "t",
        "free": {"a": {"b": "c", "n": None, "l": []}, "d": 1.5, "e": True},
        "none": None,
        "any": {"type_url": "type.googleapis.com/nobody.Knows", "value": b""},
    }


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"\0", "First"),
        (b"\2\0", "First"),
        (b"\2\2", "Second"),
        (b"\4\2\0", "Second.Inner"),
        (b"\4\2\2", "Second.Other"),
        (b"\6\2\2\0", "Second.Other.Last"),
    ],
)
def test_the_message_is_the_one_that_the_value_names(head: bytes, expected: str) -> None:
    """By positions, from the outermost in; in a file without a package too."""
    for package in ("p", ""):
        file = file_of(package=package)
        second = (file.message_type.add(name="First"), file.message_type.add(name="Second"))[1]
        inner = second.nested_type.add(name="Inner")
        other = second.nested_type.add(name="Other")
        last = other.nested_type.add(name="Last")
        for name, message in zip(
            ("First", "Second", "Second.Inner", "Second.Other", "Second.Other.Last"),
            (file.message_type[0], second, inner, other, last),
            strict=True,
        ):
            add(message, f"in_{name.replace('.', '_')}", "int32")
        assert read(stored(file), head) == {f"in_{expected.replace('.', '_')}": 0}


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x80",
        b"\xff\xff\xff\xff\xff\x01",
        b"\1",
        b"\x42" + b"\0" * 40,
        b"\4\0",
        b"\2\2",
        b"\2\1",
        b"\4\0\0",
        FIRST + b"\xff",
        FIRST + b"\x32\x05abc",
        FIRST + b"\x32\x02\xff\xfe",
    ],
)
def test_a_payload_that_does_not_fit_is_refused(payload: bytes) -> None:
    """No message, one that the file does not have, one that breaks off, text that is none."""
    assert reason(stored(scalars()), payload) == Reason.SCHEMA_MISMATCH


def test_a_message_is_within_few_others() -> None:
    """A value may name any number of levels, and each would be looked for."""
    with pytest.raises(BadRecord, match="it names 33 levels of messages"):
        read(stored(scalars()), b"\x42" + b"\0" * 40)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_nothing_but_bad_record(payload: bytes) -> None:
    """Whatever the payload is, it is read or refused."""
    for file in (scalars(), nested()):
        with suppress(BadRecord):
            assert isinstance(read(stored(file), payload), dict)


def test_messages_go_no_deeper_than_records_may() -> None:
    """The limit is the one of JSON, and below 100 in any case."""
    file = file_of()
    add(file.message_type.add(name="Node"), "next", "p.Node")
    add(file.message_type[0], "x", "int32")
    node = message_class(file, "p.Node")
    deep = node(x=1)
    for _ in range(31):
        deep = node(next=deep)
    assert reason(stored(file), FIRST + node(next=deep).SerializeToString(), 32) == Reason.NESTED_TOO_DEEP
    assert reason(stored(nested()), FIRST, 1) == Reason.NESTED_TOO_DEEP
    inner = read(stored(file), FIRST + deep.SerializeToString(), 32)
    for _ in range(31):
        inner = inner["next"]
    assert inner["x"] == 1
    payload = b""
    for _ in range(5_000):
        length = len(payload)
        payload = b"\x0a" + bytes([length & 127 | 128, length >> 7 & 127 | 128, length >> 14]) + payload
    assert reason(stored(file), FIRST + payload, 500) == Reason.SCHEMA_MISMATCH


def test_a_payload_stands_for_no_more_values_than_it_has_bytes() -> None:
    """An entry of a map that says nothing would be a message with the defaults of a hundred fields."""
    file = file_of()
    message = file.message_type.add(name="M")
    wide = file.message_type.add(name="Wide")
    for number in range(100):
        add(wide, f"f{number}", "int32")
    entry = message.nested_type.add(name="NamedEntry")
    entry.options.map_entry = True
    add(entry, "key", "int32")
    add(entry, "value", "p.Wide")
    add(message, "named", "p.M.NamedEntry", label=3)
    many = message_class(file, "p.M")()
    for number in range(1_000):
        many.named[number].f0 = 0
    assert reason(stored(file), FIRST + many.SerializeToString()) == Reason.TOO_MANY_VALUES


def wide_and_narrow() -> Any:  # noqa: ANN401  # a file
    """A message with a list of messages that have 2,000 fields."""
    file = file_of()
    message = file.message_type.add(name="M")
    wide = file.message_type.add(name="Wide")
    for number in range(2_000):
        add(wide, f"f{number}", "int64")
    add(message, "all", "p.Wide", label=3)
    add(message, "text", "string")
    return file


def test_messages_are_counted_before_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 kB of empty messages, each of which takes 16 kB in memory, are refused by their bytes."""
    file = wide_and_narrow()
    payload = FIRST + b"\x0a\x00" * 100_000
    assert reason(stored(file), payload) == Reason.TOO_MANY_VALUES
    # Parsed, they would be refused for nothing: lists come out empty.
    monkeypatch.setattr(module, "check_budget", lambda *_: None)
    assert read(stored(file), payload) == {"all": [], "text": ""}


def test_a_long_text_is_no_number_of_values() -> None:
    """What is looked through is counted by fields, not by bytes."""
    file = wide_and_narrow()
    text = b"x" * 1_000_000
    payload = FIRST + b"\x0a\x00\x12\xc0\x84\x3d" + text
    assert read(stored(file), payload) == {"all": [], "text": text.decode()}


@given(st.binary(max_size=60))
def test_counting_ends_with_the_payload(payload: bytes) -> None:
    """Whatever the bytes are; and each value takes two bytes at least, but for its type's own share."""
    kind = MessageShape(0)
    kind.inner = {1: kind}
    assert 0 <= count_values(payload, kind, 1_000) <= len(payload)
    assert count_values(payload, kind, 3) <= 4


def test_files_that_a_schema_needs_come_with_it() -> None:
    """By the names that it uses; and with a file of the same name as another schema's nothing is mixed up."""
    for kind in ("string", "int32"):
        base = file_of("whatever.proto", "google/protobuf/timestamp.proto")
        message = base.message_type.add(name="Base")
        add(message, "x", kind)
        add(message, "at", "google.protobuf.Timestamp")
        middle = file_of("default", "a/base.proto")
        add(middle.message_type.add(name="Middle"), "base", "p.Base")
        top = file_of("default", "b/middle.proto", "a/base.proto", package="q")
        add(top.message_type.add(name="Top"), "middle", "p.Middle")
        schema = stored(top, {"a/base.proto": base, "b/middle.proto": middle})
        assert read(schema, FIRST + b"\x0a\x02\x0a\x00") == {"middle": {"base": {"x": "" if kind == "string" else 0}}}
        with pytest.raises(UnusableSchema, match="are inconsistent"):
            protobuf_reader(stored(top, {"a/base.proto": base}))


def test_a_schema_as_text_is_unusable() -> None:
    """Some registries keep what they were given, and give no other form; the sentence says where to read on."""
    with pytest.raises(UnusableSchema, match="returned it as text"):
        protobuf_reader(StoredSchema("PROTOBUF", 'syntax = "proto3"; message M { string id = 1; }', {}))
    with pytest.raises(UnusableSchema, match="returned it as text"):
        protobuf_reader(StoredSchema("PROTOBUF", base64.b64encode(b"\xff\xff").decode(), {}))


def test_a_file_that_is_nowhere_makes_a_schema_unusable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one whose name looks as if it came with a package: nothing else is imported for a name."""
    imported: list[str] = []

    def noted(name: str) -> object:
        imported.append(name)
        return import_module(name)

    monkeypatch.setattr(module, "import_module", noted)
    for name in ("nobody/knows.proto", "google/protobuf/nobody.proto", "google/protobuf/../os.proto", "google/x.proto"):
        with pytest.raises(UnusableSchema, match="are inconsistent"):
            protobuf_reader(stored(file_of("f.proto", name)))
    ours = ("message", "descriptor_pb2", "message_factory", "descriptor_pool", "nobody_pb2")
    assert set(imported) == {f"google.protobuf.{name}" for name in ours}


def test_positions_are_read_to_where_the_message_begins() -> None:
    """As the serializers write them."""
    assert message_indexes(b"\0rest") == ((0,), 1)
    assert message_indexes(b"\2\6rest") == ((3,), 2)
    assert message_indexes(b"\4\x80\2\0rest") == ((128, 0), 4)
