"""From a message of the Kafka client to a record.

Every message that is read anywhere goes through ``record_of``. No content of a message makes it raise.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import TypeVar

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE
from confluent_kafka import Message as ClientMessage

from consumer.kafka.source.client_headers import HEADERS_LOST, UNREADABLE_NAME, read_client_headers
from consumer.model.article import Reason, record_too_long
from consumer.model.dead_letter import DEAD_LETTER_RAW_BYTES_MAX
from consumer.model.errors import BadRecord
from consumer.model.record import NO_TIME_MS, Message, Position, RawRecord, headers_bytes

Value = TypeVar("Value")

_NOWHERE = Position()


def record_of(message: ClientMessage, record_bytes_max: int) -> RawRecord:
    """Return the message as a record; over the limit, as in ``lines``, its first bytes and a digest of the whole.

    Key and headers count too, so that a dead letter fits into a topic that accepts the record. A message that the
    client fails to return becomes a record with a fault, which has as much of it as could be read.
    """
    try:
        return _read(message, record_bytes_max)
    except Exception as error:  # noqa: BLE001  # the client's C code may raise anything, and only this message is at fault
        return _unreadable(message, error)


def _read(message: ClientMessage, record_bytes_max: int) -> RawRecord:
    value = message.value()
    data = value or b""
    size_bytes, sha256, fault = len(data), None, None
    copied, offset = _message_of(message, null_value=value is None), message.offset() or 0
    whole_bytes = size_bytes + len(copied.key or b"") + headers_bytes(copied.headers)
    if whole_bytes > record_bytes_max:
        if size_bytes <= record_bytes_max:
            size_bytes = whole_bytes
        fault = record_too_long(size_bytes, record_bytes_max)
    if whole_bytes > max(record_bytes_max, DEAD_LETTER_RAW_BYTES_MAX):
        sha256 = hashlib.sha256(data).digest()
        data, copied = data[:DEAD_LETTER_RAW_BYTES_MAX], _shortened(copied)
    return RawRecord(0, offset, data, size_bytes, sha256, fault, _NOWHERE, copied)


def _shortened(message: Message) -> Message:
    """Return the message with its key and headers cut to what a dead letter keeps of a value."""
    original = message.headers[:-1] if message.headers_lost else message.headers
    ends = accumulate(headers_bytes([header]) for header in original)
    kept = original[: sum(end <= DEAD_LETTER_RAW_BYTES_MAX for end in ends)]
    lost = len(original) - len(kept) + sum(name == UNREADABLE_NAME for name, _ in kept)
    note = ((HEADERS_LOST, b"%d" % lost),) if lost else ()
    key = None if message.key is None else message.key[:DEAD_LETTER_RAW_BYTES_MAX]
    return replace(message, key=key, headers=(*kept, *note), headers_lost=lost)


def _message_of(message: ClientMessage, *, null_value: bool) -> Message:
    kind, time_ms = message.timestamp()
    headers = read_client_headers(message)
    return Message(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        key=message.key(),
        headers=headers.pairs,
        timestamp_ms=NO_TIME_MS if kind == TIMESTAMP_NOT_AVAILABLE else time_ms,
        null_value=null_value,
        leader_epoch=message.leader_epoch(),
        headers_lost=headers.lost,
    )


def _unreadable(message: ClientMessage, error: Exception) -> RawRecord:
    # Without its position, reading could not continue behind it: what these three raise ends the run.
    topic, partition, offset = message.topic() or "", message.partition() or 0, message.offset() or 0
    value = _attempt(message.value, None)
    data = (value or b"")[:DEAD_LETTER_RAW_BYTES_MAX]
    size_bytes = len(value or b"")
    sha256 = hashlib.sha256(value or b"").digest() if len(data) < size_bytes else None
    fault = BadRecord(Reason.UNREADABLE_MESSAGE, f"the Kafka client cannot return this message: {error!r}")
    copied = Message(topic, partition, offset, _attempt(message.key, None), (), NO_TIME_MS, null_value=value is None)
    return RawRecord(0, offset, data, size_bytes, sha256, fault, _NOWHERE, copied)


def _attempt(read: Callable[[], Value], otherwise: Value) -> Value:
    with suppress(Exception):
        return read()
    return otherwise
