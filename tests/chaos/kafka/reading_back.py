"""Reads topics to their end after a run, one message at a time."""

import hashlib
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, Message, TopicPartition

from consumer.kafka.source.client_headers import read_client_headers
from tests.kafka.topics import Topics, reader

Headers = tuple[tuple[str, bytes | None], ...]

NO_TIME_MS: Final = -1
_SILENCE_S: Final = 30.0
_AT_ONCE: Final = 20
_WHOLE_BYTES_MAX: Final = 64 << 10


class Found(NamedTuple):
    """A message in a topic; ``headers`` is None if the client cannot decode them."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None
    timestamp_ms: int


def read_topic(topics: Topics, topic: str) -> Iterator[Found]:
    """All committed messages, partition by partition."""
    consumer = reader(topics.address)
    try:
        for partition in range(topics.partitions):
            consumer.assign([TopicPartition(topic, partition, 0)])
            yield from _read_partition(consumer, f"{topic} [{partition}]")
    finally:
        consumer.close()


def brief(value: bytes | None) -> bytes | None:
    """The value, or length and digest of a long one: a run leaves gigabytes in its topics."""
    if value is None or len(value) <= _WHOLE_BYTES_MAX:
        return value
    return b"%d bytes, %s" % (len(value), hashlib.sha256(value).digest())


def _read_partition(consumer: Consumer, name: str) -> Iterator[Found]:
    until_s = time.monotonic() + _SILENCE_S
    while True:
        messages = consumer.consume(_AT_ONCE, 0.1)
        assert messages or time.monotonic() < until_s, f"{name} could not be read to its end"
        for message in messages:
            error = message.error()
            if error is None:
                yield _found(message)
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return
        if messages:
            until_s = time.monotonic() + _SILENCE_S


def _found(message: Message) -> Found:
    kind, time_ms = message.timestamp()
    return Found(
        message.partition() or 0,
        message.offset() or 0,
        message.key(),
        message.value(),
        _headers(message),
        NO_TIME_MS if kind == TIMESTAMP_NOT_AVAILABLE else time_ms,
    )


def _headers(message: Message) -> Headers | None:
    found = read_client_headers(message)
    return None if found.lost else found.pairs
