"""From a client's message to a record, where the client does what it never should."""

from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME

from consumer.kafka.message import TopicRecord
from consumer.kafka.source.records import record_of
from consumer.model.errors import BadRecord

BYTES_MAX = 1_000_000


class Received:
    """Stands in for a message; what ``failing`` names raises as the client's C code does."""

    def __init__(self, *failing: str, value: bytes | None = b"value") -> None:
        self._failing = failing
        self._value = value

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # each of the client's accessors
        given = {
            "topic": "t", "partition": 3, "offset": 7, "key": b"k", "value": self._value, "headers": [("h", b"1")],
            "timestamp": (TIMESTAMP_CREATE_TIME, 5), "leader_epoch": 1,
        }[name]  # fmt: skip

        def accessor() -> object:
            if name in self._failing:
                raise SystemError(f"{name} returned a result with an exception set")
            return given

        return accessor


def read(message: Received) -> tuple[TopicRecord, bytes, BadRecord | None]:
    """The record, its value and its fault."""
    record = record_of(message, BYTES_MAX)  # type: ignore[arg-type]  # it has what a message has
    return record, record.data, record.fault


@pytest.mark.parametrize("failing", ["value", "key", "timestamp", "leader_epoch"])
def test_whatever_raises_is_a_fault_of_this_record_alone(failing: str) -> None:
    """It keeps its place, so that the next one can be read, and what could be had of it."""
    message, data, fault = read(Received(failing))
    assert (message.partition, message.start) == (("t", 3), 7)
    assert fault is not None
    assert fault.reason == "unreadable_message"
    assert failing in fault.detail
    assert data == (b"" if failing == "value" else b"value")
    assert message.key == (None if failing == "key" else b"k")


def test_headers_that_cannot_be_had_at_all_are_no_fault() -> None:
    """Nothing is decided by them: the record is judged, and says that it had some."""
    message, data, fault = read(Received("headers"))
    assert (data, fault) == (b"value", None)
    assert (message.headers, message.headers_lost) == ((("dupwatch-headers-lost", b"1"),), 1)


def test_lost_headers_are_counted_in_a_record_that_is_cut() -> None:
    """The client may return no headers of a message that is too large for a dead letter."""
    record = record_of(Received("headers", value=b"x" * 100_000), 70_000)  # type: ignore[arg-type]  # as above
    assert (record.headers, record.headers_lost) == ((("dupwatch-headers-lost", b"1"),), 1)


def test_a_message_that_cannot_be_told_from_another_ends_the_run() -> None:
    """Without its offset nobody could go on behind it."""
    with pytest.raises(SystemError):
        read(Received("offset"))


def test_what_is_kept_of_an_unreadable_message_is_bounded() -> None:
    """As of every dead letter."""
    record = record_of(Received("key", value=b"x" * 100_000), BYTES_MAX)  # type: ignore[arg-type]  # as above
    assert (len(record.data), record.size_bytes, len(record.sha256 or b"")) == (65_536, 100_000, 32)
