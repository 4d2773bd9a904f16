"""How fast articles are judged on HBase in a window of whole articles, and what remembered sketches save.

``python -m benchmarks.hbase.window --keep DIR``. A window that was judged into LMDB (``benchmarks.service.window``) is
copied into an HBase of the measurement's own: records, verdicts and postings, without the texts. Then one consumer
judges batches of fresh articles of 2,000 characters, one in ten a copy, whose fingerprints are ready. In
``benchmarks.hbase.judge`` candidates have no records, and reading them costs next to nothing; here they have.

A store that remembers no sketches and one that remembers as many as by default take turns, round by round.
"""

import gc
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from benchmarks.hbase.judge import BATCH, Round, row
from benchmarks.hbase.servers import HEAP_MB, Servers, Wanted, compact, make_tables, servers
from benchmarks.service.window import CHARS, COPIED_EVERY, filled_window
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.config.config import Config
from consumer.fingerprint import BlockPlan, Engine
from consumer.judge.binding import Binding
from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import ArrivalTime
from consumer.model.article import Article
from consumer.model.verdict import decode_verdict
from consumer.stress.made_texts import make_feed
from consumer.wiring import components
from storage.clock import now_ms
from storage.hbase import HbaseOptions, parse_place
from storage.hbase.store import HbaseStore
from storage.lmdb import LmdbOptions, LmdbStore
from storage.records import StoredVersion, Version

PART: Final = "hbase_window"
PLAN: Final = "4x16"
EACH: Final = 6 * BATCH
_AT_ONCE: Final = 1_000
_THREADS: Final = 3
_TOLD_EVERY: Final = 20


def copied_window(running: Servers, source: Path, articles: int) -> str:
    """The URL of a store with the window that lies in ``source``, copied first where it is not there yet."""
    wanted = Wanted(PLAN, articles, packed=False)
    done = running.hbase.folder / f"copied-{wanted.namespace}"
    url = running.url(wanted)
    if not done.exists():
        tell(f"copying {source} …")
        make_tables(running, wanted)
        _copy_all(source, url)
        done.touch()
    compact(running, wanted)
    return url


def _copy_all(source: Path, url: str) -> None:
    began_s, read = time.monotonic(), LmdbStore.open(source, LmdbOptions(readonly=True))
    store = HbaseStore.open(parse_place(url), HbaseOptions(keep_bodies=False))
    versions = (stored for stored in read.scan() if isinstance(stored, StoredVersion))
    pages = iter(lambda: list(islice(versions, _AT_ONCE)), [])
    with ThreadPoolExecutor(_THREADS) as threads:
        number = 0
        while some := list(islice(pages, _THREADS)):
            list(threads.map(partial(_copy, store), some))
            number += len(some)
            if number % _TOLD_EVERY < len(some):
                tell(f"{number * _AT_ONCE:,} after {time.monotonic() - began_s:.0f} s")
    store.close()
    read.close()


def _copy(store: HbaseStore, versions: Sequence[StoredVersion]) -> None:
    store.create([Version(stored.record, None) for stored in versions])
    settled = [(stored.record.reference, stored.verdict) for stored in versions if stored.verdict is not None]
    store.settle(settled)
    # A duplicate has no postings.
    store.add(
        [
            stored.record
            for stored in versions
            if stored.verdict is None or decode_verdict(stored.verdict).outcome != "duplicate"
        ]
    )


def fresh(count: int, seed: int, engine: Engine, bound: Binding) -> list[Version]:
    """Articles that nobody has seen, one in ten a copy of another one of them, with fingerprints."""
    feed = make_feed(count, CHARS, copies_share=1 / COPIED_EVERY, seed=seed)
    articles = [Article(id=f"fresh {text.id}", body=text.body) for text in feed]
    fingerprints = engine.fingerprint([text.body for text in feed], [""] * len(feed))
    arrivals = [ArrivalTime(now_ms(), place) for place in range(len(feed))]
    return components.version_builder(bound).versions(articles, arrivals, fingerprints)


def judged(detector: Detector, versions: Sequence[Version], running: Servers) -> Round:
    """Judge a round, and say what it took."""
    gc.collect()
    before, servers_before = (detector.tally.row_reads, detector.tally.postings_read), running.processor_s()
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    events = [
        event for start in range(0, len(versions), BATCH) for event in detector.judge(versions[start : start + BATCH])
    ]
    took_s, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    gateways_s, server_s = (after - was for after, was in zip(running.processor_s(), servers_before, strict=True))
    return Round(
        len(versions),
        took_s,
        cpu_s,
        gateways_s,
        server_s,
        sum(event.verdict.outcome == "duplicate" for event in events),
        detector.tally.row_reads - before[0],
        detector.tally.postings_read - before[1],
    )


def measure(running: Servers, url: str, rounds: tuple[int, int]) -> list[Row]:
    """Judge this many rounds that are not counted, and then those that are, with each of the stores in turn."""
    settings = JudgeSettings(plan=BlockPlan.named(PLAN), scheme_digest="")
    sections: dict[str, Any] = {"store": {"url": url}}
    config = Config(**sections)
    bound = Binding(settings)
    engine = components.engine(config, bound, components.lexicon_of(config))
    sizes = (0, HbaseOptions().sketches_max)
    stores = [HbaseStore.open(parse_place(url), HbaseOptions(sketches_max=size)) for size in sizes]
    detectors = [Detector(store, settings, now_ms) for store in stores]
    done: list[list[Round]] = [[] for _ in detectors]
    reads = [0 for _ in detectors]
    for number in range(sum(rounds)):
        for place, detector in enumerate(detectors):
            versions = fresh(EACH, time.time_ns() % (1 << 31), engine, bound)
            before = detector.tally.record_reads
            found = judged(detector, versions, running)
            if number >= rounds[0]:
                done[place].append(found)
                reads[place] += detector.tally.record_reads - before
    for store in stores:
        store.close()
    return [
        {**row(f"{size:,} sketches remembered", of_size, 1), "records read": count / (EACH * rounds[1])}
        for size, of_size, count in zip(sizes, done, reads, strict=True)
    ]


def main(
    keep: Annotated[Path, typer.Option(help="Where the window in LMDB and its copy in HBase lie.")],
    articles: Annotated[int, typer.Option(min=1, help="Articles in the window.")] = 1_000_000,
    rounds: Annotated[tuple[int, int], typer.Option(help="Rounds of a store that do not count, and that do.")] = (
        20,
        7,
    ),
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure judging in a window of whole articles, on an HBase of its own."""
    source = Path(filled_window(keep, articles).removeprefix("lmdb:"))
    with servers(keep / "window-hbase", heap_mb=HEAP_MB) as running:
        url = copied_window(running, source, articles)
        rows = measure(running, url, rounds)
    title = (
        f"Judging on HBase among whole articles, {articles:,} in the window, {PLAN}, hot, lane 0 and 1, one consumer"
    )
    publish(PART, title, rows, out=out, articles=articles, plan=PLAN, rounds=rounds, heap_mb=HEAP_MB)


if __name__ == "__main__":
    typer.run(main)
