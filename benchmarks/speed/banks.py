"""What banks cost on LMDB: throughput with many items and with none, and how long and how much memory loading takes.

``python -m benchmarks.speed.banks``. Text in, verdict out, on one core, as ``end_to_end``: the same articles, of which
one in five is an edited copy and one in twenty has an item in it, without banks and with each number of items, in turn.
"""

import ctypes
import gc
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from benchmarks.speed.harness import Contender, ratios, take_turns
from benchmarks.speed.machine import keep_to_one_core, single_threaded
from benchmarks.speed.ours import Dupwatch
from benchmarks.speed.report import OUT, Row, publish, tell
from benchmarks.speed.texts import FeedText, make_feed
from consumer.banks.bank import Bank, BankItem
from consumer.banks.exchange import lines_of
from consumer.telemetry.metrics.run import own_memory_bytes
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


def in_turn(scratch: Path, stack: ExitStack, sizes: list[int], chars: int, articles: int, rounds: int) -> list[Row]:
    """Let a judge without banks and one for each number of items judge the same articles in turn."""
    lexicon = load_lexicon()
    items = make_feed(max(sizes), _ITEM_CHARS, copies_share=0.0, seed=3)
    feed = with_items(make_feed((rounds + 1) * articles, chars, seed=chars), items)
    loading: dict[str, tuple[float, float]] = {}
    contenders = []
    for size in (0, *sizes):
        name = f"{size:,} items" if size else "without"
        banks = {"banks": {"url": str(bank_file(scratch / f"{size}.jsonl", items[:size]))}} if size else {}
        before, began_s = own_memory_bytes(), time.perf_counter()
        ours = Dupwatch.opened(stack, lexicon, f"lmdb:{scratch}/{chars}-{size}", banks)
        took_s = time.perf_counter() - began_s
        # What was read is no longer needed. A run gives it back every few seconds (``consumer.lifecycle.heap``).
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        loading[name] = took_s, (own_memory_bytes() - before) / max(size, 1)
        contenders.append(Contender(name, partial(_judged, ours, feed, articles)))
    timings = take_turns(contenders, rounds)
    return [
        {
            "banks": timing.name,
            "articles/s": timing.rate,
            "µs an article": timing.microseconds,
            "times without": ratios(timing, timings[0]),
            "s to load": loading[timing.name][0],
            "bytes an item": loading[timing.name][1] if timing.name != timings[0].name else None,
        }
        for timing in timings
    ]


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
