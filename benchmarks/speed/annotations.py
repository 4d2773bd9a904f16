"""What it costs to remember texts (``judge.seen_days``), and to look for parts (``judge.parts``), on LMDB.

``python -m benchmarks.speed.annotations``. Text in, verdict out, on one core, as ``end_to_end``: the same articles, of
which one in five is an edited copy, without either, with each, and with both, in turn. Each store begins with as many
articles, judged in the same way. ``--footer N`` judges N articles that all end in the same notice instead, with parts
and without, in turn, and shows how both grow from tenth to tenth. ``--texts N`` remembers N texts, and shows how much
of the disk they take.
"""

import tempfile
import time
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer

from benchmarks.quality.part_cases import FOOTERS
from benchmarks.speed.harness import Contender, ratios, spread, take_turns
from benchmarks.speed.machine import keep_to_one_core, single_threaded
from benchmarks.speed.ours import Dupwatch
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.stress.made_texts import FeedText, make_feed
from consumer.workers.word_files import load_lexicon
from storage.clock import now_ms
from storage.lmdb import LmdbStore
from storage.seen import TEXT_DIGEST_BYTES, SeenChange, SeenTimes

PART: Final = "annotations"
PLAIN: Final = "without"
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    PLAIN: {},
    "seen_days = 90": {"judge": {"seen_days": 90}},
    "parts": {"judge": {"parts": True}},
    "both": {"judge": {"seen_days": 90, "parts": True}},
}
_CHARS: Final = (500, 2_000)
_SLICES: Final = 10
_TURN: Final = 256


def in_turn(scratch: Path, stack: ExitStack, chars: int, articles: int, rounds: int, stored: int) -> list[Row]:
    """Let each way judge the same articles in turn; the first round, which is not counted, fills the stores."""
    lexicon = load_lexicon()
    feed = make_feed(stored + rounds * articles, chars, seed=chars)

    def judged(ours: Dupwatch, number: int) -> int:
        part = feed[:stored] if number == 0 else feed[stored + (number - 1) * articles : stored + number * articles]
        ours.judge(part)
        return len(part)

    contenders = [
        Contender(name, partial(judged, Dupwatch.opened(stack, lexicon, f"lmdb:{scratch}/{chars}-{name}", overrides)))
        for name, overrides in SETTINGS.items()
    ]
    timings = take_turns(contenders, rounds)
    plain = next(timing for timing in timings if timing.name == PLAIN)
    return [
        {
            "with": timing.name,
            "articles/s": timing.rate,
            "µs an article": timing.microseconds,
            "times without": ratios(timing, plain),
        }
        for timing in timings
    ]


def with_footer(scratch: Path, stack: ExitStack, articles: int) -> list[Row]:
    """Judge articles that end in one notice, batch by batch in turn; return the time of an article in each tenth."""
    lexicon = load_lexicon()
    stores = {
        name: Dupwatch.opened(stack, lexicon, f"lmdb:{scratch}/footer-{name}", SETTINGS[name])
        for name in (PLAIN, "parts")
    }
    each = articles // _SLICES
    rows: list[Row] = []
    for number in range(_SLICES):
        feed = [_with_footer(text) for text in make_feed(each, 500, copies_share=0.0, seed=number + 1)]
        feed = [text._replace(id=f"{number}-{text.id}") for text in feed]
        read = stores["parts"].detector.tally.part_postings_read
        took_s = dict.fromkeys(stores, 0.0)
        for start in range(0, each, _TURN):
            for name, ours in stores.items():
                began_s = time.perf_counter()
                ours.judge(feed[start : start + _TURN])
                took_s[name] += time.perf_counter() - began_s
        rows.append(
            {
                "articles": (number + 1) * each,
                **{f"µs, {name}": spread([1e6 * seconds / each]) for name, seconds in took_s.items()},
                "times without": spread([took_s["parts"] / took_s[PLAIN]]),
                "postings read for parts": (stores["parts"].detector.tally.part_postings_read - read) / each,
            }
        )
    return rows


def remembered(scratch: Path, texts: int) -> list[Row]:
    """Remember so many texts; return how many bytes of the data file each takes."""
    rng = np.random.default_rng(1)
    with closing(LmdbStore.open(scratch / "texts")) as store:
        empty = store.stats().size_bytes or 0
        for start in range(0, texts, _TURN):
            digests = rng.bytes(TEXT_DIGEST_BYTES * min(_TURN, texts - start))
            store.change_seen(
                [
                    SeenChange(digests[at : at + TEXT_DIGEST_BYTES], None, SeenTimes(now_ms(), now_ms(), start, 1))
                    for at in range(0, len(digests), TEXT_DIGEST_BYTES)
                ]
            )
        return [{"texts": texts, "bytes a text": ((store.stats().size_bytes or 0) - empty) / texts}]


def _with_footer(text: FeedText) -> FeedText:
    return text._replace(body=f"{text.body}\n\n{FOOTERS[True]}")


def main(
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
    stored: Annotated[int, typer.Option(min=1, help="Articles in each store at the start.")] = 20_000,
    footer: Annotated[int, typer.Option(min=0, help="Judge so many articles with one footer instead.")] = 0,
    texts: Annotated[int, typer.Option(min=0, help="Remember so many texts instead, and show their size.")] = 0,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds, for a first look.")] = False,
) -> None:
    """Measure what annotations cost."""
    single_threaded()
    keep_to_one_core()
    articles, rounds = (256, 3) if quick else (512, 7)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dupwatch-bench-")))
        if texts:
            publish(PART, f"{texts:,} texts remembered, LMDB", remembered(scratch, texts), out=out, texts=texts)
            return
        if footer:
            found = with_footer(scratch, stack, footer)
            publish(PART, f"{footer:,} articles with one footer", found, out=out, articles=footer)
            return
        for chars in _CHARS:
            tell(f"Judging {stored:,} articles of {chars:,} characters into each store …")
            found = in_turn(scratch, stack, chars, articles, rounds, stored)
            title = f"Annotations, one core, articles of {chars:,} characters, {stored:,} stored"
            publish(PART, title, found, out=out, chars=chars, articles=articles, rounds=rounds, stored=stored)


if __name__ == "__main__":
    typer.run(main)
