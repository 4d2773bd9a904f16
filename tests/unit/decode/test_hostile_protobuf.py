"""Protobuf schemas and payloads that mean harm: whatever they hold, a record is read or refused."""

import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from consumer.decode.schemas.budgets import MessageShape, ValueBudget, layout_of
from consumer.decode.schemas.protobuf import protobuf_reader
from consumer.decode.schemas.registry import StoredSchema, UnusableSchema
from consumer.decode.schemas.schema_value import SchemaParser
from consumer.lifecycle.retry import RetryPolicy
from consumer.model.article import Reason
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits
from tests.unit.decode.test_protobuf import FIRST, add, file_of, message_class, nested, read, reason, scalars, stored


class Once(RetryPolicy):
    """Asks once."""

    def call(self, work: Any) -> Any:  # noqa: ANN401  # as the port says
        """As the port says."""
        return work()


class Holding:
    """A registry with one schema."""

    def __init__(self, schema: StoredSchema) -> None:
        self._schema = schema

    def schema(self, schema_id: int) -> StoredSchema:
        """As the port says."""
        assert schema_id == 7
        return self._schema


def parsed(schema: StoredSchema, payload: bytes) -> object:
    """What a value comes to whose schema is in the registry."""
    return SchemaParser("protobuf", Holding(schema), Once(), DecodeLimits()).parse(b"\0\0\0\0\7" + payload)


@pytest.mark.parametrize("name", ["Timestamp", "StringValue", "Struct", "Value", "ListValue"])
def test_a_type_with_a_well_known_name_is_what_its_file_says(name: str) -> None:
    """It has other fields than Google's of that name, which are read as those of any message."""
    file = file_of(package="google.protobuf")
    add(file.message_type.add(name=name), "x", "int32")
    assert read(stored(file), FIRST + b"\x08\x05") == {"x": 5}


def test_a_well_known_file_is_the_installed_one() -> None:
    """Serializers may register it as any other file, and a registry may have anything under its name."""
    file = file_of("top.proto", "google/protobuf/timestamp.proto")
    add(file.message_type.add(name="M"), "at", "google.protobuf.Timestamp")
    fake = file_of("x", package="google.protobuf")
    add(fake.message_type.add(name="Timestamp"), "x", "string")
    schema = stored(file, {"google/protobuf/timestamp.proto": fake})
    assert read(schema, FIRST + b"\x0a\x02\x08\x05") == {"at": 5.0}


def test_a_field_may_have_the_name_of_an_attribute() -> None:
    """It hides that of the message."""
    names = ["DESCRIPTOR", "HasField", "FromString", "WhichOneof", "__class__"]
    file = file_of()
    message = file.message_type.add(name="M")
    for name in names:
        add(message, name, "int32")
    message.oneof_decl.add(name="_x")
    add(message, "x", "int32", oneof_index=0, proto3_optional=True)
    assert read(stored(file), FIRST + b"\x30\x00") == dict.fromkeys([*names, "x"], 0)
    assert read(stored(file), FIRST) == dict.fromkeys(names, 0)


def entries(syntax: str, kind: str, **numbers: int) -> descriptor_pb2.FileDescriptorProto:
    """A message with a map whose entries have fields of these names and numbers."""
    file = file_of()
    file.syntax = syntax
    message = file.message_type.add(name="M")
    entry = message.nested_type.add(name="NamedEntry")
    entry.options.map_entry = True
    for name, number in numbers.items():
        add(entry, name, kind, number=number)
    add(message, "named", "p.M.NamedEntry", label=3)
    return file


def test_a_map_is_one_by_the_numbers_of_its_fields() -> None:
    """Protobuf itself goes by these; the names may be any, and without a value there is no map."""
    payload = FIRST + b"\x0a\x04\x08\x01\x10\x05"
    assert read(stored(entries("proto3", "int32", k=1, v=2)), payload) == {"named": {"1": 5}}
    with pytest.raises(BadRecord, match="schema 7 cannot be used: the entries of its map named have no values"):
        parsed(stored(entries("proto3", "int32", k=1, v=3)), payload)


def test_a_key_in_proto2_may_be_no_text() -> None:
    """That shows only when it is read."""
    payload = FIRST + b"\x0a\x06\x0a\x01\xff\x12\x01x"
    assert reason(stored(entries("proto2", "string", key=1, value=2)), payload) == Reason.INVALID_UTF8


def chain(length: int) -> descriptor_pb2.FileDescriptorProto:
    """Messages each of which contains the next, and the last one the first."""
    file = file_of()
    for number in range(length):
        message = file.message_type.add(name=f"M{number}")
        add(message, "x", "int32")
        add(message, "next", f"p.M{(number + 1) % length}")
    return file


def test_a_long_chain_of_types_makes_a_schema_unusable() -> None:
    """Each class builds the next one, which the stack does not bear."""
    assert read(stored(chain(50)), FIRST) == {"x": 0}
    reads = SchemaParser("protobuf", Holding(stored(chain(2_000))), Once(), DecodeLimits())
    for _ in range(3):
        with pytest.raises(BadRecord, match="schema 7 cannot be used: its messages are nested too deeply") as caught:
            reads.parse(b"\0\0\0\0\7" + FIRST)
        assert caught.value.reason == Reason.UNUSABLE_SCHEMA


def test_what_is_known_of_a_type_is_known_once() -> None:
    """Each message of a schema may contain all others: for each alone that would be their square."""
    first = message_class(chain(50), "p.M0").DESCRIPTOR
    kinds: dict[str, MessageShape] = {}
    layouts = [layout_of(first, kinds), layout_of(first.fields_by_name["next"].message_type, kinds)]
    assert len(kinds) == 50
    assert layouts[0].shape.inner[2] is layouts[1].shape


def _types(message: descriptor_pb2.DescriptorProto) -> Iterator[descriptor_pb2.DescriptorProto]:
    yield message
    for inner in message.nested_type:
        yield from _types(inner)


def _changed(chance: random.Random, file: descriptor_pb2.FileDescriptorProto) -> descriptor_pb2.FileDescriptorProto:
    """The same file with something else in one place."""
    message = chance.choice([each for outer in file.message_type for each in _types(outer)])
    field: Any = chance.choice(message.field)
    match chance.randrange(9):
        case 0:
            file.syntax = chance.choice(["proto2", "proto3", "editions"])
        case 1:
            message.options.map_entry = not message.options.map_entry
        case 2:
            message.name = chance.choice(["M", "Node", "FromString", "Timestamp", "NamedEntry"])
        case 3:
            file.package = chance.choice(["", "google.protobuf", "a.b"])
        case 4:
            field.label = chance.choice([1, 2, 3])
        case 5:
            field.type = chance.randint(1, 18)
        case 6:
            field.number = chance.choice([1, 2, 3, 18, 19_000, 536_870_911])
        case 7:
            field.type_name = chance.choice([".p.Node", ".p.M", ".p.Node.NamedEntry", ""])
        case _:
            field.name = chance.choice(["id", "HasField", "DESCRIPTOR", "key", "value", "seconds"])
    return file


def test_changed_schemas_raise_nothing_but_what_they_may() -> None:
    """Of any schema and any payload something comes out, or one of two errors."""
    chance = random.Random("schemas")
    read_ones = 0
    for _ in range(1_500):
        file = chance.choice([scalars, nested])()
        for _ in range(chance.randint(1, 3)):
            file = _changed(chance, file)
        with suppress(UnusableSchema):
            reads = protobuf_reader(stored(file))
            for _ in range(6):
                payload = FIRST + bytes(chance.choices([*range(6), 8, 10, 16, 18, 24, 26, 255], k=chance.randrange(20)))
                with suppress(BadRecord):
                    read_ones += isinstance(reads(payload, ValueBudget(len(payload), 32)), dict)
    assert read_ones > 100
