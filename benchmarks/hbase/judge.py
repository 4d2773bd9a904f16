"""How fast articles are judged on HBase, store only: fingerprints are ready.

``python -m benchmarks.hbase.judge --articles 1000000 --plan 4x16 [--packed] [--consumers 2] [--gateways 2]``. Starts an
HBase and gateways of its own, fills a store with postings (``benchmarks.hbase.load``), and lets consumers judge batches
of fresh articles of 2,000 characters from eight partitions, one in ten a near copy of an earlier one: records, bodies,
postings, look-up, candidates, verdicts, all that ``judge()`` does. Lane 0 alone and both lanes take turns, round by
round, and so do numbers of threads that judge at a time (``store.hbase.judges_max``). Each consumer is a process.
Beside articles a second stands where the processor time of an article goes, and how much of the time a consumer does
nothing but wait for an answer.
"""

import gc
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from benchmarks.hbase.made_feed import COPIED_EVERY, MadeFeed
from benchmarks.hbase.servers import HEAP_MB, Servers, Wanted, filled, servers
from benchmarks.speed.codes import CodeModel
from benchmarks.speed.harness import spread
from benchmarks.speed.look_up import model_of_texts
from benchmarks.speed.report import Row, publish
from consumer.fingerprint import BlockPlan
from consumer.judge.common_hashes import CommonHashes
from consumer.judge.detector import Detector
from consumer.judge.search import LOOK_UP_BYTES_MAX
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import VersionBuilder
from consumer.lifecycle.thread_progress import ThreadProgress
from consumer.model.hooks import Hooks
from consumer.model.verdict import VerdictEvent
from consumer.pipeline.side_by_side import SideBySide
from storage.clock import MS_PER_DAY, now_ms
from storage.hbase import parse_place
from storage.hbase.store import HbaseStore
from storage.records import Version

PART: Final = "hbase_judge"
BATCH: Final = 256
PARTITIONS: Final = 8
ROUNDS: Final = (20, 5)
"""Rounds that are not counted, in which Java becomes fast, and those that are."""
_EACH: Final = 6 * BATCH


class Job(NamedTuple):
    """What a consumer is given: the store and how it was filled, the model of its articles, and how many in a round."""

    url: str
    wanted: Wanted
    model: CodeModel
    articles: int


class Way(NamedTuple):
    """How articles are judged: with one lane or both, by how many threads at a time, and how many in a batch.

    With ``seen`` their texts are remembered beyond the window, with ``parts`` parts are looked for.
    """

    lane1: bool
    judges: int = 1
    batch: int = BATCH
    seen: bool = False
    parts: bool = False

    @property
    def name(self) -> str:
        """The way in words."""
        words = ["both lanes" if self.lane1 else "lane 0 alone"]
        if self.judges > 1:
            words.append(f"{self.judges} judges")
        if self.batch != BATCH:
            words.append(f"batches of {self.batch}")
        words += ["texts remembered"] if self.seen else []
        words += ["parts"] if self.parts else []
        return ", ".join(words)


WAYS: Final = (
    Way(lane1=False),
    Way(lane1=True),
    Way(lane1=True, judges=2),
    Way(lane1=True, judges=3),
    Way(lane1=True, judges=4),
    Way(lane1=True, judges=3, batch=3 * BATCH),
    Way(lane1=True, seen=True),
    Way(lane1=True, parts=True),
)


class Judged(NamedTuple):
    """A consumer's round: duplicates found, rows and postings read, and its processor time in seconds."""

    duplicates: int
    rows: int
    postings: int
    processor_s: float


class Round(NamedTuple):
    """A round of all consumers: articles, seconds, and processor time of consumers, gateways and server."""

    articles: int
    took_s: float
    consumers_s: float
    gateways_s: float
    server_s: float
    duplicates: int
    rows: int
    postings: int


def consume(job: Job, asked: "Connection[Judged | None, Way | None]") -> None:
    """Be a consumer: prepare articles for a received way, judge them at the next message; None ends it."""
    store = HbaseStore.open(parse_place(job.url))
    detectors = {way: _detector(store, job.wanted.plan, way) for way in WAYS}
    dense = job.wanted.density_bits
    feeds = {
        way: MadeFeed(job.model, _builder(detector.settings), dense, parts=way.parts)
        for way, detector in detectors.items()
    }
    threads = {way: SideBySide(way.judges, ThreadProgress(Hooks())) for way in WAYS}
    while (way := asked.recv()) is not None:
        versions = feeds[way].take(job.articles)
        gc.collect()
        asked.send(None)
        asked.recv()
        tally = replace(detectors[way].tally)
        began_s = time.process_time()
        events = [
            event
            for start in range(0, len(versions), way.batch)
            for event in judge(detectors[way], threads[way], versions[start : start + way.batch])
        ]
        took_s = time.process_time() - began_s
        duplicates = sum(event.verdict.outcome == "duplicate" for event in events)
        now = detectors[way].tally
        asked.send(Judged(duplicates, now.row_reads - tally.row_reads, now.postings_read - tally.postings_read, took_s))
    for each in threads.values():
        each.close()
    store.close()


def judge(detector: Detector, threads: SideBySide, versions: Sequence[Version]) -> list[VerdictEvent]:
    """Judge a batch whose articles come from the partitions in turn."""
    partitions = [("articles", number % PARTITIONS) for number in range(len(versions))]
    return threads.call(detector.judge, versions, partitions)


def _detector(store: HbaseStore, plan: str, way: Way) -> Detector:
    settings = JudgeSettings(plan=BlockPlan.named(plan), scheme_digest="", lane1=way.lane1)
    return Detector(
        store,
        settings,
        now_ms,
        look_up_bytes_max=LOOK_UP_BYTES_MAX // way.judges,
        seen_ms=MS_PER_DAY if way.seen else 0,
        common=CommonHashes() if way.parts else None,
    )


def _builder(settings: JudgeSettings) -> VersionBuilder:
    return VersionBuilder(settings.scheme.name, settings.plan, settings.lane1)


@contextmanager
def consumers(count: int, job: Job) -> Iterator[list["Connection[Way | None, Judged | None]"]]:
    """This many consumers, each at the other end of a pipe; they end with the context."""
    spawn = multiprocessing.get_context("spawn")
    ends = [spawn.Pipe() for _ in range(count)]
    processes = [spawn.Process(target=consume, args=(job, theirs), daemon=True) for _, theirs in ends]
    for process in processes:
        process.start()
    # Without our copies of their ends, a consumer that dies is an end of file here.
    for _, theirs in ends:
        theirs.close()
    try:
        yield [ours for ours, _ in ends]
        for ours, _ in ends:
            ours.send(None)
        for process in processes:
            process.join()
    finally:
        for process in processes:
            process.kill()


def judge_round(
    way: Way, connections: Sequence["Connection[Way | None, Judged | None]"], running: Servers, each: int
) -> Round:
    """Let every consumer judge this many articles in this way at the same time."""
    for pipe in connections:
        pipe.send(way)
    for pipe in connections:
        pipe.recv()
    gateways_s, server_s = running.processor_s()
    began_s = time.perf_counter()
    for pipe in connections:
        pipe.send(way)
    judged = [done for pipe in connections if (done := pipe.recv()) is not None]
    took_s = time.perf_counter() - began_s
    gateways_after_s, server_after_s = running.processor_s()
    return Round(
        each * len(connections),
        took_s,
        sum(result.processor_s for result in judged),
        gateways_after_s - gateways_s,
        server_after_s - server_s,
        sum(result.duplicates for result in judged),
        sum(result.rows for result in judged),
        sum(result.postings for result in judged),
    )


def row(name: str, rounds: Sequence[Round], consumer_count: int) -> Row:
    """What the rounds of a way come to. Raises ``ValueError`` where not all copies were found."""
    share = sum(round_.duplicates for round_ in rounds) / sum(round_.articles for round_ in rounds)
    if not 0.9 < share * COPIED_EVERY < 1.2:
        raise ValueError(f"{name}: {share:.1%} are duplicates, and one in {COPIED_EVERY} is a copy")
    return {
        "judge": name,
        "articles/s": spread([round_.articles / round_.took_s for round_ in rounds]),
        "Python, µs": _an_article(rounds, "consumers_s"),
        "gateway, µs": _an_article(rounds, "gateways_s"),
        "server, µs": _an_article(rounds, "server_s"),
        "cores busy": spread(
            [(round_.consumers_s + round_.gateways_s + round_.server_s) / round_.took_s for round_ in rounds]
        ).median,
        "waiting, %": spread(
            [100 - 100 * round_.consumers_s / round_.took_s / consumer_count for round_ in rounds]
        ).median,
        "rows read": sum(round_.rows for round_ in rounds) / sum(round_.articles for round_ in rounds),
        "postings read": sum(round_.postings for round_ in rounds) / sum(round_.articles for round_ in rounds),
    }


def _an_article(rounds: Sequence[Round], whose: str) -> float:
    return spread([1e6 * float(getattr(round_, whose)) / round_.articles for round_ in rounds]).median


def measure(
    running: Servers,
    wanted: Wanted,
    consumer_count: int,
    each: int = _EACH,
    rounds: tuple[int, int] = ROUNDS,
    ways: Sequence[Way] = WAYS,
) -> list[Row]:
    """Let each consumer judge this many articles in a round, in these ways in turn."""
    job = Job(filled(running, wanted), wanted, model_of_texts(), each)
    done: dict[Way, list[Round]] = {way: [] for way in ways}
    with consumers(consumer_count, job) as connections:
        for number in range(sum(rounds)):
            for way, of_way in done.items():
                found = judge_round(way, connections, running, each)
                if number >= rounds[0]:
                    of_way.append(found)
    return [row(way.name, of_way, consumer_count) for way, of_way in done.items()]


def main(  # noqa: PLR0913  # one for each option
    articles: Annotated[int, typer.Option(min=1, help="Articles in the store.")] = 1_000_000,
    plan: Annotated[str, typer.Option(help="4x16 or 16x28.")] = "4x16",
    consumer_count: Annotated[int, typer.Option("--consumers", min=1, help="Processes that judge.")] = 1,
    gateways: Annotated[int, typer.Option(min=1, help="Thrift gateways.")] = 1,
    only: Annotated[list[str] | None, typer.Option("--way", help='Only these ways, such as "both lanes".')] = None,
    folder: Annotated[Path | None, typer.Option(help="Where filled stores stay for the next time.")] = None,
    *,
    density_bits: Annotated[int, typer.Option(min=0, max=12, help="Rows as full as at 2**N times the articles.")] = 0,
    packed: Annotated[bool, typer.Option("--packed/--hot", help="Posting sets, or a cell a posting.")] = False,
) -> None:
    """Measure judging on an HBase of its own."""
    ways = [way for way in WAYS if not only or way.name in only]
    if only and len(ways) < len(only):
        raise typer.BadParameter(f"the ways are: {'; '.join(way.name for way in WAYS)}")
    with servers(folder, gateways) as running:
        rows = measure(running, Wanted(plan, articles, packed, density_bits), consumer_count, ways=ways)
    kind = "packed" if packed else "hot"
    dense = f", rows as at {articles << density_bits:,}" if density_bits else ""
    title = (
        f"Judging on HBase, {articles:,} articles, {plan}, {kind}{dense};"
        f" consumers: {consumer_count}, gateways: {gateways}"
    )
    publish(
        PART,
        title,
        rows,
        articles=articles,
        plan=plan,
        packed=packed,
        density_bits=density_bits,
        consumers=consumer_count,
        gateways=gateways,
        rounds=ROUNDS,
        heap_mb=HEAP_MB,
    )


if __name__ == "__main__":
    typer.run(main)
