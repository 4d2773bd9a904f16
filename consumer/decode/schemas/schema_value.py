"""Parses values in Confluent's wire format, with schemas from a registry.

A value consists of the byte 0, the schema's id (four bytes, big-endian) and the payload. A Protobuf payload begins with
the position of its message type in the schema's file. A schema is fetched for the first record that needs it.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from consumer.decode.article import Parse
from consumer.decode.schemas.avro import avro_reader
from consumer.decode.schemas.budgets import ValueBudget
from consumer.decode.schemas.protobuf import protobuf_reader
from consumer.decode.schemas.registry import (
    ConfluentRegistry,
    Registry,
    RegistryOptions,
    SchemaFormat,
    StoredSchema,
    UnusableSchema,
)
from consumer.lifecycle.retry import RetryPolicy
from consumer.model.article import Reason
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits

SCHEMAS_MAX: Final = 1_000
"""The maximum number of cached schemas, and of cached unknown ids. The oldest ones are dropped first."""
UNKNOWN_S: Final = 10.0
"""How many seconds to wait before requesting an unknown id again."""
_MAGIC: Final = 0
_ID: Final = slice(1, 5)
_HEAD_BYTES: Final = 5

Result = TypeVar("Result")
PayloadReader = Callable[[bytes, ValueBudget], object]
Compile = Callable[[StoredSchema], PayloadReader]

_READERS: Final[Mapping[SchemaFormat, Compile]] = {"avro": avro_reader, "protobuf": protobuf_reader}


def schema_parser(
    schema_format: SchemaFormat, options: RegistryOptions, retry: RetryPolicy, limits: DecodeLimits
) -> Parse:
    """Return a parser of values of one format. Raises ``ConfigError`` if the registry's client cannot be used."""
    return SchemaParser(schema_format, ConfluentRegistry(options, schema_format), retry, limits).parse


class SchemaParser:
    """A parser of values with the schemas of a registry, for one thread. ``clock`` returns monotonic seconds."""

    def __init__(
        self,
        schema_format: SchemaFormat,
        registry: Registry,
        retry: RetryPolicy,
        limits: DecodeLimits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._format = schema_format
        self._registry = registry
        self._retry = retry
        self._limits = limits
        self._clock = clock
        self._readers: dict[int, PayloadReader | BadRecord] = {}
        self._unknown_s: dict[int, float] = {}

    def parse(self, data: bytes) -> object:
        """Parse a value into plain objects. Raises ``BadRecord`` and the errors of ``RetryPolicy`` and ``Registry``."""
        schema_id = self._id(data)
        read = self._reader(schema_id)
        if isinstance(read, BadRecord):
            raise BadRecord(read.reason, read.detail)
        payload = data[_HEAD_BYTES:]
        try:
            return read(payload, ValueBudget(len(payload), self._limits.depth_max, self._limits.values_max))
        except UnusableSchema as error:
            raise _unusable(schema_id, error) from error

    def _id(self, data: bytes) -> int:
        if len(data) < _HEAD_BYTES or data[0] != _MAGIC:
            raise BadRecord(
                Reason.NO_SCHEMA_ID,
                f"the value does not begin with a 0 and a schema id, so it is not {self._format} with a registry",
            )
        schema_id = int.from_bytes(data[_ID], "big", signed=True)
        if schema_id < 0:
            # Registries answer a negative id with an internal error.
            raise BadRecord(Reason.UNKNOWN_SCHEMA, f"{schema_id} is not a valid schema id")
        return schema_id

    def _reader(self, schema_id: int) -> PayloadReader | BadRecord:
        known = self._readers.get(schema_id)
        if known is not None:
            return known
        if self._clock() < self._unknown_s.get(schema_id, float("-inf")):
            return _unknown(schema_id)
        read = self._retry.call(lambda: self._load_reader(schema_id))
        if read is None:
            _keep(self._unknown_s, schema_id, self._clock() + UNKNOWN_S)
            return _unknown(schema_id)
        _keep(self._readers, schema_id, read)
        return read

    def _load_reader(self, schema_id: int) -> PayloadReader | BadRecord | None:
        """Return the reader for a schema, or the reason it cannot be used; None if the registry does not know it."""
        try:
            schema = self._registry.schema(schema_id)
            return None if schema is None else self._compile(schema)
        except UnusableSchema as error:
            return _unusable(schema_id, error)

    def _compile(self, schema: StoredSchema) -> PayloadReader:
        if schema.kind != self._format.upper():
            raise UnusableSchema(f'it is a schema of {schema.kind}, but kafka.value_format is "{self._format}"')
        return _READERS[self._format](schema)


def _unknown(schema_id: int) -> BadRecord:
    return BadRecord(
        Reason.UNKNOWN_SCHEMA, f"the registry does not have schema {schema_id}, or not everything that it refers to"
    )


def _unusable(schema_id: int, error: UnusableSchema) -> BadRecord:
    return BadRecord(Reason.UNUSABLE_SCHEMA, f"schema {schema_id} cannot be used: {error}")


Cached = TypeVar("Cached")


def _keep(kept: dict[int, Cached], schema_id: int, value: Cached) -> None:
    kept.pop(schema_id, None)
    kept[schema_id] = value
    if len(kept) > SCHEMAS_MAX:
        del kept[next(iter(kept))]
