"""Submissions: the records that a client sent in one request, and the answers that it waits for."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple

from consumer.model.errors import Unanswered
from consumer.model.record import RawRecord
from consumer.model.verdict import VerdictEvent


class RecordRefusal(NamedTuple):
    """The reason why a record cannot be judged. ``limit`` names the exceeded limit, or is "" if none was."""

    reason: str
    detail: str
    limit: str


class RecordVerdict(NamedTuple):
    """The verdict on a record, byte for byte as the store holds it.

    ``text_kind`` says how the text is compared; it is None for a retraction.
    """

    event: VerdictEvent
    text_kind: str | None


class RequestOrigin(NamedTuple):
    """The owner of a request ("" without a token), and its key, which is unique among the requests of the owner."""

    owner: str
    key: str

    def of_article(self, place: int) -> "RequestOrigin":
        """Return the origin of the article at this place in the request."""
        return self._replace(key=f"{self.key} {place}")


class Retraction(NamedTuple):
    """The id to retract, and the name of the retraction. The same name again means the same retraction."""

    article_id: str
    name: bytes


class InboxChanged(NamedTuple):
    """The number and the total size of records that wait or are being judged."""

    records: int
    size_bytes: int


class SubmissionAnswered(NamedTuple):
    """All records of a submission are answered, this many seconds after they came in."""

    seconds: float


Reply = RecordVerdict | RecordRefusal
"""The verdict on a record, or the reason why there is none."""


def _do_nothing() -> None:
    """Do nothing."""


class Submission:
    """The records of a request, at least one. One thread answers them, and any thread may wait for the replies.

    ``on_end`` is called when all records are answered or the submission is given up, just before waiting threads
    resume.
    """

    def __init__(self, records: int, on_end: Callable[[], None] = _do_nothing) -> None:
        self._on_end = on_end
        self._replies: list[Reply | None] = [None] * records
        self._left = records
        self._future: Future[Sequence[Reply]] = Future()
        # A waiting caller that gives up must not cancel the future of the thread that answers.
        self._future.set_running_or_notify_cancel()
        self._began_s = time.perf_counter()

    @property
    def replies(self) -> "Future[Sequence[Reply]]":
        """A future of the replies, in record order; it raises ``Unanswered`` if the submission was given up."""
        return self._future

    @property
    def seconds(self) -> float:
        """The age of the submission in seconds."""
        return time.perf_counter() - self._began_s

    def answer(self, place: int, reply: Reply) -> None:
        """Answer the record at this place. Call this only once for each. No effect if the submission was given up."""
        self._replies[place] = reply
        self._left -= 1
        if not self._left and not self._future.done():
            self._on_end()
            self._future.set_result([each for each in self._replies if each is not None])

    def give_up(self) -> None:
        """Stop answering, unless all records are answered. Callers still waiting get ``Unanswered``."""
        if not self._future.done():
            self._on_end()
            self._future.set_exception(Unanswered("the run ended before all records were answered"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedRecord(RawRecord):
    """The record at one place of a submission. A record with a ``retraction`` has no data.

    ``origin`` is None if the client sent no key.
    """

    submission: Submission
    place: int
    retraction: Retraction | None = None
    origin: RequestOrigin | None = None

    def answer(self, reply: Reply) -> None:
        """Answer this record."""
        self.submission.answer(self.place, reply)


def submitted(record: RawRecord) -> SubmittedRecord:
    """Return the record as a ``SubmittedRecord``. Raises ``TypeError`` for a record that is not from a request."""
    if not isinstance(record, SubmittedRecord):
        raise TypeError("this record does not come from a request")
    return record
