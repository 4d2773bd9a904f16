"""The arrivals of records: when each arrived, and a name for it that no other record has.

A file is read again after a crash, and every record must get the same arrival again: the records of a file all arrive
when the run begins, in the order of the lines, and those of an archive when they were published. A stream is read only
once, and its records arrive when they are read; so do those that clients send. Messages of a topic carry their time.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import msgspec

from consumer.judge.versions import ArrivedAt
from consumer.model.article import Article
from consumer.model.hooks import Hooks
from consumer.model.record import Message, RawRecord
from consumer.model.submission import submitted
from consumer.pipeline.partition_notes import Ledger
from storage.clock import MS_PER_S, Clock

_WRITABLE_MS_MAX = 253_402_300_799_999
"""The end of the year 9999; later times cannot be written in an event."""


class RecordTimeReplaced(NamedTuple):
    """A record had no time, or an impossible one, and arrived at another."""


class RecordTimeBehind(NamedTuple):
    """A record was stamped too far behind its partition, and arrived together with the record before it."""


class Arrivals(Protocol):
    """The arrivals of one source."""

    def arrived_at(self, record: RawRecord, article: Article) -> ArrivedAt:
        """Return the arrival of a record: its time and its sequence. Called once for each article, in order."""
        ...

    def record_name(self, record: RawRecord) -> bytes:
        """Return a name of the record that is unique, and the same in every run that reads it."""
        ...


@dataclass(frozen=True, slots=True)
class FileArrivals:
    """A file. ``began_ms`` is when the run began, from its checkpoint; ``identity`` distinguishes this file."""

    began_ms: int
    identity: bytes

    def arrived_at(self, record: RawRecord, article: Article) -> ArrivedAt:
        """Return the time when the run began, and the line."""
        del article
        return ArrivedAt(self.began_ms, record.line)

    def record_name(self, record: RawRecord) -> bytes:
        """Return the identity of the file, and the line."""
        return b"%s:%d" % (self.identity, record.line)


@dataclass(frozen=True, slots=True)
class ArchiveArrivals:
    """A file of earlier articles, which arrive when they were published.

    An article without that time, or with one after the run began, arrives when the run began, and
    ``RecordTimeReplaced`` is reported.
    """

    began_ms: int
    identity: bytes
    hooks: Hooks

    def arrived_at(self, record: RawRecord, article: Article) -> ArrivedAt:
        """Return the time of publication, and the line."""
        if article.published_at is not None and 0 <= (time_ms := int(article.published_at * MS_PER_S)) <= self.began_ms:
            return ArrivedAt(time_ms, record.line)
        self.hooks.report(RecordTimeReplaced())
        return ArrivedAt(self.began_ms, record.line)

    def record_name(self, record: RawRecord) -> bytes:
        """Return the identity of the file, and the line."""
        return b"%s:%d" % (self.identity, record.line)


@dataclass(slots=True)
class StreamArrivals:
    """A stream, which cannot be read again: its lines are new in every run."""

    clock: Clock
    _began_ms: int = field(init=False)
    _latest_ms: int = field(init=False)

    def __post_init__(self) -> None:
        """Note when the run begins."""
        self._began_ms = self._latest_ms = self.clock()

    def arrived_at(self, record: RawRecord, article: Article) -> ArrivedAt:
        """Return the current time, or the latest one if the clock was set back, and the line."""
        del article
        self._latest_ms = max(self._latest_ms, self.clock())
        return ArrivedAt(self._latest_ms, record.line)

    def record_name(self, record: RawRecord) -> bytes:
        """Return the run and the line."""
        return b"stream:%d:%d" % (self._began_ms, record.line)


class SubmittedArrivals(StreamArrivals):
    """The records of clients, which arrive when they are judged; a retraction is named by its client."""

    def record_name(self, record: RawRecord) -> bytes:
        """Return the name of a retraction; nothing else needs a name, since its content names it."""
        retraction = submitted(record).retraction
        return b"" if retraction is None else retraction.name


@dataclass(frozen=True, slots=True)
class TopicArrivals:
    """The messages of topics, which arrive at the time in their timestamps.

    A message without a timestamp, or with one more than ``ahead_ms_max`` ahead of the clock, arrives when it is read,
    and ``RecordTimeReplaced`` is reported. Read again, it gets another time, but the first one that was stored counts.
    """

    clock: Clock
    ahead_ms_max: int
    hooks: Hooks

    def arrived_at(self, record: RawRecord, article: Article) -> ArrivedAt:
        """Return the timestamp, and the offset."""
        del article
        message = _message(record)
        now_ms = self.clock()
        if 0 <= message.timestamp_ms <= now_ms + self.ahead_ms_max:
            return ArrivedAt(message.timestamp_ms, message.offset)
        self.hooks.report(RecordTimeReplaced())
        return ArrivedAt(now_ms, message.offset, stamped_ms=_writable_ms(message.timestamp_ms))

    def record_name(self, record: RawRecord) -> bytes:
        """Return topic, partition and offset."""
        message = _message(record)
        return b"topic:%s:%d:%d" % (message.topic.encode(), message.partition, message.offset)


@dataclass(frozen=True, slots=True)
class LiveArrivals:
    """The messages of topics as they come in: none arrives far behind earlier messages of its partition.

    One that is stamped more than ``behind_ms_max`` before the highest arrival of its partition arrives at that one, and
    ``RecordTimeBehind`` is reported; otherwise a sender could have a copy arrive before its original. The highest
    arrival is in the partition's note. It is never ahead of the clock: a message that is would make its successors
    late.
    """

    topics: TopicArrivals
    ledger: Ledger
    behind_ms_max: int
    hooks: Hooks

    def arrived_at(self, record: RawRecord, article: Article) -> ArrivedAt:
        """Return the timestamp or what replaces it, and the offset."""
        message = _message(record)
        partition = message.topic, message.partition
        note = self.ledger.note(partition)
        arrived_at = self.topics.arrived_at(record, article)
        highest_ms = note.highest_ms
        if highest_ms is not None and arrived_at.time_ms < highest_ms - self.behind_ms_max:
            self.hooks.report(RecordTimeBehind())
            return ArrivedAt(highest_ms, arrived_at.sequence, stamped_ms=_writable_ms(message.timestamp_ms))
        reached_ms = min(arrived_at.time_ms, self.topics.clock())
        if highest_ms is None or reached_ms > highest_ms:
            self.ledger.put(partition, msgspec.structs.replace(note, highest_ms=reached_ms))
        return arrived_at

    def record_name(self, record: RawRecord) -> bytes:
        """Return topic, partition and offset."""
        return self.topics.record_name(record)


def _writable_ms(time_ms: int) -> int | None:
    return time_ms if 0 <= time_ms <= _WRITABLE_MS_MAX else None


def _message(record: RawRecord) -> Message:
    if record.message is None:
        raise TypeError("this record does not come from a topic")
    return record.message
