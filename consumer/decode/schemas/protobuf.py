"""Decodes Protobuf messages into plain values, with types from the registry instead of generated code.

The registry returns each file of a schema as a serialized ``FileDescriptorProto``; google.protobuf builds the types and
parses messages, at most 100 levels deep. google.protobuf is imported with the first schema.

Fields have the names of the .proto file. An unset field with presence (messages, ``optional``, oneofs) is missing; any
other unset field has its default. Enums become the names of their values, maps become objects, lists become empty lists
(no field is read from a list), ``google.protobuf.Timestamp`` becomes seconds since 1970, and wrappers and ``Struct``
become their contents.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final, NamedTuple

from consumer.decode.published_at import Instant
from consumer.decode.schemas.budgets import Layout, MessageShape, ValueBudget, check_budget, layout_of
from consumer.decode.schemas.registry import StoredSchema, UnusableSchema, mismatch
from consumer.model.article import Reason
from consumer.model.errors import BadRecord

_KNOWN: Final = re.compile(r"(google/protobuf|google/type|confluent|confluent/type)/[a-z0-9_]+\.proto")
"""Files that installed packages may contain. If so, their copies are used instead of the registry's."""
_KNOWN_MODULES: Final = {"confluent": "confluent_kafka.schema_registry.confluent", "google": "google"}
_MAIN: Final = "dupwatch/schema.proto"
"""The name of the schema's own file. It differs from the names of all files that the schema refers to."""
_LEVELS_MAX: Final = 32
_VARINT_BYTES_MAX: Final = 5
_NANOS_PER_S: Final = 1_000_000_000
_GOOGLE: Final = "google.protobuf."
_WRAPPERS: Final = frozenset(
    f"{_GOOGLE}{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_WELL_KNOWN_FILES: Final = frozenset(f"google/protobuf/{name}.proto" for name in ("struct", "timestamp", "wrappers"))
"""The files of the well-known types. In any other file a schema may use their names for its own types."""
_MAP_VALUE: Final = 2
"""The number of the field that holds the value of a map entry, whatever the field's name."""

_Plain = Callable[[Any, ValueBudget, int], Any]
"""Converts the value of a field to a plain value. The last argument is the number of objects around the value."""


class _MessageType(NamedTuple):
    message_class: Any
    layout: Layout


class _Field(NamedTuple):
    name: str
    optional: bool
    plain: _Plain


def protobuf_reader(schema: StoredSchema) -> Callable[[bytes, ValueBudget], object]:
    """Return a function that reads payloads of a schema.

    The returned function raises ``BadRecord`` and ``UnusableSchema``; this one raises only ``UnusableSchema``.

    A payload begins with the position of its message type in the schema.
    """
    types = _Types(schema)

    def read(payload: bytes, budget: ValueBudget) -> object:
        indexes, at = message_indexes(payload)
        return types.read(indexes, payload[at:], budget)

    return read


def message_indexes(payload: bytes) -> tuple[tuple[int, ...], int]:
    """Return the positions of a payload's message type and the types around it, outermost first, and where data begins.

    Confluent's wire format writes the number of positions, then each position, as zigzag numbers. A single 0 stands for
    the first message. Raises ``BadRecord``.
    """
    count, at = _number(payload, 0)
    if not 0 <= count <= _LEVELS_MAX:
        raise mismatch(f"it names {count} levels of messages")
    indexes: list[int] = []
    for _ in range(count):
        index, at = _number(payload, at)
        indexes.append(index)
    return tuple(indexes) or (0,), at


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(data[at : at + _VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:  # noqa: PLR2004  # the continuation bit
            return (value >> 1) ^ -(value & 1), at + place + 1
    raise mismatch("it does not say which message it is")


class _Types:
    """The message types of one schema, in a pool of their own: other schemas may use the same names for other types."""

    def __init__(self, schema: StoredSchema) -> None:
        self._message: Any = import_module("google.protobuf.message")
        self._descriptor: Any = import_module("google.protobuf.descriptor_pb2")
        self._class_of: Any = import_module("google.protobuf.message_factory").GetMessageClass
        self._fields: dict[str, list[_Field]] = {}
        self._types: dict[tuple[int, ...], _MessageType | None] = {}
        self._shapes: dict[str, MessageShape] = {}
        self._pool: Any = import_module("google.protobuf.descriptor_pool").DescriptorPool()
        self._added: set[str] = set()
        try:
            for name, text in schema.references.items():
                self._add_known(name)
                if name not in self._added:
                    self._add(name, text)
            self._file = self._add(_MAIN, schema.text)
            self._pool.FindFileByName(_MAIN)
        except (TypeError, KeyError) as error:
            raise UnusableSchema(f"its types are inconsistent: {error}") from error

    def read(self, indexes: tuple[int, ...], data: bytes, budget: ValueBudget) -> object:
        """Parse a message of the type at these positions. Raises ``BadRecord`` and ``UnusableSchema``."""
        if indexes not in self._types:
            self._types[indexes] = self._build_type(self._message_at(indexes))
        message_type = self._types[indexes]
        if message_type is None:
            raise UnusableSchema("its messages are nested too deeply")
        check_budget(data, message_type.layout, budget)
        try:
            return self._plain(message_type.message_class.FromString(data), budget, 0)
        except self._message.DecodeError as error:
            raise mismatch(str(error)) from error
        except UnicodeDecodeError as error:
            # In proto2 the fault shows only when the string is read.
            raise BadRecord(
                Reason.INVALID_UTF8, f"a string is not UTF-8: {error.reason} at its byte {error.start}"
            ) from error

    def _build_type(self, descriptor: Any) -> _MessageType | None:  # noqa: ANN401  # a descriptor
        """Build the class of a message. Return None if that recurses too deep: each class builds its inner classes."""
        try:
            return _MessageType(self._class_of(descriptor), layout_of(descriptor, self._shapes))
        except RecursionError:
            return None

    def _message_at(self, indexes: tuple[int, ...]) -> Any:  # noqa: ANN401  # a descriptor
        inner, name = self._file.message_type, self._file.package
        for index in indexes:
            if not 0 <= index < len(inner):
                raise mismatch(f"it is message {list(indexes)} of its file, which has no such message")
            name = f"{name}.{inner[index].name}".lstrip(".")
            inner = inner[index].nested_type
        return self._pool.FindMessageTypeByName(name)

    def _add(self, name: str, text: str) -> Any:  # noqa: ANN401  # the file
        file = self._descriptor.FileDescriptorProto()
        try:
            file.ParseFromString(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError, self._message.DecodeError) as error:
            raise UnusableSchema(
                "the registry returned it as text, not as a serialized FileDescriptorProto; see docs/use/streaming.md"
            ) from error
        file.name = name
        for needed in file.dependency:
            self._add_known(needed)
        self._pool.Add(file)
        self._added.add(name)
        return file

    def _add_known(self, name: str) -> None:
        """Add an installed file and its dependencies; a missing one is reported when the types are built."""
        if name in self._added or not _KNOWN.fullmatch(name):
            return
        package, _, rest = name.removesuffix(".proto").partition("/")
        try:
            module: Any = import_module(f"{_KNOWN_MODULES[package]}.{rest.replace('/', '.')}_pb2")
        except ImportError:
            return
        self._added.add(name)
        file = self._descriptor.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
        for needed in file.dependency:
            self._add_known(needed)
        self._pool.Add(file)

    def _plain(self, message: Any, budget: ValueBudget, depth: int) -> Any:  # noqa: ANN401  # a message; plain values
        """Convert a message to an object, or to the value of its well-known type.

        Methods are taken from the message's class: a field with the same name hides them in the message.
        """
        message_class = type(message)
        descriptor = message_class.DESCRIPTOR
        name = descriptor.full_name if descriptor.file.name in _WELL_KNOWN_FILES else ""
        if name == f"{_GOOGLE}Timestamp":
            return Instant((message.seconds * _NANOS_PER_S + message.nanos) / _NANOS_PER_S)
        if name in _WRAPPERS:
            return message.value
        if name == f"{_GOOGLE}Struct":
            return self._object(message.fields, budget, depth, self._plain)
        if name == f"{_GOOGLE}Value":
            return self._any_value(message, budget, depth)
        if name == f"{_GOOGLE}ListValue":
            return []
        budget.check_depth(depth + 1)
        fields = self._fields_of(descriptor)
        budget.take(len(fields))
        return {
            field.name: field.plain(getattr(message, field.name), budget, depth + 1)
            for field in fields
            if not field.optional or message_class.HasField(message, field.name)
        }

    def _any_value(self, message: Any, budget: ValueBudget, depth: int) -> Any:  # noqa: ANN401  # as above
        kind = message.WhichOneof("kind")
        if kind is None or kind == "null_value":
            return None
        value = getattr(message, kind)
        return self._plain(value, budget, depth) if kind in {"struct_value", "list_value"} else value

    def _object(self, entries: Any, budget: ValueBudget, depth: int, plain: _Plain) -> dict[str, Any]:  # noqa: ANN401  # a map
        budget.check_depth(depth + 1)
        budget.take(len(entries))
        return {str(key): plain(entries[key], budget, depth + 1) for key in entries}

    def _fields_of(self, descriptor: Any) -> list[_Field]:  # noqa: ANN401  # a descriptor
        name: str = descriptor.full_name
        if name not in self._fields:
            self._fields[name] = list(self._build_fields(descriptor))
        return self._fields[name]

    def _build_fields(self, descriptor: Any) -> Iterator[_Field]:  # noqa: ANN401  # as above
        # Read from a DescriptorProto, because other ways to recognise repeated fields depend on the package's version.
        file_form = self._descriptor.DescriptorProto()
        descriptor.CopyToProto(file_form)
        repeated = {field.name for field in file_form.field if field.label == field.LABEL_REPEATED}
        for field in descriptor.fields:
            inner = field.message_type
            if field.name not in repeated:
                yield _Field(field.name, field.has_presence, self._single(field))
            elif inner is not None and inner.GetOptions().map_entry:
                if _MAP_VALUE not in inner.fields_by_number:
                    raise UnusableSchema(f"the entries of its map {field.name} have no values")
                yield _Field(field.name, False, self._map(self._single(inner.fields_by_number[_MAP_VALUE])))  # noqa: FBT003
            else:
                yield _Field(field.name, False, _list)  # noqa: FBT003

    def _map(self, plain: _Plain) -> _Plain:
        return lambda entries, budget, depth: self._object(entries, budget, depth, plain)

    def _single(self, field: Any) -> _Plain:  # noqa: ANN401  # a descriptor
        if field.message_type is not None:
            return self._plain
        if field.enum_type is not None:
            names = {value.number: value.name for value in field.enum_type.values}
            return lambda number, _budget, _depth: names.get(number, number)
        return _unchanged


def _unchanged(value: Any, budget: ValueBudget, depth: int) -> Any:  # noqa: ANN401  # a scalar
    del budget, depth
    return value


def _list(values: Any, budget: ValueBudget, depth: int) -> list[Any]:  # noqa: ANN401  # a container
    del values
    budget.check_depth(depth + 1)
    return []
