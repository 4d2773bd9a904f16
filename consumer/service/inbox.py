"""The inbox: a source that gathers the records of requests for some milliseconds and delivers them in batches.

A batch of one record costs the store and the disk almost as much as a batch of many.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from typing_extensions import override

from consumer.model.errors import InboxFull
from consumer.model.limits import ReadLimits
from consumer.model.ports import Source
from consumer.model.record import RawBatch
from consumer.model.submission import (
    InboxChanged,
    RequestOrigin,
    Retraction,
    Submission,
    SubmissionAnswered,
    SubmittedRecord,
)

RETRACTION_BYTES: Final = 1_024
"""The size that a retraction counts as. It has no data, only an id and a name."""


class InboxLimits(NamedTuple):
    """The maximum number and total size of records that wait or are being judged."""

    records_max: int
    bytes_max: int


class _Content(NamedTuple):
    """The content of a record of a submission."""

    data: bytes
    origin: RequestOrigin | None = None
    retraction: Retraction | None = None


class Inbox(Source):
    """A queue of records. Any thread puts records into it, and one run takes them.

    A batch is delivered ``gather_s`` seconds after its first record came in, or as soon as it is full or the inbox is
    closed. ``report`` gets ``InboxChanged`` and ``SubmissionAnswered`` while the inbox is locked.
    """

    def __init__(
        self, gather_s: float, limits: InboxLimits, batch: ReadLimits, report: Callable[[object], None]
    ) -> None:
        self._gather_s = gather_s
        self._limits = limits
        self._batch = batch
        self._report = report
        self._changed = threading.Condition()
        self._gathered: deque[tuple[SubmittedRecord, float]] = deque()
        self._gathered_bytes = 0
        self._waiting: dict[Submission, None] = {}
        self._records = 0
        self._bytes = 0
        self._line = 0
        self._is_closed = False

    def put(self, articles: Sequence[bytes], origin: RequestOrigin | None = None) -> Submission:
        """Put the articles of a request, all or none. Raises ``InboxFull``.

        The key of each article is made from the request's key and the article's place in the request. If the inbox is
        closed, the submission is given up.
        """
        contents = [_Content(data, origin and origin.of_article(place)) for place, data in enumerate(articles)]
        return self._put(contents, sum(map(len, articles)))

    def put_retraction(self, retraction: Retraction, origin: RequestOrigin | None = None) -> Submission:
        """Put a retraction. Raises ``InboxFull``. If the inbox is closed, the submission is given up."""
        return self._put([_Content(b"", origin, retraction)], RETRACTION_BYTES)

    @override
    def batches(self) -> Iterator[RawBatch]:
        """Yield batches until the inbox is closed and empty."""
        while records := self._next():
            yield RawBatch(tuple(records))

    @override
    def close(self) -> None:
        """Stop accepting records. Those already in the inbox are still delivered."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def end(self) -> None:
        """Close the inbox and give up unanswered submissions, because the run has ended."""
        self.close()
        with self._changed:
            given_up = list(self._waiting)
            self._gathered.clear()
            self._gathered_bytes = 0
        for submission in given_up:
            submission.give_up()

    def _put(self, contents: Sequence[_Content], size_bytes: int) -> Submission:
        submission = Submission(len(contents), lambda: self._leave(submission, len(contents), size_bytes))
        with self._changed:
            self._check_room(len(contents), size_bytes)
            if self._is_closed:
                submission.give_up()
                return submission
            now_s = time.monotonic()
            for place, content in enumerate(contents):
                self._gathered.append((self._record(content, submission, place), now_s))
                self._gathered_bytes += len(content.data)
            self._waiting[submission] = None
            self._count(len(contents), size_bytes)
            self._changed.notify_all()
        return submission

    def _check_room(self, records: int, size_bytes: int) -> None:
        if self._records + records > self._limits.records_max:
            raise InboxFull("inbox_records_max", self._limits.records_max)
        if self._bytes + size_bytes > self._limits.bytes_max:
            raise InboxFull("inbox_bytes_max", self._limits.bytes_max)

    def _record(self, content: _Content, submission: Submission, place: int) -> SubmittedRecord:
        self._line += 1
        return SubmittedRecord(
            line=self._line,
            start=0,
            data=content.data,
            size_bytes=len(content.data),
            sha256=None,
            fault=None,
            submission=submission,
            place=place,
            retraction=content.retraction,
            origin=content.origin,
        )

    def _next(self) -> list[SubmittedRecord]:
        """Wait for a batch, and take it. The batch is empty once the inbox is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._gathered or self._is_closed)
            if self._gathered:
                left_s = self._gathered[0][1] + self._gather_s - time.monotonic()
                self._changed.wait_for(lambda: self._is_closed or self._is_full(), max(0.0, left_s))
            return self._take()

    def _is_full(self) -> bool:
        limits = self._batch
        return len(self._gathered) >= limits.batch_records_max or self._gathered_bytes >= limits.batch_bytes_max

    def _take(self) -> list[SubmittedRecord]:
        records: list[SubmittedRecord] = []
        left_bytes = self._batch.batch_bytes_max
        while self._gathered and len(records) < self._batch.batch_records_max:
            record = self._gathered[0][0]
            left_bytes -= record.size_bytes
            if records and left_bytes < 0:
                break
            records.append(record)
            self._gathered.popleft()
            self._gathered_bytes -= record.size_bytes
        return records

    def _leave(self, submission: Submission, records: int, size_bytes: int) -> None:
        with self._changed:
            # A submission that came after the inbox was closed was never counted.
            if self._waiting.pop(submission, 0) is None:
                self._count(-records, -size_bytes)
                self._report(SubmissionAnswered(submission.seconds))

    def _count(self, records: int, size_bytes: int) -> None:
        self._records += records
        self._bytes += size_bytes
        self._report(InboxChanged(self._records, self._bytes))
