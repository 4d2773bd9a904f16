"""Records that a client has sent in one request, and the answers that the client waits for."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple

from consumer.model.errors import Unanswered
from consumer.model.record import RawRecord
from consumer.model.verdict import VerdictEvent


class RecordRefusal(NamedTuple):
    """Why a record cannot be judged; ``limit`` names the limit that it met, "" where it met none."""

    reason: str
    detail: str
    limit: str


class RecordVerdict(NamedTuple):
    """The verdict on a record, byte for byte as the store holds it.

    ``text_kind`` says how the text is compared, None for a retraction.
    """

    event: VerdictEvent
    text_kind: str | None


class RequestOrigin(NamedTuple):
    """The owner of a request, "" without a token, and the key that distinguishes it from the others of that owner."""

    owner: str
    key: str

    def of_article(self, place: int) -> "RequestOrigin":
        """Return the origin of one of its articles, by its place among them."""
        return self._replace(key=f"{self.key} {place}")


class Retraction(NamedTuple):
    """The id to retract, and a name for it: the same name again is the same retraction."""

    article_id: str
    name: bytes


class InboxChanged(NamedTuple):
    """How many records of submissions, and how many bytes of them, wait or are being judged."""

    records: int
    size_bytes: int


class SubmissionAnswered(NamedTuple):
    """All records of a submission are answered, this long after they came in."""

    seconds: float


Reply = RecordVerdict | RecordRefusal
"""The verdict on a record, or why there is none."""


def _nothing() -> None:
    """Do nothing."""


class Submission:
    """So many records, which are answered by one thread, and waited for by any.

    ``when_over`` is called once it is answered or given up, before anybody who waits for it learns of that.
    """

    def __init__(self, records: int, when_over: Callable[[], None] = _nothing) -> None:
        self._when_over = when_over
        self._replies: list[Reply | None] = [None] * records
        self._left = records
        self._future: Future[Sequence[Reply]] = Future()
        # Who stops waiting must not end it for the thread that answers.
        self._future.set_running_or_notify_cancel()
        self._began_s = time.perf_counter()

    @property
    def replies(self) -> "Future[Sequence[Reply]]":
        """The reply to each record, in their order, once all are there; ``Unanswered`` where the run ended before."""
        return self._future

    @property
    def seconds(self) -> float:
        """How long ago it was made."""
        return time.perf_counter() - self._began_s

    def answer(self, place: int, reply: Reply) -> None:
        """Answer a record, once. Nothing happens where the submission was given up."""
        self._replies[place] = reply
        self._left -= 1
        if not self._left and not self._future.done():
            self._when_over()
            self._future.set_result([each for each in self._replies if each is not None])

    def give_up(self) -> None:
        """Answer nothing more: who waits gets ``Unanswered``, unless there is an answer already."""
        if not self._future.done():
            self._when_over()
            self._future.set_exception(Unanswered("the run ended before all records were answered"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedRecord(RawRecord):
    """A record of a submission, at this place in it. With ``retraction`` it has no data.

    ``origin`` is None if the client sent no key.
    """

    submission: Submission
    place: int
    retraction: Retraction | None = None
    origin: RequestOrigin | None = None

    def answer(self, reply: Reply) -> None:
        """Tell who waits for it."""
        self.submission.answer(self.place, reply)


def submitted(record: RawRecord) -> SubmittedRecord:
    """Return a record as one of a submission, where a run has no others."""
    if not isinstance(record, SubmittedRecord):
        raise TypeError("this record does not come from a request")
    return record
