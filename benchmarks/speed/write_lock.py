"""How long consumers that share an LMDB store wait for each other: ``python -m benchmarks.speed.write_lock``.

A store is written by one process at a time, and each batch is one write. Each process judges the same number of batches
of 256 articles, one in five an edited copy, into one store. First there is one process, then there are several.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import numpy as np
import typer
from typing_extensions import override

from benchmarks.speed.codes import CodeModel
from benchmarks.speed.machine import single_threaded
from benchmarks.speed.ours import Dupwatch
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.config.loading import load_config
from consumer.stress.made_texts import make_feed
from consumer.wiring.components import engine, judge_settings
from consumer.wiring.stores import opened_store, unstored_binding
from consumer.workers.word_files import load_lexicon
from storage.interface import Answer, Store
from storage.watched import Result, StoreCall, WatchedStore

PART: Final = "write_lock"
BATCH: Final = 256
START_S: Final = 600
"""Longer than making the articles of all batches takes."""
_MODEL_TEXTS: Final = 1_500
_MODEL_CHARS: Final = 500
_MS: Final = 1_000


class Share(NamedTuple):
    """What one process found: how long it judged, and for each batch how long it waited and then held the lock."""

    articles: int
    seconds: float
    waits_s: list[float]
    held_s: list[float]


class Waits(WatchedStore):
    """Measures how long each batch waits until it may write, and how long after that it is written."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.waits_s: list[float] = []
        self.held_s: list[float] = []

    @override
    def together(self, work: Callable[[], Answer]) -> Answer:
        asked_s = time.perf_counter()
        began_s = asked_s

        def begun() -> Answer:
            nonlocal began_s
            began_s = time.perf_counter()
            return work()

        answer = super().together(begun)
        self.waits_s.append(began_s - asked_s)
        self.held_s.append(time.perf_counter() - began_s)
        return answer

    @override
    def _call(self, name: StoreCall, items: int, call: Callable[[], Result]) -> Result:
        return call()


def judge_share(url: str, number: int, batches: int, chars: int, begin: Callable[[], object]) -> Share:
    """Judge the batches of one process, once ``begin`` returns; their articles are made before."""
    feed = make_feed(batches * BATCH, chars, seed=1_000 * chars + number)
    lexicon, config = load_lexicon(), load_config(None, {"store": {"url": url}})
    with opened_store(config) as store:
        waits = Waits(store)
        bound = unstored_binding(config, judge_settings(config, lexicon))
        ours = Dupwatch(waits, bound, engine(config, bound, lexicon))
        parts = [
            [article._replace(id=f"{number} {article.id}") for article in feed[start : start + BATCH]]
            for start in range(0, len(feed), BATCH)
        ]
        begin()
        began_s = time.perf_counter()
        for part in parts:
            ours.judge(part)
        return Share(len(feed), time.perf_counter() - began_s, waits.waits_s, waits.held_s)


def judged_beside(url: str, first: int, processes: int, batches: int, chars: int) -> list[Share]:
    """Judge in this many new processes at once."""
    context = get_context("spawn")
    barrier = context.Barrier(processes)
    started = []
    for number in range(first, first + processes):
        ours, theirs = context.Pipe()
        process = context.Process(target=_judge, args=(theirs, barrier, url, number, batches, chars))
        process.start()
        theirs.close()
        started.append((process, ours))
    try:
        return [ours.recv() for _, ours in started]
    finally:
        for process, _ in started:
            process.terminate()
            process.join()


def _judge(pipe: Connection, barrier: Barrier, url: str, number: int, batches: int, chars: int) -> None:
    pipe.send(judge_share(url, number, batches, chars, lambda: barrier.wait(START_S)))


def row(processes: int, shares: Sequence[Share]) -> Row:
    """Sum up what the processes found, in milliseconds."""
    waits = np.concatenate([share.waits_s for share in shares]) * _MS
    held = np.concatenate([share.held_s for share in shares]) * _MS
    return {
        "processes": processes,
        "articles/s": sum(share.articles / share.seconds for share in shares),
        "batches": len(waits),
        "wait, median, ms": float(np.median(waits)),
        "wait, longest, ms": float(waits.max()),
        "held, median, ms": float(np.median(held)),
        "held, longest, ms": float(held.max()),
    }


def preload(url: str, count: int) -> None:
    """Store articles that were kept."""
    lexicon = load_lexicon()
    with ExitStack() as stack:
        ours = Dupwatch.opened(stack, lexicon, url, {})
        texts = [text.body for text in make_feed(_MODEL_TEXTS, _MODEL_CHARS, copies_share=0.0, seed=2)]
        model = CodeModel.fitted(ours.fingerprinter.fingerprint(texts).codes.reshape(-1))
        ours.preload(model, count, np.random.default_rng(3))


def main(
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
    processes: Annotated[int, typer.Option(min=1, help="Processes that share the store.")] = 2,
    batches: Annotated[int, typer.Option(min=1, help="Batches that each of them judges.")] = 60,
    chars: Annotated[int, typer.Option(min=1, help="Characters of an article.")] = 500,
    preloaded: Annotated[int, typer.Option(help="Articles in the store at the start.")] = 100_000,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer batches, for a first look.")] = False,
) -> None:
    """Measure waits for the write lock."""
    single_threaded()
    if quick:
        batches, preloaded = batches // 10 or 1, preloaded // 10
    with tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as scratch:
        url = f"lmdb:{scratch}/store"
        tell(f"Preloading {preloaded:,} articles …")
        preload(url, preloaded)
        found = [
            row(count, judged_beside(url, first, count, batches, chars)) for first, count in ((0, 1), (1, processes))
        ]
    title = f"Waiting for the write lock, batches of {BATCH}, articles of {chars:,} characters, {preloaded:,} preloaded"
    publish(PART, title, found, out=out, chars=chars, batches=batches, preloaded=preloaded)


if __name__ == "__main__":
    typer.run(main)
