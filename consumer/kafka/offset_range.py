"""Where a range of a topic begins or ends, as options name it: an offset or a time."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from consumer.text.timestamps import option_time_ms


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


_ASK_S: Final = 30.0

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
