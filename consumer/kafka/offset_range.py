"""Reads watermarks of partitions, and converts bounds of ranges, given as offsets or times, to offsets."""

import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from consumer.kafka.errors import UNKNOWN_TOPICS, describe, no_topic
from consumer.model.errors import SourceError
from consumer.text.timestamps import option_time_ms
from storage.backoff import Backoff

Answer = TypeVar("Answer")

_ELECTION: Final = frozenset({KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})
"""Errors while a leader is being elected, for example in a new topic; they pass within moments."""
_PAUSE_S: Final = 0.1
_REQUEST_TIMEOUT_S: Final = 30.0


class Bound(NamedTuple):
    """A bound of a range: an offset for every partition, or the time of the first message. The other field is None."""

    offset: int | None = None
    time_ms: int | None = None


class OffsetRange(NamedTuple):
    """A range of messages from ``since`` up to but excluding ``until``, or up to the current end of the topic.

    ``offsets_max`` limits the offsets of each partition, counted from the start of the range.
    """

    since: Bound
    until: Bound | None = None
    offsets_max: int | None = None


Ranges = Mapping[tuple[str, int], tuple[int, int]]
"""The range of each (topic, partition): its first offset, and the offset after its last."""


def parse_bound(option: str, text: str) -> Bound:
    """Return the bound in an option: a whole number is an offset, other text a time as in ``consumer.text.timestamps``.

    Raises ``ConfigError`` if the text is neither.
    """
    if text.isascii() and text.isdigit():
        return Bound(offset=int(text))
    return Bound(time_ms=option_time_ms(option, text, "an offset or a time"))


def offsets_at(
    consumer: Consumer, marks: Mapping[tuple[str, int], tuple[int, int]], bound: Bound
) -> dict[tuple[str, int], int]:
    """Return the offset of each partition at a bound, limited to its watermarks.

    If no message has the time of the bound or a later one, the offset is the high watermark. Raises ``KafkaException``.
    """
    if bound.offset is not None:
        return {key: min(max(bound.offset, low), high) for key, (low, high) in marks.items()}
    times = [TopicPartition(*key, bound.time_ms or 0) for key in marks]
    offsets: dict[tuple[str, int], int] = {}
    for place in consumer.offsets_for_times(times, timeout=_REQUEST_TIMEOUT_S):
        if place.error is not None:
            raise KafkaException(place.error)
        key = (place.topic, place.partition)
        low, high = marks[key]
        # A negative offset means that no message has this time or a later one.
        offsets[key] = min(max(place.offset, low), high) if place.offset >= 0 else high
    return offsets


def partitions_of(consumer: Consumer, topic: str, brokers: str, wait_s: float) -> list[int]:
    """Return the numbers of a topic's partitions, in order.

    Raises ``SourceError`` if the topic does not exist (the message names ``brokers``) or cannot be read, and
    ``KafkaException`` without an answer within ``wait_s``.
    """
    metadata = consumer.list_topics(topic, timeout=wait_s).topics[topic]
    if metadata.error is not None and metadata.error.code() not in UNKNOWN_TOPICS:
        raise SourceError(f"the topic {topic} cannot be read: {describe(metadata.error)}")
    if not metadata.partitions:
        raise no_topic(topic, brokers)
    return sorted(metadata.partitions)


def watermarks(consumer: Consumer, topic: str, partition: int, wait_s: float) -> tuple[int, int]:
    """Return the low and high watermark of a partition.

    Raises ``KafkaException`` if the brokers refuse, or do not answer within ``wait_s``.
    """
    place = TopicPartition(topic, partition)
    return retry_during_election(
        lambda left_s: consumer.get_watermark_offsets(place, timeout=left_s, cached=False), wait_s
    )


def retry_during_election(ask: Callable[[float], Answer], wait_s: float) -> Answer:
    """Return the result of ``ask``, called with the seconds left, and repeated while leaders are elected.

    Raises the exceptions of ``ask``, those about elections only after ``wait_s``.
    """
    until_s = time.monotonic() + wait_s
    pauses = Backoff(_PAUSE_S, _PAUSE_S)
    return pauses.call(lambda: ask(max(until_s - time.monotonic(), _PAUSE_S)), _is_election, wait_s)


def _is_election(error: Exception) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() in _ELECTION
