"""Decodes Avro's binary encoding into plain values, by the schema of the writer (specification 1.11).

No library is used, because safety against hostile payloads matters more than speed. The compiled fastavro overruns the
stack on 5,000 bytes of a schema that refers to itself, and makes a list of any length out of ten bytes. This reader
limits the depth and the number of values by the ``ValueBudget`` of the payload.

A schema is compiled to functions once. Bytes, fixed and decimals become ``bytes``. An enum becomes its symbol. A list
becomes an empty list, since no field is read from a list. Times take forms that ``published_at`` accepts: a timestamp
becomes its seconds since 1970, and a date those of its midnight in UTC. A local timestamp, whose time zone is unknown,
becomes a text without an offset.
"""

import struct
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from consumer.decode.published_at import Instant
from consumer.decode.schemas.budgets import ValueBudget
from consumer.decode.schemas.registry import StoredSchema, UnusableSchema, mismatch
from consumer.model.article import Reason
from consumer.model.errors import BadRecord

_VARINT_BYTES_MAX: Final = 10
_PER_SECOND: Final = {"millis": 1_000, "micros": 1_000_000, "nanos": 1_000_000_000}
_DAY_S: Final = 86_400
_LOCAL_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  # a local time has no zone
_US_PER_S: Final = 1_000_000


class _Cursor:
    """The reader's position in a payload."""

    __slots__ = ("at", "budget", "data")

    def __init__(self, data: bytes, budget: ValueBudget) -> None:
        self.data = data
        self.at = 0
        self.budget = budget

    def long(self) -> int:
        """Read a variable-length number in zigzag encoding."""
        value = shift = 0
        for byte in self.data[self.at : self.at + _VARINT_BYTES_MAX]:
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004  # the continuation bit
                return (value >> 1) ^ -(value & 1)
            shift += 7
        raise mismatch("it ends within a number, or a number has more than 64 bits")

    def take(self, size: int) -> bytes:
        """Read this many bytes."""
        if not 0 <= size <= len(self.data) - self.at:
            raise mismatch(f"it announces {size} bytes where {len(self.data) - self.at} are left")
        self.at += size
        return self.data[self.at - size : self.at]


_Reader = Callable[[_Cursor, int], Any]
"""Reads one value. The second argument is the depth of the value, in objects and lists."""


def avro_reader(schema: StoredSchema) -> Callable[[bytes, ValueBudget], object]:
    """Return a function that reads a payload of this schema or raises ``BadRecord``.

    Raises ``UnusableSchema`` if no payload can be read with the schema.
    """
    compiler = _SchemaCompiler()
    try:
        for text in schema.references.values():
            compiler.reader_of(msgspec.json.decode(text), "")
        read = compiler.reader_of(msgspec.json.decode(schema.text), "")
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnusableSchema(f"it is not an Avro schema: {error}") from error
    compiler.check()

    def read_payload(payload: bytes, budget: ValueBudget) -> object:
        cursor = _Cursor(payload, budget)
        try:
            value = read(cursor, 0)
        except RecursionError as error:
            raise BadRecord(Reason.NESTED_TOO_DEEP, "objects are nested too deep to be parsed") from error
        if cursor.at != len(payload):
            raise mismatch(f"{len(payload) - cursor.at} bytes are left over")
        return value

    return read_payload


class _SchemaCompiler:
    """A compiler from schemas to functions. A named type may be used within its own definition."""

    def __init__(self) -> None:
        self._named: dict[str, _Reader] = {}
        self._used: set[str] = set()

    def check(self) -> None:
        """Raise ``UnusableSchema`` if the schema uses an undefined type."""
        if unknown := self._used - self._named.keys():
            raise UnusableSchema(f"it uses types that it does not define: {', '.join(sorted(unknown))}")

    def reader_of(self, schema: Any, namespace: str) -> _Reader:  # noqa: ANN401  # JSON
        """Return the function that reads a value of this schema, within a namespace."""
        match schema:
            case str():
                return _PRIMITIVES.get(schema) or self._reader_by_name(_full_name(schema, namespace))
            case [*branches]:
                return _union([self.reader_of(branch, namespace) for branch in branches])
            case {"name": str(name), "type": "record" | "error" | "enum" | "fixed"}:
                return self._define_type(_full_name(name, schema.get("namespace", namespace)), schema)
            case {"type": _}:
                return self._unnamed_reader(schema, namespace)
        raise _not_a_schema(schema)

    def _unnamed_reader(self, schema: dict[str, Any], namespace: str) -> _Reader:
        match schema:
            case {"type": "array", "items": items}:
                return _array(self.reader_of(items, namespace))
            case {"type": "map", "values": values}:
                return _map(self.reader_of(values, namespace))
            case {"type": str(name), "logicalType": str(logical)} if (name, logical) in _TIME_TYPES:
                return _TIME_TYPES[name, logical]
        return self.reader_of(schema["type"], namespace)

    def _define_type(self, name: str, schema: dict[str, Any]) -> _Reader:
        match schema:
            case {"fields": [*fields]}:
                read = self._record(name.rpartition(".")[0], fields)
            case {"symbols": [*symbols]}:
                read = _enum(symbols)
            case {"size": int(size)} if size >= 0:
                read = _fixed(size)
            case _:
                raise _not_a_schema(schema)
        self._named[name] = read
        return read

    def _reader_by_name(self, name: str) -> _Reader:
        if name in self._named:
            return self._named[name]
        self._used.add(name)

        def read(cursor: _Cursor, depth: int) -> Any:  # noqa: ANN401  # depends on the schema
            return self._named[name](cursor, depth)

        return read

    def _record(self, namespace: str, fields: list[Any]) -> _Reader:
        reads: list[tuple[str, _Reader]] = []
        for field in fields:
            match field:
                case {"name": str(field_name), "type": inner}:
                    reads.append((field_name, self.reader_of(inner, namespace)))
                case _:
                    raise _not_a_schema(field)

        def read(cursor: _Cursor, depth: int) -> dict[str, Any]:
            cursor.budget.check_depth(depth + 1)
            cursor.budget.take(len(reads))
            return {field_name: read_field(cursor, depth + 1) for field_name, read_field in reads}

        return read


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _not_a_schema(value: object) -> UnusableSchema:
    return UnusableSchema(f"it is not an Avro schema: {value!r:.80}")


def _block(cursor: _Cursor) -> int:
    """Read and return the number of items that follow.

    A negative number means its absolute value, and is followed by the size of the items in bytes, which is skipped.
    """
    count = cursor.long()
    if count < 0:
        cursor.long()
    return abs(count)


def _array(read_item: _Reader) -> _Reader:
    def read(cursor: _Cursor, depth: int) -> list[Any]:
        cursor.budget.check_depth(depth + 1)
        while count := _block(cursor):
            # Ten bytes can announce any number of items that take no bytes themselves.
            cursor.budget.take(count)
            for _ in range(count):
                read_item(cursor, depth + 1)
        return []

    return read


def _map(read_value: _Reader) -> _Reader:
    def read(cursor: _Cursor, depth: int) -> dict[str, Any]:
        cursor.budget.check_depth(depth + 1)
        values: dict[str, Any] = {}
        while count := _block(cursor):
            cursor.budget.take(count)
            for _ in range(count):
                name = _string(cursor, depth)
                values[name] = read_value(cursor, depth + 1)
        return values

    return read


def _fixed(size: int) -> _Reader:
    def read(cursor: _Cursor, depth: int) -> bytes:
        del depth
        return cursor.take(size)

    return read


def _union(branches: list[_Reader]) -> _Reader:
    def read(cursor: _Cursor, depth: int) -> Any:  # noqa: ANN401  # depends on the schema
        branch = cursor.long()
        if not 0 <= branch < len(branches):
            raise mismatch(f"it names branch {branch} of a union of {len(branches)}")
        return branches[branch](cursor, depth)

    return read


def _enum(symbols: list[Any]) -> _Reader:
    def read(cursor: _Cursor, depth: int) -> Any:  # noqa: ANN401  # a string in valid schemas
        del depth
        symbol = cursor.long()
        if not 0 <= symbol < len(symbols):
            raise mismatch(f"it names symbol {symbol} of an enum of {len(symbols)}")
        return symbols[symbol]

    return read


def _null(cursor: _Cursor, depth: int) -> None:
    del cursor, depth


def _boolean(cursor: _Cursor, depth: int) -> bool:
    del depth
    byte = cursor.take(1)
    if byte not in {b"\0", b"\1"}:
        raise mismatch("a boolean is neither 0 nor 1")
    return byte == b"\1"


def _long(cursor: _Cursor, depth: int) -> int:
    del depth
    return cursor.long()


def _number(form: str) -> _Reader:
    packed = struct.Struct(form)

    def read(cursor: _Cursor, depth: int) -> float:
        del depth
        number: float = packed.unpack(cursor.take(packed.size))[0]
        return number

    return read


def _bytes(cursor: _Cursor, depth: int) -> bytes:
    del depth
    return cursor.take(cursor.long())


def _string(cursor: _Cursor, depth: int) -> str:
    try:
        return _bytes(cursor, depth).decode()
    except UnicodeDecodeError as error:
        raise BadRecord(
            Reason.INVALID_UTF8, f"a string is not UTF-8: {error.reason} at its byte {error.start}"
        ) from error


def _timestamp(per_second: int) -> _Reader:
    return lambda cursor, _: Instant(cursor.long() / per_second)


def _local_timestamp(per_second: int) -> _Reader:
    def read(cursor: _Cursor, depth: int) -> str | Instant:
        del depth
        value = cursor.long()
        try:
            return (_LOCAL_EPOCH + timedelta(microseconds=value * _US_PER_S // per_second)).isoformat()
        except OverflowError:
            # Beyond any calendar. A plain number could be mistaken for a time in another unit.
            return Instant(value / per_second)

    return read


def _date(cursor: _Cursor, depth: int) -> Instant:
    del depth
    return Instant(cursor.long() * _DAY_S)


_PRIMITIVES: Final[Mapping[str, _Reader]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _long,
    "long": _long,
    "float": _number("<f"),
    "double": _number("<d"),
    "bytes": _bytes,
    "string": _string,
}
_TIME_TYPES: Final[Mapping[tuple[str, str], _Reader]] = {
    ("int", "date"): _date,
    **{("long", f"timestamp-{unit}"): _timestamp(parts) for unit, parts in _PER_SECOND.items()},
    **{("long", f"local-timestamp-{unit}"): _local_timestamp(parts) for unit, parts in _PER_SECOND.items()},
}
