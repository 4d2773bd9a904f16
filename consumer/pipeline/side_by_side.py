"""Judges the parts of a batch side by side, each in its own thread.

A judge on HBase waits more than it works. The articles of a partition are judged in order, by one thread. Those of
other partitions are judged as if by another consumer, which the judging protocol allows at any time.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

from consumer.lifecycle.thread_progress import ThreadProgress
from consumer.model.errors import Abandoned
from consumer.model.record import Partition
from storage.errors import StoreUnavailable

log = logging.getLogger("dupwatch")

Item = TypeVar("Item")
Answer = TypeVar("Answer")

PART_ARTICLES_MIN: Final = 16
"""The smallest average number of articles in a part: store calls for fewer articles take just as long."""


class SideBySide:
    """A thread pool that divides batches by partition, and works on up to ``parts_max`` parts at a time.

    The threads report to ``progress``.
    """

    def __init__(self, parts_max: int, progress: ThreadProgress) -> None:
        self._parts_max = parts_max
        self._progress = progress
        self._threads = ThreadPoolExecutor(parts_max, thread_name_prefix="judge")

    def call(
        self,
        work: Callable[[Sequence[Item]], Sequence[Answer]],
        batch: Sequence[Item],
        partitions: Sequence[Partition | None],
    ) -> list[Answer]:
        """Return the answer of ``work`` to each item, in the order of the batch.

        ``partitions`` has the partition of each item. When this returns or raises, all parts have ended. If several
        parts fail, the gravest error is raised, and the others are logged.
        """
        parts = divide(partitions, self._parts_max)
        if len(parts) == 1:
            return list(work(batch))
        futures = [self._threads.submit(self._at_work, work, [batch[index] for index in part]) for part in parts]
        answers: dict[int, Answer] = {}
        for part, part_answers in zip(parts, _results(futures), strict=True):
            answers.update(zip(part, part_answers, strict=True))
        return [answers[index] for index in range(len(batch))]

    def close(self) -> None:
        """End the threads. No call may be running."""
        self._threads.shutdown()

    def _at_work(self, work: Callable[[Sequence[Item]], Sequence[Answer]], part: Sequence[Item]) -> Sequence[Answer]:
        with self._progress.at_work(for_judging=True):
            return work(part)


def divide(partitions: Sequence[Partition | None], parts_max: int) -> list[list[int]]:
    """Divide a batch into parts of about the same size; return the indices of each, in order.

    A partition is never split, so the largest one may make the parts uneven. There is at least one part, and at most
    one for each partition. Unless there is only one part, parts have at least ``PART_ARTICLES_MIN``
    articles on average.
    """
    sizes = Counter(partitions)
    count = max(1, min(parts_max, len(sizes), len(partitions) // PART_ARTICLES_MIN))
    part_sizes = [0] * count
    part_of: dict[Partition | None, int] = {}
    for partition, size in sizes.most_common():
        smallest = part_of[partition] = part_sizes.index(min(part_sizes))
        part_sizes[smallest] += size
    parts: list[list[int]] = [[] for _ in range(count)]
    for index, partition in enumerate(partitions):
        parts[part_of[partition]].append(index)
    return parts


def _results(futures: Sequence[Future[Answer]]) -> list[Answer]:
    """Wait for all futures; return their results, or raise the gravest error."""
    errors = sorted((error for future in futures if (error := future.exception()) is not None), key=_severity_rank)
    for other in errors[1:]:
        log.warning("Another part of the batch also failed: %s", other)
    if errors:
        raise errors[0]
    return [future.result() for future in futures]


def _severity_rank(error: BaseException) -> int:
    """Return the rank of an error: 0 for a permanent one, 1 for an abandoned batch, 2 for one that waiting may cure."""
    if isinstance(error, StoreUnavailable):
        return 2
    return 1 if isinstance(error, Abandoned) else 0
