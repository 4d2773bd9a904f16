"""What banks cost on LMDB: throughput with many items and with none, and how long and how much memory loading takes.

``python -m benchmarks.speed.banks``. Text in, verdict out, on one core, as ``end_to_end``: the same articles, of which
one in five is an edited copy and one in twenty has an item in it, without banks and with each number of items, in turn.
How long loading takes, and how much memory, is measured in new processes: one without a cache of fingerprints, which
writes it, and one with it.
"""

import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer

from benchmarks.speed.harness import Contender, ratios, take_turns
from benchmarks.speed.machine import keep_to_one_core, resident_bytes, single_threaded
from benchmarks.speed.ours import Dupwatch
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.banks.bank import Bank, BankItem
from consumer.banks.exchange import lines_of
from consumer.stress.made_texts import FeedText, make_feed
from consumer.workers.word_files import load_lexicon

PART: Final = "banks"
_ITEM_CHARS: Final = 300
_WITH_ITEM_EVERY: Final = 20
_BANK: Final = Bank(bank="spam", action="deny")


def bank_file(path: Path, items: list[FeedText]) -> Path:
    """Write a file of banks with these items."""
    entries = (BankItem(bank=_BANK.bank, item=f"i{place}", text=item.body) for place, item in enumerate(items))
    path.write_bytes(lines_of([_BANK, *entries]))
    return path


def with_items(feed: list[FeedText], items: list[FeedText]) -> list[FeedText]:
    """Put an item into one article of twenty."""
    return [
        article._replace(body=f"{article.body}\n{items[place % len(items)].body}")
        if place % _WITH_ITEM_EVERY == 0
        else article
        for place, article in enumerate(feed)
    ]


class Loading(NamedTuple):
    """What a process needs to load items: seconds, and bytes for each item, at its peak and afterwards."""

    seconds: float
    bytes_peak: float
    bytes_after: float


def banks_with(scratch: Path, size: int) -> dict[str, Any]:
    """Return the settings of the banks with so many items, whose cache is in the same folder."""
    return {"banks": {"url": f"{scratch}/{size}.jsonl", "cache": f"{scratch}/cache"}} if size else {}


def loaded(scratch: Path, size: int) -> Loading:
    """Load items in a new process, which writes the cache at its end if there is none."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(_load, scratch, size).result()


def _load(scratch: Path, size: int) -> Loading:
    keep_to_one_core()
    lexicon = load_lexicon()
    with ExitStack() as stack:
        before_bytes, began_s = resident_bytes(), time.perf_counter()
        _ = Dupwatch.opened(stack, lexicon, "memory:", banks_with(scratch, size))
        took_s = time.perf_counter() - began_s
        peak_bytes = _peak_bytes() - before_bytes
        # What was read is no longer needed. A run gives it back every few seconds (``consumer.lifecycle.heap``).
        return Loading(took_s, peak_bytes / size, (resident_bytes() - before_bytes) / size)


def _peak_bytes() -> int:
    """Return the most memory that this process has held; ``getrusage`` tells that of its parent if it was more."""
    status = Path("/proc/self/status").read_text()
    return 1_024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


def in_turn(scratch: Path, stack: ExitStack, sizes: list[int], chars: int, articles: int, rounds: int) -> list[Row]:
    """Let a judge without banks and one for each number of items judge the same articles in turn."""
    lexicon = load_lexicon()
    items = make_feed(max(sizes), _ITEM_CHARS, copies_share=0.0, seed=3)
    feed = with_items(make_feed((rounds + 1) * articles, chars, seed=chars), items)
    loadings: dict[str, tuple[Loading, Loading]] = {}
    contenders = []
    for size in (0, *sizes):
        name = f"{size:,} items" if size else "without"
        if size:
            bank_file(scratch / f"{size}.jsonl", items[:size])
            tell(f"Loading {name} …")
            loadings[name] = loaded(scratch, size), loaded(scratch, size)
        ours = Dupwatch.opened(stack, lexicon, f"lmdb:{scratch}/{chars}-{size}", banks_with(scratch, size))
        contenders.append(Contender(name, partial(_judged, ours, feed, articles)))
    del items
    timings = take_turns(contenders, rounds)
    return [
        {
            "banks": timing.name,
            "articles/s": timing.rate,
            "µs an article": timing.microseconds,
            "times without": ratios(timing, timings[0]),
        }
        | _columns(*loadings.get(timing.name, ()))
        for timing in timings
    ]


def _columns(first: Loading | None = None, cached: Loading | None = None) -> dict[str, Any]:
    return {
        "s to load": first and first.seconds,
        "s with cache": cached and cached.seconds,
        "bytes an item": cached and cached.bytes_after,
        "at the peak": cached and cached.bytes_peak,
    }


def _judged(ours: Dupwatch, feed: list[FeedText], articles: int, number: int) -> int:
    return len(ours.judge(feed[number * articles : (number + 1) * articles]))


def main(
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
    items: Annotated[list[int] | None, typer.Option(help="Numbers of items; may be repeated.")] = None,
    chars: Annotated[int, typer.Option(min=1, help="Characters of an article.")] = 800,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds, for a first look.")] = False,
) -> None:
    """Measure what banks cost."""
    single_threaded()
    keep_to_one_core()
    articles, rounds = (512, 3) if quick else (1_024, 7)
    sizes = items or [10_000, 100_000]
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dupwatch-bench-")))
        tell(f"Making {max(sizes):,} items …")
        found = in_turn(scratch, stack, sizes, chars, articles, rounds)
        title = f"Banks, one core, articles of {chars:,} characters, items of {_ITEM_CHARS}"
        publish(PART, title, found, out=out, chars=chars, articles=articles, rounds=rounds)


if __name__ == "__main__":
    typer.run(main)
