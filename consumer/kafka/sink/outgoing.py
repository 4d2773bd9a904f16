"""Messages to be sent to topics, and the call that hands one to a producer whose queue may be full."""

from collections.abc import Callable
from typing import Final, NamedTuple

from confluent_kafka import KafkaError, Producer
from confluent_kafka import Message as Delivered

from consumer.model.record import NO_TIME_MS, Headers, RawRecord

ANY_PARTITION: Final = -1
"""The key chooses the partition."""
_CLIENT_SETS_TIME: Final = 0


class OutgoingMessage(NamedTuple):
    """A message to be sent; ``timestamp_ms`` is the time of the record it copies, or None if the client sets it."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int | None = None
    partition: int = ANY_PARTITION


def produce(
    client: Producer,
    message: OutgoingMessage,
    on_delivery: Callable[[KafkaError | None, Delivered], None],
    make_room: Callable[[OutgoingMessage], None],
) -> None:
    """Hand a message to a producer, calling ``make_room`` while its queue is full.

    A later call of the client passes the delivery report to ``on_delivery``. Raises ``KafkaException`` if the client
    refuses the message immediately, and the exceptions of ``make_room``.
    """
    while True:
        try:
            client.produce(
                message.topic,
                value=message.value,
                key=message.key,
                partition=message.partition,
                on_delivery=on_delivery,
                timestamp=message.timestamp_ms or _CLIENT_SETS_TIME,
                headers=[*message.headers],
            )
        except BufferError:
            make_room(message)
        else:
            return


def time_of(record: RawRecord) -> int | None:
    """Return the time of a record, or None if it has none."""
    return None if record.time_ms == NO_TIME_MS else record.time_ms
