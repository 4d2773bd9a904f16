"""The partitions of a topic, and where each begins and ends; asked again while leaders are being elected."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from consumer.kafka.errors import UNKNOWN_TOPICS, describe, no_topic
from consumer.model.errors import SourceError
from storage.backoff import Backoff

Answer = TypeVar("Answer")

_MOVING: Final = frozenset({KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})
"""A partition whose leader is being elected, as in a new topic, has one a moment later."""
_AGAIN_S: Final = 0.1


def partitions_of(consumer: Consumer, topic: str, brokers: str, wait_s: float) -> list[int]:
    """Return the numbers of a topic's partitions, in order.

    Raises ``SourceError``, which names ``brokers``, where there is no such topic; ``KafkaException`` after ``wait_s``.
    """
    found = consumer.list_topics(topic, timeout=wait_s).topics[topic]
    if found.error is not None and found.error.code() not in UNKNOWN_TOPICS:
        raise SourceError(f"the topic {topic} cannot be read: {describe(found.error)}")
    if not found.partitions:
        raise no_topic(topic, brokers)
    return sorted(found.partitions)


def watermarks(consumer: Consumer, topic: str, partition: int, wait_s: float) -> tuple[int, int]:
    """Return the first offset, and the one behind the last. Raises ``KafkaException`` after ``wait_s``."""
    place = TopicPartition(topic, partition)
    return once_led(lambda left_s: consumer.get_watermark_offsets(place, timeout=left_s, cached=False), wait_s)


def once_led(ask: Callable[[float], Answer], wait_s: float) -> Answer:
    """Ask again while leaders are being elected; ``ask`` gets the seconds that are left. Raises as ``watermarks``."""
    until_s = time.monotonic() + wait_s
    pauses = Backoff(_AGAIN_S, _AGAIN_S)
    return pauses.call(lambda: ask(max(until_s - time.monotonic(), _AGAIN_S)), _is_moving, wait_s)


def _is_moving(error: Exception) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() in _MOVING
