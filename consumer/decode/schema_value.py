"""Values in Confluent's wire format: which schema they were written by, and what that makes of them.

A value begins with the byte 0 and the schema's id, four bytes, big-endian; then comes the payload, in Protobuf with the
message's position in its file before it. A schema is asked for when the first record that was written by it comes.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeVar

from consumer.decode.article import Parse
from consumer.decode.avro import avro_reader
from consumer.decode.memory_budget import Room
from consumer.decode.protobuf import protobuf_reader
from consumer.decode.registry import (
    ConfluentRegistry,
    Registry,
    RegistryOptions,
    SchemaFormat,
    StoredSchema,
    UnusableSchema,
)
from consumer.model.article import Reason
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits

SCHEMAS_MAX: Final = 1_000
"""Schemas that are kept, and ids that there are none of; those that came first go first."""
UNKNOWN_S: Final = 10.0
"""For how long an id that the registry does not know is not asked for again."""
_MAGIC: Final = 0
_ID: Final = slice(1, 5)
_HEAD_BYTES: Final = 5

Result = TypeVar("Result")
Read = Callable[[bytes, Room], object]
Compile = Callable[[StoredSchema], Read]

_READERS: Final[Mapping[SchemaFormat, Compile]] = {"avro": avro_reader, "protobuf": protobuf_reader}


class Patience(Protocol):
    """What is done while the registry is out of reach."""

    def call(self, work: Callable[[], Result]) -> Result:
        """Make a call, which may be made again. Raises its error, or what ends the waiting."""
        ...


def schema_parser(written: SchemaFormat, options: RegistryOptions, patience: Patience, limits: DecodeLimits) -> Parse:
    """What parses values of one format with the schemas of a registry. ConfigError where there can be no client."""
    return Written(written, ConfluentRegistry(options, written), patience, limits).parse


class Written:
    """Parses values; for one thread. ``clock`` gives seconds that never go back."""

    def __init__(
        self,
        written: SchemaFormat,
        registry: Registry,
        patience: Patience,
        limits: DecodeLimits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._written = written
        self._registry = registry
        self._patience = patience
        self._limits = limits
        self._clock = clock
        self._reads: dict[int, Read | BadRecord] = {}
        self._unknown_s: dict[int, float] = {}

    def parse(self, data: bytes) -> object:
        """Plain values of a value. Raises ``BadRecord``, and what ``Patience`` and ``Registry`` raise."""
        schema_id = self._id(data)
        read = self._read(schema_id)
        if isinstance(read, BadRecord):
            raise BadRecord(read.reason, read.detail)
        payload = data[_HEAD_BYTES:]
        return read(payload, Room(len(payload), self._limits.depth_max, self._limits.values_max))

    def _id(self, data: bytes) -> int:
        if len(data) < _HEAD_BYTES or data[0] != _MAGIC:
            raise BadRecord(
                Reason.NO_SCHEMA_ID,
                f"the value does not begin with a 0 and the id of a schema: it is not {self._written} with a registry",
            )
        schema_id = int.from_bytes(data[_ID], "big", signed=True)
        if schema_id < 0:
            # Registries take it for something else than an id, and their answer for a fault of their own.
            raise BadRecord(Reason.UNKNOWN_SCHEMA, f"there can be no schema {schema_id}")
        return schema_id

    def _read(self, schema_id: int) -> Read | BadRecord:
        known = self._reads.get(schema_id)
        if known is not None:
            return known
        if self._clock() < self._unknown_s.get(schema_id, float("-inf")):
            return _unknown(schema_id)
        read = self._patience.call(lambda: self._ask(schema_id))
        if read is None:
            _keep(self._unknown_s, schema_id, self._clock() + UNKNOWN_S)
            return _unknown(schema_id)
        _keep(self._reads, schema_id, read)
        return read

    def _ask(self, schema_id: int) -> Read | BadRecord | None:
        """What reads by a schema, or why nothing does; None where the registry does not know it."""
        try:
            schema = self._registry.schema(schema_id)
            return None if schema is None else self._compiled(schema)
        except UnusableSchema as why:
            return BadRecord(Reason.UNUSABLE_SCHEMA, f"nothing can be read by schema {schema_id}: {why}")

    def _compiled(self, schema: StoredSchema) -> Read:
        if schema.kind != self._written.upper():
            raise UnusableSchema(f'it is of {schema.kind}, and kafka.value_format is "{self._written}"')
        return _READERS[self._written](schema)


def _unknown(schema_id: int) -> BadRecord:
    return BadRecord(Reason.UNKNOWN_SCHEMA, f"the registry has no schema {schema_id}, or not all that it refers to")


Kept = TypeVar("Kept")


def _keep(kept: dict[int, Kept], schema_id: int, what: Kept) -> None:
    kept.pop(schema_id, None)
    kept[schema_id] = what
    if len(kept) > SCHEMAS_MAX:
        del kept[next(iter(kept))]
