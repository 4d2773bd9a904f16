"""The loop: what is done with a batch, and in which order."""

import logging
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import pytest
from typing_extensions import override

from consumer.files.lines import Position
from consumer.judge.detector import Detector
from consumer.judge.search import LOOK_UP_BYTES_MAX
from consumer.lifecycle.interruption import Drain, Interruption, NoInterruption
from consumer.lifecycle.retry import Result
from consumer.lifecycle.stopping import StopSignal
from consumer.lifecycle.thread_progress import MAIN, ThreadIdle, ThreadProgressed
from consumer.model.article import Article
from consumer.model.errors import Abandoned, SinkError
from consumer.model.hooks import Hooks
from consumer.model.ports import Rejection
from consumer.model.record import RawBatch, RawRecord
from consumer.pipeline import batches, loop
from consumer.pipeline.batches import BatchCommitted
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy, Gate
from consumer.pipeline.loop import Pipeline
from storage.errors import StoreUnavailable
from storage.memory import MemoryStore
from storage.postings import POSTING_DTYPE, PostingRow
from storage.records import Record
from storage.watched import WatchedStore
from tests.unit.pipeline.fakes import KEEP_MS, SETTINGS, TEXT, Ahead, Ends, Never, line, pipeline


class SweptStore(MemoryStore):
    """A store that notes when it was swept."""

    def __init__(self) -> None:
        super().__init__(clock=lambda: 0)
        self.sweeps: list[tuple[int, int]] = []

    def sweep(self, before_ms: int, versions_max: int) -> int:
        """Note the bounds."""
        self.sweeps.append((before_ms, versions_max))
        return super().sweep(before_ms, versions_max)


def test_a_batch_is_committed_after_it_was_flushed() -> None:
    """Verdicts and dead letters are written and flushed before the source counts as read."""
    ends = Ends([line("a"), b"{"], [line("b")])
    pipeline(ends, MemoryStore()).run()
    step = ["emit", "reject", "flush", "flush letters", "commit", "committed"]
    assert ends.steps == [*step, *step, "finish"]
    stages = ["poll", "decode", "fingerprint", "look_up", "settle", "emit", "commit"]
    assert ends.listener.stages == [*stages, *stages, "poll"]
    assert all(seconds > 0 for seconds in ends.listener.seconds)
    assert ends.journal.committed == [Position(2, 0), Position(3, 0)]
    assert ends.sink.outcomes == [("a", "unique"), ("b", "duplicate")]
    assert [letter.reason for letter in ends.dead_letters.letters] == ["invalid_json"]


@pytest.mark.parametrize("full", ["sink", "dead_letters"])
def test_nothing_is_committed_when_verdicts_or_letters_cannot_be_written(full: str) -> None:
    """A batch whose verdicts or letters may not be on the disk is read again by the next run."""
    ends = Ends([line("a"), b"{"])
    getattr(ends, full).disk_is_full = True
    with pytest.raises(SinkError):
        pipeline(ends, MemoryStore()).run()
    assert ends.journal.committed == []
    assert "finish" not in ends.steps


def test_every_answer_names_the_record_it_is_of() -> None:
    """A sink sees the record of each verdict, also after one that was rejected."""
    ends = Ends([line("a"), b"{", line("b"), line("c", None)])
    pipeline(ends, MemoryStore()).run()
    assert [(answer.record.line, answer.event.verdict.outcome) for answer in ends.sink.answers] == [
        (1, "unique"),
        (3, "duplicate"),
        (4, "retracted"),
    ]


def test_a_batch_is_measured() -> None:
    """Records and bytes of all, sources and outcomes of those that were judged, keywords of those with a body."""
    lines = [line("a", source="wire"), b"{", line("b"), line("c", None, source="wire"), line("d", "!!!")]
    ends = Ends(lines)
    pipeline(ends, MemoryStore()).run()
    (batch,) = ends.listener.measured
    assert (batch.records, batch.size_bytes) == (5, sum(map(len, lines)))
    assert batch.outcomes == [("wire", "unique"), ("", "duplicate"), ("wire", "retracted"), ("", "unique")]
    assert batch.keyword_counts.tolist() == [batch.keyword_counts[0], batch.keyword_counts[0], 0]
    assert batch.keyword_counts[0] > 10


def test_an_id_that_comes_again_in_a_batch_sees_what_was_decided_before() -> None:
    """Replay, retraction and another article of the same text within one batch are judged one after the other."""
    ends = Ends([line("a"), line("a"), line("a", None), line("b"), line("c")])
    pipeline(ends, MemoryStore()).run()
    assert ends.sink.outcomes == [
        ("a", "unique"),
        ("a", "unique"),
        ("a", "retracted"),
        ("b", "unique"),
        ("c", "duplicate"),
    ]
    assert ends.sink.events[0] == ends.sink.events[1]


def test_the_store_is_swept_behind_the_newest_arrival() -> None:
    """After each batch, versions older than window and slack are swept, at most a few times the size of the batch."""
    store = SweptStore()
    pipeline(Ends([line("a"), line("b")], [b"{"]), store).run()
    assert store.sweeps == [(10_000 - KEEP_MS, 8)]


def test_many_postings_an_article_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """Beyond the limit the warning names the plan to move to, and is not repeated."""
    bodies = [TEXT.replace("苍浦", f"苍{chr(0x4E00 + 50 * number)}") for number in range(6)]
    ends = Ends(*([line(str(number), body)] for number, body in enumerate(bodies)))
    with caplog.at_level(logging.WARNING, logger="dupwatch"):
        pipeline(ends, MemoryStore(), postings_watch=1).run()
    assert [("16x28" in record.message) for record in caplog.records] == [True]


def test_no_plan_is_advised_that_finds_less(caplog: pytest.LogCaptureFixture) -> None:
    """16x28 does not find pairs that are 5 bits apart."""
    bodies = [TEXT.replace("苍浦", f"苍{chr(0x4E00 + 50 * number)}") for number in range(6)]
    store, ends = MemoryStore(), Ends(*([line(str(number), body)] for number, body in enumerate(bodies)))
    running = pipeline(ends, store, postings_watch=1)
    running.detector = Detector(store, replace(SETTINGS, max_distance=5), lambda: 10_000)
    with caplog.at_level(logging.WARNING, logger="dupwatch"):
        running.run()
    (warned,) = caplog.records
    assert warned.message.endswith("The window is too large for the plan 4x16: shorten the window")


def test_no_warning_below_the_limit(caplog: pytest.LogCaptureFixture) -> None:
    """A window that fits its plan causes no warning."""
    with caplog.at_level(logging.WARNING, logger="dupwatch"):
        pipeline(Ends([line("a")], [line("b")]), MemoryStore()).run()
    assert caplog.records == []


def test_a_stop_between_batches_leaves_the_run_unfinished() -> None:
    """The current batch is committed, the next one is not read, and the run does not count as finished."""
    ends = Ends([line("a")], [line("b")])
    running = pipeline(ends, MemoryStore())

    def stop(_: BatchCommitted) -> None:
        running.stopping.requested_by = 15

    running.hooks.on(BatchCommitted, stop)
    running.run()
    assert ends.journal.committed == [Position(1, 0)]
    assert "finish" not in ends.steps


def test_articles_without_keywords_are_counted() -> None:
    """They are kept, and counted."""
    ends = Ends([line("a", " "), line("b", "\u200b"), line("c")])
    running = pipeline(ends, MemoryStore())
    running.run()
    assert ends.sink.outcomes == [("a", "unique"), ("b", "unique"), ("c", "unique")]
    assert isinstance(running.detector, Detector)
    assert running.detector.tally.without_keywords == 2


def test_a_batch_is_looked_up_in_parts_of_bounded_size() -> None:
    """Only rows of so many bytes are held at once, however large the batch, and all matches are found."""

    class Counting(MemoryStore):
        """Notes how many keys are asked for at once, and the bytes of rows that are returned together."""

        def __init__(self) -> None:
            super().__init__()
            self.keys: list[int] = []
            self.sizes_bytes: list[int] = []

        def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[PostingRow]:
            """Look up, and note."""
            rows = super().look_up(keys, bytes_max)
            self.keys.append(len(keys))
            self.sizes_bytes.append(sum(len(row.packed) for row in rows))
            return rows

    bodies = [TEXT.replace("苍浦", f"苍{chr(0x4E00 + 50 * number)}") for number in range(100)]
    found: list[tuple[list[tuple[str, str]], Counting]] = []
    for bytes_max in (LOOK_UP_BYTES_MAX, 20_000):
        store = Counting()
        ends = Ends([line(str(number), body) for number, body in enumerate(bodies)])
        running = pipeline(ends, store)
        running.detector = Detector(store, SETTINGS, lambda: 10_000, look_up_bytes_max=bytes_max)
        running.run()
        found.append((ends.sink.outcomes, store))
    (at_once, whole), (in_parts, parts) = found
    assert at_once == in_parts
    assert [outcome for _, outcome in in_parts].count("unique") == 1
    row_bytes_max = len(bodies) * POSTING_DTYPE.itemsize
    of_several = [size for keys, size in zip(parts.keys, parts.sizes_bytes, strict=True) if keys > min(parts.keys)]
    assert of_several
    assert max(of_several) <= 20_000 + row_bytes_max < max(whole.sizes_bytes)


def test_a_batch_that_is_taken_away_is_given_up_and_the_next_one_goes_on() -> None:
    """Nothing of it is committed; its verdicts stay in the store."""
    ends = Ends([line("a")], [line("b")])
    ends.journal.taken_away.add(0)
    pipeline(ends, MemoryStore()).run()
    assert ends.steps == [
        "abandon",
        "abandoned",
        "emit",
        "reject",
        "flush",
        "flush letters",
        "commit",
        "committed",
        "finish",
    ]
    assert ends.journal.committed == [Position(2, 0)]


class Patient:
    """Waits a number of times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def call(self, work: Callable[[], Result]) -> Result:
        """Count."""
        while True:
            try:
                return work()
            except StoreUnavailable:
                if self.times == 0:
                    raise
                self.times -= 1


class Flickering(MemoryStore):
    """Unreachable a few times, in the middle of a batch."""

    outages = 3

    def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
        """Fail, or settle."""
        if self.outages:
            self.outages -= 1
            raise StoreUnavailable("the gateway is down")
        return super().settle(verdicts, removing)


def test_a_run_waits_for_its_store_where_it_was_told_to() -> None:
    """The batch is judged again when the store is back, and nothing becomes a dead letter meanwhile."""
    ends = Ends([line("a"), line("b")])
    running = pipeline(ends, Flickering())
    running.retry = Patient(3)
    running.run()
    assert running.detector.cost().settle_s > 0
    assert ends.sink.outcomes == [("a", "unique"), ("b", "duplicate")]
    assert ends.dead_letters.letters == []


@pytest.mark.parametrize("requested_by", [15, None])
def test_a_batch_that_waits_to_be_decoded_is_given_up_when_the_run_is_to_stop(requested_by: int | None) -> None:
    """It has not begun: earlier batches are committed, and the run ends. Otherwise the error is raised."""
    ends = Ends([line("a")], [line("b")], [line("c")])
    running = pipeline(ends, MemoryStore())
    decode_all = running.decode

    def waits(record: RawRecord) -> Article:
        if record.line == 2:
            running.stopping.requested_by = requested_by
            raise Abandoned("the registry is away")
        return decode_all(record)

    running.decode = waits
    with nullcontext() if requested_by else pytest.raises(Abandoned):
        running.run()
    assert ends.journal.committed == [Position(1, 0)]
    assert "finish" not in ends.steps


def test_a_run_that_does_not_wait_ends_with_what_the_store_said() -> None:
    """By default the run ends with the store's error, and commits nothing."""
    ends = Ends([line("a")])
    with pytest.raises(StoreUnavailable, match="the gateway is down"):
        pipeline(ends, Flickering()).run()
    assert ends.journal.committed == []


@dataclass
class NotingGate(Gate):
    """Notes each call in ``steps``, with the number of bad records; may refuse the first batch."""

    steps: list[str]
    refuses: bool = False

    @override
    def before_judging(self, batch: RawBatch, rejections: Sequence[Rejection]) -> None:
        self.steps.append(f"{len(rejections)} of {len(batch.records)} bad")
        if self.refuses:
            self.refuses = False
            raise Abandoned("its partition is held")

    @override
    def after_commit(self) -> None:
        self.steps.append("after commit")

    @override
    def at_end(self) -> None:
        self.steps.append("at end")


def gated(ends: Ends, *, refuses: bool = False) -> Pipeline:
    """Build a pipeline with a gate that notes its calls among the steps."""
    running = pipeline(ends, MemoryStore())
    gate = NotingGate(ends.steps, refuses)
    running.dead_letters = DeadLetterPolicy("feed", ends.dead_letters, gate)
    return running


def test_the_gate_sees_each_batch_before_it_is_judged_and_after_its_commit() -> None:
    """At the end it decides on the whole input."""
    ends = Ends([line("a"), b"{"])
    gated(ends).run()
    assert ends.steps == [
        "1 of 2 bad",
        "emit",
        "reject",
        "flush",
        "flush letters",
        "commit",
        "committed",
        "after commit",
        "finish",
        "at end",
    ]


def test_a_batch_that_the_gate_refuses_is_not_judged() -> None:
    """Nothing of it is written, and the run continues."""
    ends = Ends([b"{"], [line("a")])
    gated(ends, refuses=True).run()
    assert ends.steps[:4] == ["1 of 1 bad", "abandon", "abandoned", "0 of 1 bad"]
    assert ends.dead_letters.letters == []
    assert ends.sink.outcomes == [("a", "unique")]


def test_a_stopped_run_has_no_end_for_the_gate_to_decide_on() -> None:
    """The rest of the input is read by a later run."""
    ends = Ends([line("a")], [line("b")])
    running = gated(ends)

    def stop(_: BatchCommitted) -> None:
        running.stopping.requested_by = 15

    running.hooks.on(BatchCommitted, stop)
    running.run()
    assert ends.steps[-1] == "after commit"


@dataclass
class AtWork(Interruption):
    """Notes what each thread did: began to work, turned, rested."""

    told: list[tuple[str, str]] = field(default_factory=list)

    def listen(self, hooks: Hooks) -> None:
        """Note when a thread works, and when it rests."""
        hooks.on(ThreadProgressed, lambda turned: self.told.append((turned.thread, "work")))
        hooks.on(ThreadIdle, lambda rested: self.told.append((rested.thread, "rest")))

    @override
    def while_preparing(self) -> None:
        this = threading.current_thread()
        self.told.append((MAIN if this is threading.main_thread() else this.name, "turn"))

    while_judging = while_preparing

    @override
    def while_idle(self) -> None: ...


@pytest.mark.parametrize("ahead", [0, 2])
def test_threads_rest_only_while_they_wait(ahead: int) -> None:
    """Decoding, fingerprinting, judging and sweeping are work, in any thread; each record is a turn."""
    ends, at_work = Ends([line("a"), line("b")], [line("c")]), AtWork()
    store = WatchedStore.interruptible(MemoryStore(), at_work.while_judging)
    running = pipeline(ends, store)
    running.fingerprinting = Ahead(ahead)
    running.interruption = at_work
    at_work.listen(running.hooks)
    running.run()
    preparing = "read-ahead" if ahead else MAIN
    for thread in {preparing, MAIN}:
        events = [what for who, what in at_work.told if who == thread]
        working = False
        for what in events:
            assert working is (what != "work")
            working = what != "rest"
        assert not working
    if ahead:
        assert [what for who, what in at_work.told if who == preparing] == [
            "work", "turn", "turn", "rest", "work", "turn", "rest",
        ]  # fmt: skip
    # Two batches with some calls of the store each, a sweep among them.
    assert at_work.told.count((MAIN, "turn")) > 10


def test_a_batch_ends_between_two_calls_of_the_store() -> None:
    """When the time to stop is up, nothing of the batch is sent, and what was written is found again."""
    lines = [line("a", f"{TEXT}{number}") for number in range(5)]
    calls_made = []
    for stops_at in range(100):
        ends, store, stopping = Ends(lines, [line("b")]), MemoryStore(), StopSignal()
        drain, left = Drain(stopping, 0), iter(range(stops_at))

        def turn(stopping: StopSignal = stopping, drain: Drain = drain, left: Iterator[int] = left) -> None:
            if next(left, None) is None and stopping.requested_by is None:
                stopping.requested_by, stopping.requested_at_s = 15, -math.inf
            drain.while_judging()

        running = pipeline(ends, WatchedStore.interruptible(store, turn))
        running.stopping = stopping
        running.run()
        if ends.journal.committed:
            break
        calls_made.append(stops_at)
        assert ends.steps == ["abandon", "abandoned"]
        again = Ends(lines, [line("b")])
        pipeline(again, store).run()
        assert len(again.sink.events) == 6
    assert len(calls_made) > 5 * 4


class TimeIsUp(NoInterruption):
    """Asks to stop, and gives up, where a batch waits for its fingerprints."""

    def __init__(self, stopping: StopSignal) -> None:
        self._stopping = stopping

    @override
    def while_idle(self) -> None:
        self._stopping.requested_by = 15
        raise Abandoned("the time is up")


def test_fingerprints_that_do_not_come_are_not_waited_for_when_the_run_is_to_stop() -> None:
    """A hanging worker does not delay the end, and waiting for it is not a turn."""
    ends, stopping = Ends([line("a")]), StopSignal()
    running = pipeline(ends, MemoryStore())
    running.stopping, running.fingerprinting = stopping, Never()
    running.interruption = TimeIsUp(stopping)
    running.run()
    assert ends.steps == ["abandon", "abandoned"]


def test_with_no_listener_nothing_is_computed_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without listeners, stages are not timed and batches are not measured."""

    def costs(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(batches, "_report_stage", costs)
    monkeypatch.setattr(loop, "_measurements", costs)
    ends = Ends([line("a"), b"{"], [line("b")])
    running = pipeline(ends, MemoryStore())
    running.hooks = Hooks()
    running.run()
    assert ends.sink.outcomes == [("a", "unique"), ("b", "duplicate")]
    assert ends.listener.stages == []
