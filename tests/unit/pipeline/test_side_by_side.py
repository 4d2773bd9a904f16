"""Parts of a batch that are judged side by side: how it is divided, and what becomes of answers and errors."""

import dataclasses
import threading
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.judge.detector import Detector
from consumer.lifecycle.thread_progress import ThreadIdle, ThreadProgress, ThreadProgressed, WorkerProgressed
from consumer.model.errors import Abandoned
from consumer.model.hooks import Hooks
from consumer.model.record import Partition, RawBatch
from consumer.model.verdict import VerdictEvent
from consumer.pipeline.side_by_side import PART_ARTICLES_MIN, SideBySide, divide
from storage.errors import StoreError, StoreRefused, StoreUnavailable
from storage.memory import MemoryStore
from storage.records import Tombstone, Version
from tests.unit.pipeline.fakes import SETTINGS, TEXT, Ends, line, pipeline

WAIT_S = 60
PARTITIONS: list[Partition] = [("articles", number) for number in range(3)]
BATCH = list(range(3 * PART_ARTICLES_MIN))
OF_THREE = [PARTITIONS[number % 3] for number in BATCH]


class Keeper:
    """Keeps what threads report."""

    def __init__(self) -> None:
        self.reports: list[object] = []

    def listen(self, hooks: Hooks) -> None:
        """Listen."""
        for kind in (ThreadProgressed, ThreadIdle, WorkerProgressed):
            hooks.on(kind, self.reports.append)


@pytest.fixture
def keeper() -> Keeper:
    """What is reported."""
    return Keeper()


@pytest.fixture
def three(keeper: Keeper) -> Iterator[SideBySide]:
    """Three threads."""
    three = SideBySide(3, ThreadProgress(Hooks(keeper)))
    yield three
    three.close()


def tens(part: Sequence[int]) -> list[int]:
    """Answer each."""
    return [10 * item for item in part]


@given(partitions=some.lists(some.sampled_from([None, *PARTITIONS, ("others", 0)])), parts_max=some.integers(1, 6))
def test_each_article_is_in_one_part_and_each_partition_too(partitions: list[Partition | None], parts_max: int) -> None:
    """In order; no part is empty, but for the one of an empty batch."""
    parts = divide(partitions, parts_max)
    assert sorted(index for part in parts for index in part) == list(range(len(partitions)))
    assert all(part == sorted(part) for part in parts)
    assert all(parts) or not partitions
    owners = Counter(partition for part in parts for partition in {partitions[index] for index in part})
    assert set(owners.values()) <= {1}
    assert 1 <= len(parts) <= min(parts_max, max(1, len(owners)))
    assert len(parts) == 1 or len(partitions) >= PART_ARTICLES_MIN * len(parts)


def test_parts_are_about_even() -> None:
    """A large partition is alone, small ones share a part."""
    sizes = [100, 50, 30, 20]
    partitions: list[Partition | None] = [
        ("articles", number) for number, size in enumerate(sizes) for _ in range(size)
    ]
    assert [len(part) for part in divide(partitions, 2)] == [100, 100]
    assert [len(part) for part in divide(partitions, 3)] == [100, 50, 50]


def test_parts_are_worked_on_at_the_same_time_and_answered_in_the_order_of_the_batch(three: SideBySide) -> None:
    """Each waits for the others."""
    together = threading.Barrier(3)

    def work(part: Sequence[int]) -> list[int]:
        together.wait(WAIT_S)
        return tens(part)

    assert three.call(work, BATCH, OF_THREE) == tens(BATCH)


def test_one_part_is_worked_on_by_the_caller(three: SideBySide, keeper: Keeper) -> None:
    """Of one partition, of few articles, or of none: that costs no change of threads."""
    threads: list[threading.Thread] = []

    def work(part: Sequence[int]) -> list[int]:
        threads.append(threading.current_thread())
        return tens(part)

    assert three.call(work, BATCH, [None] * len(BATCH)) == tens(BATCH)
    assert three.call(work, BATCH[:20], OF_THREE[:20]) == tens(BATCH[:20])
    assert three.call(work, [], []) == []
    assert threads == 3 * [threading.current_thread()]
    assert keeper.reports == []


def test_progress_of_a_part_is_progress_of_the_main_thread(three: SideBySide, keeper: Keeper) -> None:
    """Each thread turns and rests under its own name, so that one that hangs is seen, and where."""
    three.call(tens, BATCH, OF_THREE)
    assert keeper.reports.count(WorkerProgressed()) == 3
    names = [report.thread for report in keeper.reports if isinstance(report, ThreadProgressed)]
    assert len(names) == 3
    assert all(name.startswith("judge_") for name in names)
    assert Counter(names) == Counter(report.thread for report in keeper.reports if isinstance(report, ThreadIdle))


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        ([None, StoreUnavailable("away"), None], StoreUnavailable),
        ([StoreUnavailable("away"), None, Abandoned("gone")], Abandoned),
        ([Abandoned("gone"), StoreUnavailable("away"), StoreRefused("another version")], StoreRefused),
        ([StoreUnavailable("away"), StoreError("damaged"), Abandoned("gone")], StoreError),
    ],
)
def test_the_gravest_error_is_raised_and_the_others_are_logged(
    three: SideBySide,
    caplog: pytest.LogCaptureFixture,
    raised: Sequence[Exception | None],
    expected: type[Exception],
) -> None:
    """Otherwise a run would wait for a store that has refused it."""

    def work(part: Sequence[int]) -> list[int]:
        error = raised[part[0] % 3]
        if error is not None:
            raise error
        return tens(part)

    with pytest.raises(expected) as found:
        three.call(work, BATCH, OF_THREE)
    others = [str(error) for error in raised if error is not None and error is not found.value]
    assert sorted(record.getMessage().rpartition(": ")[2] for record in caplog.records) == sorted(others)


def test_nothing_is_worked_on_any_more_when_an_error_is_raised(three: SideBySide) -> None:
    """The batch may be judged again at once, or its partitions given away."""
    failed, at_work = threading.Event(), []

    def work(part: Sequence[int]) -> list[int]:
        if part[0] == 0:
            failed.set()
            raise StoreUnavailable("away")
        assert failed.wait(WAIT_S)
        at_work.append(part[0])
        return tens(part)

    with pytest.raises(StoreUnavailable):
        three.call(work, BATCH, OF_THREE)
    assert sorted(at_work) == [1, 2]
    assert three.call(tens, BATCH, OF_THREE) == tens(BATCH)


def of_topic(batch: RawBatch, partitions: int) -> RawBatch:
    """Give the records of a batch to the partitions of a topic, in turn."""
    return RawBatch(
        tuple(
            dataclasses.replace(record, partition=("articles", record.line % partitions)) for record in batch.records
        ),
        batch.end,
    )


class Noting(Detector):
    """A judge that notes the threads that use it, and the ids of each of its batches. Three parts meet in it."""

    __slots__ = ("batches", "meeting")

    def __init__(self) -> None:
        super().__init__(MemoryStore(clock=lambda: 0), SETTINGS, lambda: 10_000)
        self.batches: list[tuple[str, list[str]]] = []
        self.meeting = threading.Barrier(3)

    def judge(self, batch: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        """Note, and judge."""
        ids = [arrived.id if isinstance(arrived, Tombstone) else arrived.record.id for arrived in batch]
        self.batches.append((threading.current_thread().name, ids))
        if len(ids) > 1:
            # Otherwise a thread may be done with its part before the next one gets its own.
            self.meeting.wait(WAIT_S)
        return super().judge(batch)


def test_a_run_judges_the_partitions_of_a_batch_side_by_side(three: SideBySide) -> None:
    """An article that comes twice in a partition is judged twice, and the verdicts are in the order of the batch."""
    ids = [f"article {number}" for number in range(47)] + ["article 44"]
    ends = Ends([line(article_id, f"{number}{TEXT}") for number, article_id in enumerate(ids)])
    ends.source.lines, (batch,) = [], list(ends.source.batches())
    judge = Noting()
    running = pipeline(ends, judge.store)
    running.source, running.detector, running.side_by_side = Delivers([of_topic(batch, 3)]), judge, three
    running.run()
    assert [answer.event.verdict.id for answer in ends.sink.answers] == ids
    assert sorted(len(ids) for _, ids in judge.batches) == [1, 15, 16, 16]
    assert len({thread for thread, _ in judge.batches if thread.startswith("judge_")}) == 3
    assert [articles for _, articles in judge.batches if articles == ["article 44"]]


class Delivers:
    """Delivers batches."""

    def __init__(self, batches: Sequence[RawBatch]) -> None:
        self._batches = batches

    def batches(self) -> Iterator[RawBatch]:
        """Deliver all of them."""
        yield from self._batches

    def close(self) -> None:
        """Nothing to close."""
