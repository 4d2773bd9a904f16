"""Converts messages of the Kafka client to records.

Every message goes through ``record_of``, which raises only if the client cannot return the message's position.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from itertools import accumulate
from typing import TypeVar

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE
from confluent_kafka import Message as ClientMessage

from consumer.kafka.message import TopicRecord
from consumer.kafka.source.client_headers import HEADERS_LOST, UNREADABLE_NAME, ClientHeaders, read_client_headers
from consumer.model.article import Reason, record_too_long
from consumer.model.dead_letter import DEAD_LETTER_RAW_BYTES_MAX
from consumer.model.errors import BadRecord
from consumer.model.record import NO_TIME_MS, headers_bytes

Value = TypeVar("Value")


def record_of(message: ClientMessage, record_bytes_max: int) -> TopicRecord:
    """Return a message as a record. A record over the size limit has a fault.

    If it is also too large for a dead letter, it has only its first bytes and a digest of the whole value. Key and
    headers count towards the sizes, so that a dead letter fits into a topic that accepts the record. A message that the
    client fails to return becomes a record with a fault and the parts that could be read.
    """
    try:
        return _read_record(message, record_bytes_max)
    except Exception as error:  # noqa: BLE001  # the client's C code may raise anything, and only this message is at fault
        return _unreadable_record(message, error)


def _read_record(message: ClientMessage, record_bytes_max: int) -> TopicRecord:
    value, key, headers = message.value(), message.key(), read_client_headers(message)
    data = value or b""
    size_bytes, sha256, fault = len(data), None, None
    whole_bytes = size_bytes + len(key or b"") + headers_bytes(headers.pairs)
    if whole_bytes > record_bytes_max:
        if size_bytes <= record_bytes_max:
            size_bytes = whole_bytes
        fault = record_too_long(size_bytes, record_bytes_max)
    if whole_bytes > max(record_bytes_max, DEAD_LETTER_RAW_BYTES_MAX):
        sha256 = hashlib.sha256(data).digest()
        data, key = data[:DEAD_LETTER_RAW_BYTES_MAX], None if key is None else key[:DEAD_LETTER_RAW_BYTES_MAX]
        headers = _shorten_headers(headers)
    kind, time_ms = message.timestamp()
    return TopicRecord(
        line=0,
        start=message.offset() or 0,
        data=data,
        size_bytes=size_bytes,
        sha256=sha256,
        fault=fault,
        partition=(message.topic() or "", message.partition() or 0),
        key=key,
        headers=headers.pairs,
        time_ms=NO_TIME_MS if kind == TIMESTAMP_NOT_AVAILABLE else time_ms,
        is_null=value is None,
        headers_lost=headers.lost,
        leader_epoch=message.leader_epoch(),
    )


def _shorten_headers(headers: ClientHeaders) -> ClientHeaders:
    """Return the first headers, up to the size that a dead letter keeps of a value."""
    original = headers.pairs[:-1] if headers.lost else headers.pairs
    ends = accumulate(headers_bytes([header]) for header in original)
    kept = original[: sum(end <= DEAD_LETTER_RAW_BYTES_MAX for end in ends)]
    # If the client returned no list, no header is left to count.
    lost = len(original) - len(kept) + sum(name == UNREADABLE_NAME for name, _ in kept) or headers.lost
    note = ((HEADERS_LOST, b"%d" % lost),) if lost else ()
    return ClientHeaders((*kept, *note), lost)


def _unreadable_record(message: ClientMessage, error: Exception) -> TopicRecord:
    # An exception from these three calls ends the run: reading cannot continue after a message without a position.
    topic, number, offset = message.topic() or "", message.partition() or 0, message.offset() or 0
    value = _attempt(message.value, None)
    data = (value or b"")[:DEAD_LETTER_RAW_BYTES_MAX]
    size_bytes = len(value or b"")
    return TopicRecord(
        line=0,
        start=offset,
        data=data,
        size_bytes=size_bytes,
        sha256=hashlib.sha256(value or b"").digest() if len(data) < size_bytes else None,
        fault=BadRecord(Reason.UNREADABLE_MESSAGE, f"the Kafka client cannot return this message: {error!r}"),
        partition=(topic, number),
        key=_attempt(message.key, None),
        is_null=value is None,
    )


def _attempt(read: Callable[[], Value], otherwise: Value) -> Value:
    with suppress(Exception):
        return read()
    return otherwise
