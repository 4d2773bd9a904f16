"""Values and the schemas they were written by: whose fault what is, and how often a registry is asked."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from consumer.decode.schemas import schema_value as module
from consumer.decode.schemas.registry import RegistryUnavailable, StoredSchema, UnusableSchema
from consumer.decode.schemas.schema_value import UNKNOWN_S, SchemaParser
from consumer.model.article import Reason
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits

Result = TypeVar("Result")
STRING = StoredSchema("AVRO", '"string"', {})
VALUE = b"\0\0\0\0\7\2a"


class Schemas:
    """A registry that has schemas 7 and below, or is away, or says what a test wants."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.away = 0
        self.says: StoredSchema | Exception = STRING

    def schema(self, schema_id: int) -> StoredSchema | None:
        """As the port says."""
        self.asked.append(schema_id)
        if self.away:
            self.away -= 1
            raise RegistryUnavailable("no route")
        if isinstance(self.says, Exception):
            raise self.says
        return self.says if schema_id <= 7 else None


class Patient:
    """Asks again for ever, and counts."""

    def __init__(self) -> None:
        self.waits = 0

    def call(self, work: Callable[[], Result]) -> Result:
        """As the port says."""
        while True:
            try:
                return work()
            except RegistryUnavailable:
                self.waits += 1


class Clock:
    """Seconds that pass when the test says so."""

    now_s = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now_s


def values(schemas: Schemas, patient: Patient | None = None, clock: Clock | None = None) -> SchemaParser:
    """Values in Avro."""
    return SchemaParser("avro", schemas, patient or Patient(), DecodeLimits(), clock or Clock())


def reason(data: bytes, schemas: Schemas | None = None) -> str:
    """Why a value is refused."""
    with pytest.raises(BadRecord) as caught:
        values(schemas or Schemas()).parse(data)
    return caught.value.reason


def test_a_schema_is_asked_for_once() -> None:
    """When the first value that was written by it comes."""
    schemas = Schemas()
    parse = values(schemas).parse
    assert [parse(VALUE), parse(VALUE), parse(b"\0\0\0\0\6\0"), parse(VALUE)] == ["a", "a", "", "a"]
    assert schemas.asked == [7, 6]


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\0", b'{"id": "a", "body": "x"}', b"\1" + bytes(20), b"\2a"])
def test_a_value_without_a_schema_is_told_apart(data: bytes) -> None:
    """Nothing, JSON, an id in the headers, Avro without a registry: none is asked for it."""
    schemas = Schemas()
    assert reason(data, schemas) == Reason.NO_SCHEMA_ID
    assert schemas.asked == []


def test_a_schema_that_there_cannot_be_is_not_asked_for() -> None:
    """Registries answer 404 to more than 31 bits, without their own code: it would look like an outage."""
    schemas = Schemas()
    assert reason(b"\0\xff\xff\xff\xff\2a", schemas) == Reason.UNKNOWN_SCHEMA
    assert schemas.asked == []


def test_an_unknown_schema_is_asked_for_again_after_a_while() -> None:
    """It may be registered yet; but a flood of such values is not a flood of questions."""
    schemas, clock = Schemas(), Clock()
    parse = values(schemas, clock=clock).parse
    for _ in range(5):
        with pytest.raises(BadRecord, match="unknown_schema"):
            parse(b"\0\0\0\0\x09\2a")
    assert schemas.asked == [9]
    clock.now_s = UNKNOWN_S
    with pytest.raises(BadRecord, match="not have schema 9"):
        parse(b"\0\0\0\0\x09\2a")
    assert schemas.asked == [9, 9]


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        (StoredSchema("PROTOBUF", "AAAA", {}), 'it is a schema of PROTOBUF, but kafka.value_format is "avro"'),
        (StoredSchema("AVRO", "{", {}), "it is not an Avro schema"),
        (UnusableSchema("it refers to more than 100 others"), "more than 100 others"),
    ],
)
def test_a_schema_that_cannot_be_used_is_asked_for_once(says: StoredSchema | Exception, expected: str) -> None:
    """Schemas never change; every value written by it is refused for what is wrong with the schema."""
    schemas = Schemas()
    schemas.says = says
    parse = values(schemas).parse
    for _ in range(3):
        with pytest.raises(BadRecord, match=expected) as caught:
            parse(VALUE)
        assert caught.value.reason == Reason.UNUSABLE_SCHEMA
    assert schemas.asked == [7]


def test_a_payload_that_does_not_fit_is_its_own_fault() -> None:
    """The values before and after it are read."""
    parse = values(Schemas()).parse
    with pytest.raises(BadRecord, match="schema_mismatch"):
        parse(b"\0\0\0\0\7\x09a")
    assert parse(VALUE) == "a"


def test_a_registry_that_is_away_is_no_fault_of_the_record() -> None:
    """It is left to the patience, which asks again; without any the run ends."""
    schemas, patient = Schemas(), Patient()
    schemas.away = 3
    assert values(schemas, patient).parse(VALUE) == "a"
    assert patient.waits == 3


def test_what_is_kept_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came first goes first, of schemas and of ids that there are none of."""
    monkeypatch.setattr(module, "SCHEMAS_MAX", 2)
    schemas = Schemas()
    parse = values(schemas).parse
    for schema_id in (1, 2, 3, 3, 2, 1):
        assert parse(bytes([0, 0, 0, 0, schema_id, 2]) + b"a") == "a"
    for schema_id in (11, 12, 13, 13, 12, 11):
        with pytest.raises(BadRecord):
            parse(bytes([0, 0, 0, 0, schema_id, 2]) + b"a")
    assert schemas.asked == [1, 2, 3, 1, 11, 12, 13, 11]
