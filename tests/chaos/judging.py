"""Processes that judge into one store at the same time, in step: a barrier before each batch."""

import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import NamedTuple

from consumer.judge.common_hashes import CommonHashes
from consumer.judge.detector import Detector
from storage.clock import MS_PER_DAY, now_ms
from storage.interface import Answer, Store
from storage.lmdb import LmdbOptions, LmdbStore
from storage.postings import PostingRow
from storage.records import Version
from tests.chaos.near_articles import SETTINGS
from tests.prefork import forkserver

Opens = Callable[[], Store]
"""Opens the store that all processes share, in each of them."""

OPTIONS = LmdbOptions(durability="process")
REMEMBERED_MS = 90 * MS_PER_DAY
STEP_TIMEOUT_S = 150
"""Longer than a store that is killed and started again in the middle of a batch keeps it waiting."""


OVERLAP_S = 0.002
"""How long a process gives way in the middle of a batch, so that the others get there too, on one free core as well."""


class GivingWay(LmdbStore):
    """A store whose calls count one by one, in which a process that has looked up lets the others do so too.

    As in stores that cannot write a batch at once, and in consumers of versions before those that could.
    """

    def together(self, work: Callable[[], Answer]) -> Answer:
        """Run the work, and nothing more."""
        return work()

    def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[PostingRow]:
        """Look up, and give way."""
        rows = super().look_up(keys, bytes_max)
        time.sleep(OVERLAP_S)
        return rows


def open_lmdb(path: Path) -> Store:
    """The store at this path, at which processes meet."""
    return GivingWay.open(path, OPTIONS)


def open_lmdb_for_batches(path: Path) -> Store:
    """The store at this path as consumers use it: each batch is written at once."""
    return LmdbStore.open(path, OPTIONS)


class Judged(NamedTuple):
    """What one process answered, by reference, and how often another process had settled first."""

    answers: dict[bytes, bytes]
    lost_compare_and_sets: int


def count_of_answered() -> "Synchronized[int]":
    """How many batches have been answered by all processes: for ``judge_together`` to count, for others to watch."""
    return forkserver().Value("i", 0)


def judge_together(
    opens: Opens,
    shares: Sequence[Sequence[Sequence[Version]]],
    answered: "Synchronized[int] | None" = None,
    last_opens: Opens | None = None,
    *,
    annotating: bool = False,
) -> list[Judged]:
    """Judge each share, a list of as many batches as the others, in a process of its own, batch beside batch.

    The last process may open the store in another way. If they are ``annotating``, judges remember texts and look for
    parts.
    """
    context = forkserver()
    answered = answered or count_of_answered()
    barrier = context.Barrier(len(shares))
    started = []
    ways = [opens] * (len(shares) - 1) + [last_opens or opens]
    for way, share in zip(ways, shares, strict=True):
        ours, theirs = context.Pipe()
        process = context.Process(target=_judge, args=(theirs, barrier, way, share, answered, annotating))
        process.start()
        theirs.close()
        started.append((process, ours))
    try:
        return [ours.recv() for _, ours in started]
    finally:
        for process, _ in started:
            process.join(STEP_TIMEOUT_S)
            process.kill()


def in_batches(versions: Sequence[Version], size: int) -> list[Sequence[Version]]:
    """The versions in their order, this many at a time."""
    return [versions[at : at + size] for at in range(0, len(versions), size)]


def dealt(groups: Sequence[Sequence[Version]], processes: int, groups_a_step: int) -> list[list[list[Version]]]:
    """For each process a batch a step, of some members of each of the step's groups: what is near comes together."""
    shares: list[list[list[Version]]] = [[] for _ in range(processes)]
    for at in range(0, len(groups), groups_a_step):
        for process, share in enumerate(shares):
            share.append(
                [
                    version
                    for number, group in enumerate(groups[at : at + groups_a_step])
                    for turn, version in enumerate(group, number)
                    if turn % processes == process
                ]
            )
    return shares


def _judge(
    pipe: Connection,
    barrier: Barrier,
    opens: Opens,
    batches: Sequence[Sequence[Version]],
    answered: "Synchronized[int]",
    annotating: bool,  # noqa: FBT001  # by place, to a process
) -> None:
    store = opens()
    detector = Detector(store, SETTINGS, now_ms)
    if annotating:
        detector = Detector(store, SETTINGS, now_ms, seen_ms=REMEMBERED_MS, common=CommonHashes())
    answers: dict[bytes, bytes] = {}
    try:
        for batch in batches:
            barrier.wait(STEP_TIMEOUT_S)
            events = detector.judge(batch)
            answers |= {version.record.reference: event.encoded for version, event in zip(batch, events, strict=True)}
            with answered:
                answered.value += 1
    except BaseException:
        # Nobody is to wait for one who comes no more.
        barrier.abort()
        raise
    finally:
        pipe.send(Judged(answers, detector.tally.lost_compare_and_sets))
        store.close()
