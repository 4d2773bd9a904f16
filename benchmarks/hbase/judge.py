"""How fast articles are judged on HBase, store only: fingerprints are ready.

``python -m benchmarks.hbase.judge --articles 1000000 --plan 4x16 [--packed] [--consumers 2] [--gateways 2]``. Starts an
HBase and gateways of its own, fills a store with postings (``benchmarks.hbase.load``), and lets consumers judge batches
of 256 fresh articles of 2,000 characters, one in ten a near copy of an earlier one: records, bodies, postings, look-up,
candidates, verdicts, all that ``judge()`` does. Lane 0 alone and the defaults take turns, round by round. Each consumer
is a process. Beside articles a second stands where the processor time of an article goes, and how much of the time a
consumer does nothing but wait for an answer.
"""

import gc
import multiprocessing
import time
from collections.abc import Iterator, Mapping, Sequence
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
from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import VersionBuilder
from storage.clock import now_ms
from storage.hbase import parse_place
from storage.hbase.store import HbaseStore

PART: Final = "hbase_judge"
LANE_0: Final = "lane 0 alone"
DEFAULTS: Final = "defaults"
BATCH: Final = 256
ROUNDS: Final = (5, 5)
"""Rounds that are not counted, in which Java becomes fast, and those that are."""
_EACH: Final = 4 * BATCH


class Job(NamedTuple):
    """What a consumer is given: the store, its plan, the model of its articles, and how many it judges in a round."""

    url: str
    plan: str
    model: CodeModel
    articles: int


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


def consume(job: Job, asked: "Connection[Judged | None, str | None]") -> None:
    """Be a consumer: prepare articles for a received setting, judge them at the next message; None ends it."""
    store = HbaseStore.open(parse_place(job.url))
    detectors = {name: Detector(store, settings, now_ms) for name, settings in _settings(job.plan).items()}
    feeds = {name: MadeFeed(job.model, _builder(detector.settings)) for name, detector in detectors.items()}
    while (name := asked.recv()) is not None:
        versions = feeds[name].take(job.articles)
        gc.collect()
        asked.send(None)
        asked.recv()
        tally = replace(detectors[name].tally)
        began_s = time.process_time()
        events = [
            event
            for start in range(0, len(versions), BATCH)
            for event in detectors[name].judge(versions[start : start + BATCH])
        ]
        took_s = time.process_time() - began_s
        duplicates = sum(event.verdict.outcome == "duplicate" for event in events)
        now = detectors[name].tally
        asked.send(Judged(duplicates, now.row_reads - tally.row_reads, now.postings_read - tally.postings_read, took_s))
    store.close()


def _settings(plan: str) -> Mapping[str, JudgeSettings]:
    defaults = JudgeSettings(plan=BlockPlan.named(plan), scheme_digest="")
    return {LANE_0: replace(defaults, lane1=False), DEFAULTS: defaults}


def _builder(settings: JudgeSettings) -> VersionBuilder:
    return VersionBuilder(settings.scheme.name, settings.plan, settings.lane1)


@contextmanager
def consumers(count: int, job: Job) -> Iterator[list["Connection[str | None, Judged | None]"]]:
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
    name: str, connections: Sequence["Connection[str | None, Judged | None]"], running: Servers, each: int
) -> Round:
    """Let every consumer judge this many articles with this setting at the same time."""
    for pipe in connections:
        pipe.send(name)
    for pipe in connections:
        pipe.recv()
    gateways_s, server_s = running.processor_s()
    began_s = time.perf_counter()
    for pipe in connections:
        pipe.send(name)
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
    """What a setting's rounds come to. Raises ``ValueError`` where not all copies were found."""
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
    running: Servers, wanted: Wanted, consumer_count: int, each: int = _EACH, rounds: tuple[int, int] = ROUNDS
) -> list[Row]:
    """Let each consumer judge this many articles in a round, with both settings in turn."""
    job = Job(filled(running, wanted), wanted.plan, model_of_texts(), each)
    done: dict[str, list[Round]] = {LANE_0: [], DEFAULTS: []}
    with consumers(consumer_count, job) as connections:
        for number in range(sum(rounds)):
            for name, of_setting in done.items():
                found = judge_round(name, connections, running, each)
                if number >= rounds[0]:
                    of_setting.append(found)
    return [row(name, of_setting, consumer_count) for name, of_setting in done.items()]


def main(
    articles: Annotated[int, typer.Option(min=1, help="Articles in the store.")] = 1_000_000,
    plan: Annotated[str, typer.Option(help="4x16 or 16x28.")] = "4x16",
    consumer_count: Annotated[int, typer.Option("--consumers", min=1, help="Processes that judge.")] = 1,
    gateways: Annotated[int, typer.Option(min=1, help="Thrift gateways.")] = 1,
    folder: Annotated[Path | None, typer.Option(help="Where filled stores stay for the next time.")] = None,
    *,
    packed: Annotated[bool, typer.Option("--packed/--hot", help="Posting sets, or a cell a posting.")] = False,
) -> None:
    """Measure judging on an HBase of its own."""
    with servers(folder, gateways) as running:
        rows = measure(running, Wanted(plan, articles, packed), consumer_count)
    kind = "packed" if packed else "hot"
    title = (
        f"Judging on HBase, {articles:,} articles, {plan}, {kind}; consumers: {consumer_count}, gateways: {gateways}"
    )
    publish(
        PART,
        title,
        rows,
        articles=articles,
        plan=plan,
        packed=packed,
        consumers=consumer_count,
        gateways=gateways,
        rounds=ROUNDS,
        heap_mb=HEAP_MB,
    )


if __name__ == "__main__":
    typer.run(main)
