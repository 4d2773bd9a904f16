"""Sinks that answer requests: a client gets its verdict only after the verdict is in the sink and counted."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from typing_extensions import override

from consumer.fingerprint import TextKind
from consumer.model.errors import SinkError
from consumer.model.ports import DeadLetterSink, JudgedRecord, Rejection, ReleasingSink, UnbufferedOutput
from consumer.model.record import RawRecord
from consumer.model.submission import RecordRefusal, RecordVerdict, Reply, SubmittedRecord, submitted

RELEASE_S: Final = 5.0
"""How long a release waits for the batch that is being written. Brokers may be out of reach."""


class Replies:
    """The replies to the records of a batch. Used by the thread of the run."""

    def __init__(self) -> None:
        self._replies: list[tuple[SubmittedRecord, Reply]] = []

    def add(self, record: RawRecord, reply: Reply) -> None:
        """Add a reply, which the next ``send`` sends."""
        self._replies.append((submitted(record), reply))

    def send(self) -> None:
        """Send the replies. Called after the batch is committed and counted, so metrics include every answer."""
        replies, self._replies = self._replies, []
        for record, reply in replies:
            record.answer(reply)


class AnsweringSink(ReleasingSink):
    """A wrapper around a sink that adds the verdicts of a batch to ``replies`` once the sink has flushed them.

    Other threads may send releases at the same time. After a ``SinkError`` of the sink, it is unknown what was written.
    So every later call except ``close`` raises that error again. A release also raises ``SinkError`` if the sink is in
    use for ``RELEASE_S``; later calls do not repeat that error.
    """

    def __init__(self, sink: ReleasingSink) -> None:
        self.replies = Replies()
        self._sink = sink
        self._lock = threading.Lock()
        self._emitted: Sequence[JudgedRecord] = ()
        self._error: SinkError | None = None

    @override
    def emit(self, answers: Sequence[JudgedRecord]) -> None:
        with self._lock_sink():
            self._sink.emit(answers)
            self._emitted = answers

    @override
    def flush(self) -> None:
        with self._lock_sink():
            self._sink.flush()
            emitted, self._emitted = self._emitted, ()
        for answer in emitted:
            kind = None if answer.text_kind is None else TextKind(answer.text_kind).label
            self.replies.add(answer.record, RecordVerdict(answer.event, kind))

    @override
    def release(self, answer: JudgedRecord) -> None:
        """Send the event of a release. Returns once the sink has it."""
        self.release_all([answer])

    def release_all(self, answers: Sequence[JudgedRecord]) -> None:
        """Send the events of releases. Returns once the sink has all of them."""
        with self._lock_sink(RELEASE_S):
            for answer in answers:
                self._sink.release(answer)
            self._sink.flush()

    @override
    def close(self) -> None:
        self._sink.close()

    @contextmanager
    def _lock_sink(self, wait_s: float = -1) -> Iterator[None]:
        """Lock the sink. A negative ``wait_s`` waits without limit. Raises ``SinkError``."""
        if not self._lock.acquire(timeout=wait_s):
            raise SinkError(f"the sink was in use for {wait_s:g} s")
        try:
            if self._error is not None:
                raise self._error
            yield
        except SinkError as error:
            self._error = error
            raise
        finally:
            self._lock.release()


class RefusingSink(UnbufferedOutput, DeadLetterSink):
    """A sink that answers rejected records and writes no dead letters."""

    def __init__(self, replies: Replies) -> None:
        self._replies = replies

    @override
    def reject(self, rejections: Sequence[Rejection]) -> None:
        for rejection in rejections:
            letter = rejection.letter
            self._replies.add(rejection.record, RecordRefusal(letter.reason, letter.detail, rejection.limit))
