"""Packers killed with -9 while consumers judge: every live posting is there at every moment, and comes once."""

import hashlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import pytest

from consumer.fingerprint import TextKind
from consumer.judge.detector import Detector
from storage.clock import now_ms
from storage.hbase import posting_rows
from storage.hbase.store import HbaseStore
from storage.records import Record, Version
from tests.builders import TIME_MS, make_record
from tests.chaos.near_articles import SETTINGS
from tests.hbase import packed_rows
from tests.hbase.pack_forever import pack_forever
from tests.hbase.packed_rows import KEYS, wanted
from tests.prefork import forkserver

pytestmark = pytest.mark.servers

KILLS = 10
SKETCH_BYTES = 256
DELAY_MAX_S = 0.4
BUCKET_MS = 100
LIVE_MAX = 800
"""Rows of so many postings are read some dozens of times a second."""
STEP_TIMEOUT_S = 120
ENOUGH_TIMEOUT_S = 400


@dataclass(slots=True)
class Stage:
    """What the threads of the test share: ``live`` are records that were kept, ``contents`` what they were made of."""

    url: str
    live: list[Record] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)
    copies: int = 0
    checks: int = 0
    packed: int = 0
    stop: threading.Event = field(default_factory=threading.Event)

    def done(self) -> int:
        """How often at least each thing was done that is done beside the kills."""
        return min(self.checks, self.copies, self.packed, len(self.live))

    def repeat(self, once: Callable[[], None]) -> None:
        """Do this until the stage ends; it ends as well where this fails."""
        try:
            while not self.stop.is_set():
                once()
        except BaseException:
            self.stop.set()
            raise


def judging(stage: Stage, consumer: int) -> None:
    """Judge new articles, and copies of those that anybody has kept: each copy is a duplicate."""
    store = packed_rows.opened(stage.url)
    detector = Detector(store, SETTINGS, now_ms)
    chance = random.Random(consumer)
    numbers = count()

    def article(content: bytes) -> Version:
        number = next(numbers)
        sketch = hashlib.shake_128(content).digest(SKETCH_BYTES)
        record = make_record(
            f"{consumer} {number}", content, TIME_MS + number, keys=KEYS, kind=int(TextKind.LONG), sketch=sketch
        )
        return Version(record, None)

    def once() -> None:
        originals = [stage.contents[version.id] for version in chance.sample(stage.live, min(2, len(stage.live)))]
        fresh = [b"%d %d" % (consumer, next(numbers)) for _ in range(4 if len(stage.live) < LIVE_MAX else 0)]
        batch = [article(content) for content in [*originals, *fresh]]
        outcomes = [event.verdict.outcome for event in detector.judge(batch)]
        assert outcomes == ["duplicate"] * len(originals) + ["unique"] * len(fresh)
        stage.copies += len(originals)
        for version, content in zip(batch, [*originals, *fresh], strict=True):
            stage.contents[version.record.id] = content
        stage.live += [version.record for version in batch[len(originals) :]]

    stage.repeat(once)
    store.close()


def assert_found(store: HbaseStore, live: Sequence[Record]) -> None:
    """All of these are found, each posting once. Removed ones that were packed may be there as well."""
    there = packed_rows.found(store)
    missing = {key: len(postings - there[key]) for key, postings in wanted(live).items() if postings - there[key]}
    assert missing == {}


def checking(stage: Stage, *, in_pieces: bool) -> None:
    """Look up what was known to be live before, all the time."""
    store = packed_rows.opened(stage.url)
    if in_pieces:
        store._postings._wide.remember_here(KEYS)

    def once() -> None:
        assert_found(store, stage.live[:])
        stage.checks += 1

    stage.repeat(once)
    store.close()


def packing(stage: Stage) -> None:
    """Pack again and again, and now and then unpack everything."""
    store = packed_rows.opened(stage.url)
    turns = count()

    def once() -> None:
        stage.packed += packed_rows.pack(store, BUCKET_MS).postings
        if next(turns) % 10 == 9:
            packed_rows.unpack(store)

    stage.repeat(once)
    store.close()


@contextmanager
def at_once(stage: Stage, *works: Callable[[], None]) -> Iterator[None]:
    """Do all of this in threads for the length of a block; raises what the first to fail raised."""
    with ThreadPoolExecutor(len(works)) as threads:
        futures = [threads.submit(work) for work in works]
        try:
            yield
        finally:
            stage.stop.set()
            for future in futures:
                future.result(STEP_TIMEOUT_S)


def kill_packers(stage: Stage) -> int:
    """Start packers and kill each at a random moment, until enough was done beside that; returns how many."""
    context = forkserver()
    context.set_forkserver_preload(["tests.hbase.pack_forever"])
    chance = random.Random(5)
    killed = 0
    until_s = time.monotonic() + ENOUGH_TIMEOUT_S
    while not stage.stop.is_set() and (killed < KILLS or stage.done() <= 2 * KILLS):
        assert time.monotonic() < until_s, f"only {stage.done()} of everything beside {killed} kills"
        ours, theirs = context.Pipe()
        process = context.Process(target=pack_forever, args=(stage.url, BUCKET_MS, theirs), daemon=True)
        process.start()
        theirs.close()
        try:
            assert ours.poll(STEP_TIMEOUT_S)
            ours.recv()
            time.sleep(chance.uniform(0, DELAY_MAX_S))
            assert process.is_alive()
        finally:
            process.kill()
            process.join(STEP_TIMEOUT_S)
            ours.close()
        killed += 1
    return killed


def test_packers_killed_while_consumers_judge(
    hbase_address: str, hbase_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty kills, a second packer, two consumers: what is kept is found at every moment, once, and so are copies."""
    monkeypatch.setattr(posting_rows, "_CELLS_AT_ONCE", 16)
    stage = Stage(f"hbase://{hbase_address}/{hbase_namespace}")
    with at_once(
        stage,
        lambda: judging(stage, 1),
        lambda: judging(stage, 2),
        lambda: checking(stage, in_pieces=False),
        lambda: checking(stage, in_pieces=True),
        lambda: packing(stage),
    ):
        killed = kill_packers(stage)
    assert killed >= KILLS
    assert stage.done() > 2 * KILLS
    store = packed_rows.opened(stage.url)
    packed_rows.wait_until_old(BUCKET_MS)
    for _ in range(2):
        packed_rows.pack(store, BUCKET_MS)
        assert_found(store, stage.live)
    assert packed_rows.family(store, b"p:") == []
    packed_rows.unpack(store)
    assert_found(store, stage.live)
    store.close()
