"""From a message as the Kafka client gives it to a record."""

import hashlib
from typing import cast

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE
from confluent_kafka import Message as ClientMessage

from consumer.article import record_too_long
from consumer.dead_letter import DEAD_LETTER_RAW_BYTES_MAX
from consumer.ports import Message, Position, RawRecord

_NOWHERE = Position()
_NO_TIME_MS = -1


def record_of(message: ClientMessage, record_bytes_max: int) -> RawRecord:
    """The message as a record; of one over the limit, as in ``lines``, the first bytes and a digest of the whole."""
    value = message.value()
    data = value or b""
    size_bytes, sha256, fault = len(data), None, None
    if size_bytes > max(record_bytes_max, DEAD_LETTER_RAW_BYTES_MAX):
        sha256 = hashlib.sha256(data).digest()
        data = data[:DEAD_LETTER_RAW_BYTES_MAX]
    if size_bytes > record_bytes_max:
        fault = record_too_long(size_bytes, record_bytes_max)
    meant, offset = _message_of(message, null_value=value is None), message.offset() or 0
    return RawRecord(0, offset, data, size_bytes, sha256, fault, _NOWHERE, meant)


def _message_of(message: ClientMessage, *, null_value: bool) -> Message:
    kind, time_ms = message.timestamp()
    return Message(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        key=message.key(),
        # The client's types allow what a producer may be given; a consumer gets pairs, with bytes.
        headers=tuple(cast("list[tuple[str, bytes | None]]", message.headers() or [])),
        timestamp_ms=_NO_TIME_MS if kind == TIMESTAMP_NOT_AVAILABLE else time_ms,
        null_value=null_value,
        leader_epoch=message.leader_epoch(),
    )
