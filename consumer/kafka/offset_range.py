"""Where a stretch of a topic begins or ends, as a person says it: an offset or a time."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from consumer.text.timestamps import option_time_ms


class Bound(NamedTuple):
    """The same offset in every partition, or the first message that came at a time or later: one of the two is None."""

    offset: int | None = None
    time_ms: int | None = None


class Stretch(NamedTuple):
    """From one bound to, not including, the other; where that is None, to where the topic ends at the moment.

    Where ``offsets_max`` is set, only the first so many offsets of each partition.
    """

    since: Bound
    until: Bound | None = None
    offsets_max: int | None = None


_ASK_S: Final = 30.0

Ranges = Mapping[tuple[str, int], tuple[int, int]]
"""Of each (topic, partition) the first offset, and the one behind the last."""


def parse_bound(option: str, text: str) -> Bound:
    """The bound that an option gives: a whole number is an offset, the rest a time as in ``consumer.text.timestamps``.

    Raises ``ConfigError`` for anything else.
    """
    if text.isascii() and text.isdigit():
        return Bound(offset=int(text))
    return Bound(time_ms=option_time_ms(option, text, "an offset or a time"))


def offsets_at(
    consumer: Consumer, marks: Mapping[tuple[str, int], tuple[int, int]], bound: Bound
) -> dict[tuple[str, int], int]:
    """Where each partition is at a bound, within its marks (low, high). Raises ``KafkaException``."""
    if bound.offset is not None:
        return {key: min(max(bound.offset, low), high) for key, (low, high) in marks.items()}
    asked = [TopicPartition(*key, bound.time_ms or 0) for key in marks]
    places: dict[tuple[str, int], int] = {}
    for one in consumer.offsets_for_times(asked, timeout=_ASK_S):
        if one.error is not None:
            raise KafkaException(one.error)
        low, high = marks[one.topic, one.partition]
        # A negative offset says that nothing came as late as that.
        places[one.topic, one.partition] = min(max(one.offset, low), high) if one.offset >= 0 else high
    return places
