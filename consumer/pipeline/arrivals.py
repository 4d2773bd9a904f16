"""The arrivals of records: the time of each, and a unique name for it.

A file is read again after a crash, and every record must get the same arrival again. So all records of a file arrive
when the run begins, in the order of the lines. Records of an archive arrive when they were published. A stream is read
only once, and its records arrive when they are judged, as do records from clients. Messages of a topic have their own
time (``kafka.source.arrivals``).
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from consumer.judge.versions import ArrivalTime
from consumer.model.article import Article
from consumer.model.hooks import Hooks
from consumer.model.record import RawRecord
from consumer.model.submission import submitted
from storage.clock import MS_PER_S, Clock


class RecordTimeReplaced(NamedTuple):
    """A record had no time, or an impossible one, and got another arrival."""


class Arrivals(Protocol):
    """The arrivals of one source."""

    def arrived_at(self, record: RawRecord, article: Article) -> ArrivalTime:
        """Return the arrival of a record: its time and its sequence. Called once for each article, in order."""
        ...

    def record_name(self, record: RawRecord) -> bytes:
        """Return a unique name of a record, the same in every run that reads it. Called only for retractions."""
        ...


@dataclass(frozen=True, slots=True)
class FileArrivals:
    """The arrivals of a file's records.

    ``began_ms`` is when the run began, from its checkpoint. ``identity`` distinguishes this file from others. ``feed``
    is the name of the file in origins.
    """

    began_ms: int
    identity: bytes
    feed: str

    def arrived_at(self, record: RawRecord, article: Article) -> ArrivalTime:
        """Return the time when the run began, and the line."""
        del article
        return ArrivalTime(self.began_ms, record.line, feed=self.feed, is_fixed=False)

    def record_name(self, record: RawRecord) -> bytes:
        """Return the identity of the file, and the line."""
        return b"%s:%d" % (self.identity, record.line)


@dataclass(frozen=True, slots=True)
class ArchiveArrivals(FileArrivals):
    """The arrivals of earlier articles: their times of publication.

    An article without that time, or with one before 1970 or after the run began, arrives when the run began, and
    ``RecordTimeReplaced`` is reported.
    """

    hooks: Hooks

    def arrived_at(self, record: RawRecord, article: Article) -> ArrivalTime:
        """Return the time of publication, or the start of the run in its place, and the line."""
        if article.published_at is not None and 0 <= (time_ms := int(article.published_at * MS_PER_S)) <= self.began_ms:
            return ArrivalTime(time_ms, record.line, feed=self.feed)
        self.hooks.report(RecordTimeReplaced())
        return ArrivalTime(self.began_ms, record.line, feed=self.feed, is_fixed=False)


@dataclass(slots=True)
class StreamArrivals:
    """The arrivals of a stream, which cannot be read again: its lines are new in every run."""

    clock: Clock
    _began_ms: int = field(init=False)
    _latest_ms: int = field(init=False)

    def __post_init__(self) -> None:
        """Note when the run begins."""
        self._began_ms = self._latest_ms = self.clock()

    def arrived_at(self, record: RawRecord, article: Article) -> ArrivalTime:
        """Return the current time, but never less than the last time returned, and the line."""
        del article
        return ArrivalTime(self._now_ms(), record.line, feed=f"stream {self._began_ms}", is_fixed=False)

    def record_name(self, record: RawRecord) -> bytes:
        """Return the run and the line."""
        return b"stream:%d:%d" % (self._began_ms, record.line)

    def _now_ms(self) -> int:
        self._latest_ms = max(self._latest_ms, self.clock())
        return self._latest_ms


class SubmittedArrivals(StreamArrivals):
    """The arrivals of records that clients send: the time of judging.

    Retractions are named by the owner and the key of the request.
    """

    def arrived_at(self, record: RawRecord, article: Article) -> ArrivalTime:
        """Return the current time as ``StreamArrivals`` does, and the owner and key of the request."""
        del article
        origin = submitted(record).origin
        feed, key = origin and origin.owner, origin and origin.key
        return ArrivalTime(self._now_ms(), record.line, feed=feed, key=key, is_fixed=False)

    def record_name(self, record: RawRecord) -> bytes:
        """Return the name of a retraction; empty for articles, which are named by their content."""
        retraction = submitted(record).retraction
        return b"" if retraction is None else retraction.name
