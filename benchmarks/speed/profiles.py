"""What the keys of posts cost: ``dupwatch run`` with the profiles ``news`` and ``posts`` on short texts, in turn.

``python -m benchmarks.speed.profiles``. A file in, verdicts out, a new store, each run in a process of its own. On
a shared machine compare the processor time that runs spend in user mode: waiting and other programs are not in it. What
a run over one article takes, by the median of all rounds, is taken off.
"""

import resource
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Final, NamedTuple
from uuid import uuid4

import typer

from benchmarks.speed.harness import Timing, ratios
from benchmarks.speed.machine import single_threaded
from benchmarks.speed.report import OUT, Row, publish
from benchmarks.speed.workers import COMMAND, write_feed

PART: Final = "profiles"
PROFILES: Final = ("news", "posts")
CHARS: Final = 130
SCHEME: Final = "jieba-tfidf/3"


class Spent(NamedTuple):
    """Seconds on the clock, and seconds of processor time in user mode."""

    clock: float
    processor: float


class Server(NamedTuple):
    """An HBase: the beginning of its stores' URLs, and the command that runs its shell."""

    url: str
    shell: str


def run_once(feed: Path, profile: str, server: Server | None) -> Spent:
    """Judge the feed in a process of its own, into a new store on this machine or on a server."""
    with tempfile.TemporaryDirectory(dir=feed.parent) as scratch:
        store = f"lmdb:{scratch}/store" if server is None else f"{server.url}_{uuid4().hex[:8]}"
        options = ["--source", str(feed), "--sink", f"{scratch}/verdicts.jsonl", "--store", store]
        settings = ["--set", f"fingerprint.scheme={SCHEME}", "--set", f"judge.profile={profile}"]
        if server is not None:
            tables = ["--store", store, "--articles", "100000", "--apply", "--shell", server.shell]
            subprocess.run([*COMMAND, "store", "init", *tables, *settings], check=True, capture_output=True)
        began, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([*COMMAND, "run", *options, *settings], check=True, capture_output=True)
        took = time.perf_counter() - began
    return Spent(took, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - used)


def measure(scratch: Path, articles: int, rounds: int, server: Server | None) -> dict[str, list[tuple[Spent, Spent]]]:
    """Return what each round spent on the feed, and on one article, by profile."""
    one, whole = scratch / "one.jsonl", scratch / "whole.jsonl"
    write_feed(one, 1, CHARS)
    write_feed(whole, articles, CHARS)
    # The first start reads programs and dictionary from the disk, and is not counted.
    run_once(one, PROFILES[0], server)
    found: dict[str, list[tuple[Spent, Spent]]] = {profile: [] for profile in PROFILES}
    for _ in range(rounds):
        for profile, spent in found.items():
            spent.append((run_once(whole, profile, server), run_once(one, profile, server)))
    return found


def rows(found: Mapping[str, Sequence[tuple[Spent, Spent]]], articles: int) -> list[Row]:
    """Articles a second of each profile without the start, and how many times those of news that is."""
    table: list[Row] = []
    for field in Spent._fields:
        start = median(getattr(one, field) for spent in found.values() for _, one in spent)
        timings = [
            Timing(
                profile,
                tuple(articles - 1 for _ in spent),
                tuple(getattr(whole, field) - start for whole, _ in spent),
            )
            for profile, spent in found.items()
        ]
        table += [
            {"profile": timing.name, "by": field, "articles/s": timing.rate, "times news": ratios(timing, timings[0])}
            for timing in timings
        ]
    return table


def main(
    articles: Annotated[int, typer.Option(min=2, help="Articles of each run.")] = 20_000,
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each profile.")] = 7,
    store: Annotated[str | None, typer.Option(help="hbase://HOST:PORT/NAMESPACE, else LMDB.")] = None,
    shell: Annotated[str, typer.Option(help="What runs HBase's shell, as for dupwatch store init.")] = "hbase shell",
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure what the profile of posts costs."""
    single_threaded()
    server = None if store is None else Server(store, shell)
    with tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as scratch:
        found = rows(measure(Path(scratch), articles, rounds, server), articles)
    title = f"dupwatch run, {articles:,} articles of {CHARS:,} characters, {'LMDB' if server is None else 'HBase'}"
    publish(PART, title, found, out=out, articles=articles, chars=CHARS, rounds=rounds)


if __name__ == "__main__":
    typer.run(main)
