"""Where partitions begin and end, and where a range of a topic does, which options name by an offset or a time."""

import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from consumer.kafka.errors import UNKNOWN_TOPICS, describe, no_topic
from consumer.model.errors import SourceError
from consumer.text.timestamps import option_time_ms
from storage.backoff import Backoff

Answer = TypeVar("Answer")

_MOVING: Final = frozenset({KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})
"""A partition whose leader is being elected, as in a new topic, has one a moment later."""
_AGAIN_S: Final = 0.1
_ASK_S: Final = 30.0


class Bound(NamedTuple):
    """The same offset in every partition, or the first message at a time or later: one of the two is None."""

    offset: int | None = None
    time_ms: int | None = None


class OffsetRange(NamedTuple):
    """From one bound up to the other, which is excluded; if that is None, up to the current end of the topic.

    With ``offsets_max``, only that many offsets of each partition, from the beginning.
    """

    since: Bound
    until: Bound | None = None
    offsets_max: int | None = None


Ranges = Mapping[tuple[str, int], tuple[int, int]]
"""For each (topic, partition) the first offset, and the one behind the last."""


def parse_bound(option: str, text: str) -> Bound:
    """Parse an option: a whole number is an offset, anything else a time as in ``consumer.text.timestamps``.

    Raises ``ConfigError`` for anything else.
    """
    if text.isascii() and text.isdigit():
        return Bound(offset=int(text))
    return Bound(time_ms=option_time_ms(option, text, "an offset or a time"))


def offsets_at(
    consumer: Consumer, marks: Mapping[tuple[str, int], tuple[int, int]], bound: Bound
) -> dict[tuple[str, int], int]:
    """Return the offset of each partition at a bound, within its marks (low, high). Raises ``KafkaException``."""
    if bound.offset is not None:
        return {key: min(max(bound.offset, low), high) for key, (low, high) in marks.items()}
    asked = [TopicPartition(*key, bound.time_ms or 0) for key in marks]
    places: dict[tuple[str, int], int] = {}
    for found in consumer.offsets_for_times(asked, timeout=_ASK_S):
        if found.error is not None:
            raise KafkaException(found.error)
        key = (found.topic, found.partition)
        low, high = marks[key]
        # A negative offset means that there is no message of that time or later.
        places[key] = min(max(found.offset, low), high) if found.offset >= 0 else high
    return places


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
