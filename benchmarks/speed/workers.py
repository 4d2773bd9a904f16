"""The real command line with 0, 1 and 2 workers: a file in, verdicts out, an LMDB store; on all cores.

``python -m benchmarks.speed.workers``. Each run is a process of its own over a new store. What a run takes before its
first verdict (loading the dictionary, starting workers) is measured by a feed of one article, shown apart, and
taken off.
"""

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from benchmarks.speed.harness import Contender, Timing, ratios, spread, take_turns
from benchmarks.speed.machine import single_threaded
from benchmarks.speed.report import OUT, Row, publish
from consumer.stress.made_texts import make_feed

PART: Final = "workers"
WORKERS: Final = (0, 1, 2)
CHARS: Final = 2_000
COMMAND: Final = (sys.executable, "-c", "from consumer.cli import main; main()")


def write_feed(path: Path, articles: int, chars: int) -> None:
    """Write a feed of made articles as JSON lines."""
    encoder = msgspec.json.Encoder()
    with path.open("wb") as lines:
        for text in make_feed(articles, chars, seed=chars):
            lines.write(encoder.encode({"id": text.id, "lang": "zh", "body": text.body}) + b"\n")


def run_once(feed: Path, articles: int, workers: int, number: int) -> int:
    """Judge the feed in a process of its own; ``ValueError`` where not every article got a verdict."""
    with tempfile.TemporaryDirectory(dir=feed.parent) as scratch:
        sink = Path(scratch) / f"verdicts-{number}.jsonl"
        options = ["--source", str(feed), "--sink", str(sink), "--emit", "all", "--workers", str(workers)]
        subprocess.run([*COMMAND, "run", *options, "--store", f"lmdb:{scratch}/store"], check=True, capture_output=True)
        with sink.open("rb") as verdicts:
            judged = sum(1 for _ in verdicts)
    if judged != articles:
        raise ValueError(f"{judged} of {articles} articles got a verdict")
    return articles


def measure(scratch: Path, articles: int, chars: int, rounds: int) -> tuple[list[Timing], list[Timing]]:
    """Time whole runs, and runs over one article, for each number of workers."""
    found = []
    # The first start reads programs and dictionary from the disk, and is not counted.
    for count, warm_up_rounds in ((1, 1), (articles, 0)):
        feed = scratch / f"feed-{count}.jsonl"
        write_feed(feed, count, chars)
        runs = [Contender(f"--workers {workers}", partial(run_once, feed, count, workers)) for workers in WORKERS]
        found.append(take_turns(runs, rounds, warm_up_rounds=warm_up_rounds))
    return found[1], found[0]


def rows(whole: list[Timing], starts: list[Timing]) -> list[Row]:
    """Articles a second once it runs, and how many times those without workers that is."""
    running = [
        Timing(
            run.name,
            tuple(units - 1 for units in run.units),
            tuple(max(took - begin, 1e-9) for took, begin in zip(run.seconds, start.seconds, strict=True)),
        )
        for run, start in zip(whole, starts, strict=True)
    ]
    return [
        {
            "what": run.name,
            "articles/s": run.rate,
            "times no workers": ratios(run, running[0]),
            "start, s": spread(start.seconds),
            "whole run, s": spread(all_of_it.seconds),
        }
        for run, start, all_of_it in zip(running, starts, whole, strict=True)
    ]


def main(
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer articles and rounds.")] = False,
) -> None:
    """Measure the command line with workers beside it."""
    single_threaded()
    articles, rounds = (2_560, 1) if quick else (10_000, 3)
    with tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as scratch:
        found = rows(*measure(Path(scratch), articles, CHARS, rounds))
    title = f"dupwatch run, {articles:,} articles of {CHARS:,} characters, LMDB"
    publish(PART, title, found, out=out, articles=articles, chars=CHARS, rounds=rounds)


if __name__ == "__main__":
    typer.run(main)
