"""The inbox: what it gathers, in which batches it delivers that, how much it takes, and how it ends."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from consumer.files.lines import Position
from consumer.model.article import Article
from consumer.model.errors import InboxFull, Unanswered
from consumer.model.limits import ReadLimits
from consumer.model.record import RawBatch, RawRecord
from consumer.model.submission import InboxChanged, RecordRefusal, Retraction, SubmissionAnswered, submitted
from consumer.pipeline.arrivals import SubmittedArrivals
from consumer.service.inbox import RETRACTION_BYTES, Inbox, InboxLimits

WAIT_S = 60
NEVER_S = 90.0
"""Longer than any wait, and not so long that a failed test holds up the others."""
ROOM = InboxLimits(100, 10_000)
REFUSED = RecordRefusal("missing_body", "there is none", "")


def inbox_of(
    gather_s: float = 0.0,
    limits: InboxLimits = ROOM,
    batch: ReadLimits | None = None,
    reported: list[object] | None = None,
) -> Inbox:
    """An inbox, and what it reports."""
    return Inbox(gather_s, limits, batch or ReadLimits(), (reported if reported is not None else []).append)


def data_of(batch: RawBatch) -> list[bytes]:
    """What is in a batch."""
    return [record.data for record in batch.records]


def answer(batch: RawBatch) -> None:
    """Answer every record of a batch."""
    for record in batch.records:
        submitted(record).answer(REFUSED)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads that wait."""
    with ThreadPoolExecutor(4) as threads:
        yield threads


def test_records_come_in_their_order_with_a_line_of_their_own() -> None:
    """Those of several requests in one batch."""
    inbox = inbox_of()
    inbox.put([b"1", b"2"])
    inbox.put_retraction(Retraction("a", b"name"))
    batch = next(inbox.batches())
    assert data_of(batch) == [b"1", b"2", b""]
    assert [record.line for record in batch.records] == [1, 2, 3]
    assert [submitted(record).retraction for record in batch.records] == [None, None, Retraction("a", b"name")]
    assert batch.end == batch.records[-1].end


def test_a_batch_waits_for_more() -> None:
    """For as long as is said, from its first record on."""
    inbox = inbox_of(0.05)
    began_s = time.monotonic()
    inbox.put([b"1"])
    assert data_of(next(inbox.batches())) == [b"1"]
    assert time.monotonic() - began_s >= 0.05


def test_a_full_batch_waits_no_longer(pool: ThreadPoolExecutor) -> None:
    """The rest is the next one."""
    inbox = inbox_of(NEVER_S, batch=ReadLimits(batch_records_max=2))
    inbox.put([b"1"])
    batch = pool.submit(lambda: next(inbox.batches()))
    inbox.put([b"2", b"3"])
    assert data_of(batch.result(WAIT_S)) == [b"1", b"2"]


def test_a_batch_is_bounded_in_bytes(pool: ThreadPoolExecutor) -> None:
    """But has one record at least."""
    inbox = inbox_of(NEVER_S, batch=ReadLimits(batch_bytes_max=4))
    inbox.put([b"123", b"45", b"6", b"789012"])
    inbox.close()
    assert [data_of(batch) for batch in inbox.batches()] == [[b"123"], [b"45", b"6"], [b"789012"]]


def test_it_takes_all_of_a_request_or_none() -> None:
    """And again, once there is room: what is being judged has not left yet."""
    reported: list[object] = []
    inbox = inbox_of(limits=InboxLimits(3, 10_000), reported=reported)
    first = inbox.put([b"1", b"22"])
    with pytest.raises(InboxFull) as full:
        inbox.put([b"3", b"4"])
    assert (full.value.limit, full.value.maximum) == ("inbox_records_max", 3)
    batch = next(inbox.batches())
    with pytest.raises(InboxFull):
        inbox.put([b"3", b"4"])
    answer(batch)
    assert first.replies.result(WAIT_S) == [REFUSED, REFUSED]
    inbox.put([b"3", b"4"])
    changes = [each for each in reported if isinstance(each, InboxChanged)]
    assert changes == [InboxChanged(2, 3), InboxChanged(0, 0), InboxChanged(2, 2)]
    assert sum(isinstance(each, SubmissionAnswered) for each in reported) == 1


def test_it_is_bounded_in_bytes() -> None:
    """A retraction has a size, too."""
    inbox = inbox_of(limits=InboxLimits(100, RETRACTION_BYTES + 5))
    inbox.put([b"123456"])
    with pytest.raises(InboxFull, match="inbox_bytes_max"):
        inbox.put_retraction(Retraction("a", b"name"))
    assert data_of(next(inbox.batches())) == [b"123456"]


def test_once_closed_it_delivers_the_rest_and_ends(pool: ThreadPoolExecutor) -> None:
    """At once, also where it gathers for long; what comes later is given up."""
    inbox = inbox_of(NEVER_S)
    waiting = pool.submit(lambda: [data_of(batch) for batch in inbox.batches()])
    inbox.put([b"1"])
    inbox.close()
    assert waiting.result(WAIT_S) == [[b"1"]]
    with pytest.raises(Unanswered):
        inbox.put([b"2"]).replies.result(WAIT_S)


def test_whoever_waits_when_the_run_ends_is_told() -> None:
    """What is gathered, what is being judged; what was answered stays answered."""
    reported: list[object] = []
    inbox = inbox_of(reported=reported)
    answered = inbox.put([b"1"])
    answer(next(inbox.batches()))
    judged = inbox.put([b"2", b"3"])
    batch = next(inbox.batches())
    submitted(batch.records[0]).answer(REFUSED)
    gathered = inbox.put([b"4"])
    inbox.end()
    for submission in (judged, gathered):
        with pytest.raises(Unanswered):
            submission.replies.result(WAIT_S)
    # The run may still answer what it had in hand.
    answer(batch)
    assert answered.replies.result(WAIT_S) == [REFUSED]
    assert list(inbox.batches()) == []
    assert [each for each in reported if isinstance(each, InboxChanged)][-1] == InboxChanged(0, 0)


def test_several_threads_put_at_once(pool: ThreadPoolExecutor) -> None:
    """Every record is delivered once."""
    inbox = inbox_of(limits=InboxLimits(10_000, 1_000_000))
    begin = threading.Barrier(4)

    def put(number: int) -> None:
        begin.wait(WAIT_S)
        for each in range(200):
            inbox.put([b"%d %d" % (number, each)])

    puts = [pool.submit(put, number) for number in range(4)]
    for each in puts:
        each.result(WAIT_S)
    inbox.close()
    records = [record for batch in inbox.batches() for record in batch.records]
    assert len({record.data for record in records}) == len({record.line for record in records}) == 800


def test_a_retraction_is_has_the_name_that_it_was_given() -> None:
    """By nothing that differs when it is repeated, or between processes; arrivals never go back."""
    times = iter([5, 5, 4, 6])
    arrivals = SubmittedArrivals(lambda: next(times))
    inbox = inbox_of()
    inbox.put_retraction(Retraction("a", b"name"))
    inbox.put([b"{}"])
    inbox.put_retraction(Retraction("b", b"name"))
    records = next(inbox.batches()).records
    article = Article("a", None)
    assert [arrivals.record_name(record) for record in records] == [b"name", b"", b"name"]
    assert [arrivals.arrived_at(record, article)[:2] for record in records] == [(5, 1), (5, 2), (6, 3)]


def test_other_records_are_refused() -> None:
    """Nobody waits for them."""
    with pytest.raises(TypeError, match="does not come from a request"):
        submitted(RawRecord(1, 0, b"{}", 2, None, None, Position()))


@pytest.mark.parametrize("ends", [False, True])
def test_what_leaves_is_counted_before_anybody_learns_of_it(*, ends: bool) -> None:
    """Answered, or given up where the run ends."""
    done: list[bool] = []

    def report(occurrence: object) -> None:
        if isinstance(occurrence, SubmissionAnswered):
            done.append(submission.replies.done())

    inbox = Inbox(0.0, ROOM, ReadLimits(), report)
    submission = inbox.put([b"1"])
    batch = next(inbox.batches())
    inbox.end() if ends else answer(batch)
    assert done == [False]
    assert submission.replies.done()
