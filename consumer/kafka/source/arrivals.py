"""The arrivals of messages: their timestamps, within limits."""

from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from consumer.judge.versions import ArrivalTime
from consumer.kafka.offset_metadata import Ledger
from consumer.model.article import Article
from consumer.model.hooks import Hooks
from consumer.model.record import RawRecord, partition_name
from consumer.pipeline.arrivals import RecordTimeReplaced
from storage.clock import Clock

_WRITABLE_MS_MAX: Final = 253_402_300_799_999
"""The end of the year 9999; later times cannot be written in an event."""


class RecordTimeBehind(NamedTuple):
    """A record's timestamp was too far behind the highest arrival of its partition, so the record got that arrival."""


@dataclass(frozen=True, slots=True)
class TopicArrivals:
    """The arrivals of messages in topics: their timestamps.

    A message without a timestamp, or with one more than ``ahead_ms_max`` ahead of the clock, arrives when it is
    judged, and ``RecordTimeReplaced`` is reported. If it is judged again, it gets another time, but the first time that
    was stored counts.
    """

    clock: Clock
    ahead_ms_max: int
    hooks: Hooks

    def arrived_at(self, record: RawRecord, article: Article) -> ArrivalTime:
        """Return the timestamp, or the current time in its place, and the offset."""
        del article
        now_ms, feed = self.clock(), partition_name(record.known_partition())
        if 0 <= record.time_ms <= now_ms + self.ahead_ms_max:
            return ArrivalTime(record.time_ms, record.start, feed=feed)
        self.hooks.report(RecordTimeReplaced())
        return ArrivalTime(now_ms, record.start, _writable_ms(record.time_ms), feed=feed, is_fixed=False)

    def record_name(self, record: RawRecord) -> bytes:
        """Return topic, partition and offset."""
        topic, number = record.known_partition()
        return b"topic:%s:%d:%d" % (topic.encode(), number, record.start)


@dataclass(frozen=True, slots=True)
class LiveArrivals:
    """The arrivals of new messages: no message is far behind earlier messages of its partition.

    A message with a timestamp more than ``behind_ms_max`` before the highest arrival of its partition gets that
    arrival, and ``RecordTimeBehind`` is reported. Otherwise a sender could make a copy arrive before its original. The
    partition's note keeps the highest arrival, which is never ahead of the clock: one message ahead would make all
    later ones late.
    """

    topics: TopicArrivals
    ledger: Ledger
    behind_ms_max: int
    hooks: Hooks

    def arrived_at(self, record: RawRecord, article: Article) -> ArrivalTime:
        """Return the timestamp or its replacement, and the offset."""
        partition = record.known_partition()
        note = self.ledger.note(partition)
        arrived_at = self.topics.arrived_at(record, article)
        highest_ms = note.highest_ms
        if highest_ms is not None and arrived_at.time_ms < highest_ms - self.behind_ms_max:
            self.hooks.report(RecordTimeBehind())
            return arrived_at._replace(time_ms=highest_ms, stamped_ms=_writable_ms(record.time_ms), is_fixed=False)
        reached_ms = min(arrived_at.time_ms, self.topics.clock())
        if highest_ms is None or reached_ms > highest_ms:
            self.ledger.put(partition, msgspec.structs.replace(note, highest_ms=reached_ms))
        return arrived_at

    def record_name(self, record: RawRecord) -> bytes:
        """Return topic, partition and offset."""
        return self.topics.record_name(record)


def _writable_ms(time_ms: int) -> int | None:
    return time_ms if 0 <= time_ms <= _WRITABLE_MS_MAX else None
