"""Text in, verdict out, on one core: dupwatch against what people would write today.

``python -m benchmarks.speed.end_to_end``. Every contender sees the same articles, of which one in five is an edited
copy, and begins with an index of 100,000 articles: fingerprints drawn from a model of its own fingerprints of such
texts (see ``codes``), for ``datasketch`` and ``rensa`` random sketches. dupwatch takes batches of 256, as its command
line does, and writes records, bodies, postings and verdicts; the peers keep fingerprints in memory and nothing on disk.
"""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import typer

from benchmarks.speed.codes import CodeModel
from benchmarks.speed.harness import Contender, Timing, ratios, take_turns
from benchmarks.speed.machine import keep_to_one_core, single_threaded
from benchmarks.speed.ours import LIKE_FOR_LIKE, Dupwatch
from benchmarks.speed.peers import DATASKETCH, RENSA, STOCK, MinHashLsh, RensaLsh, StockBuild, installed
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.fingerprint.compiled import core_version
from consumer.stress.made_texts import FeedText, make_feed
from consumer.workers.word_files import load_lexicon

PART: Final = "end_to_end"
CHARS: Final = (500, 2_000)
DEFAULT: Final = "dupwatch, default, LMDB"
IN_PYTHON: Final = "dupwatch, engine in Python, LMDB"
"""Measured beside the default where that has the compiled engine."""
LIKE_LMDB: Final = "dupwatch, like for like, LMDB"
LIKE_MEMORY: Final = "dupwatch, like for like, memory"
_MODEL_TEXTS: Final = 1_500
_MODEL_CHARS: Final = 500
_SETTINGS: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    (DEFAULT, "lmdb:{scratch}/default", {}),
    (LIKE_LMDB, "lmdb:{scratch}/like", LIKE_FOR_LIKE),
    (LIKE_MEMORY, "memory:", LIKE_FOR_LIKE),
)
_IN_PYTHON: Final = (IN_PYTHON, "lmdb:{scratch}/python", {"fingerprint": {"engine": "python"}})


class Judging(NamedTuple):
    """Something that judges articles one after the other, its index preloaded."""

    name: str
    judge: Callable[[Sequence[FeedText]], object]


def preloaded_judges(stack: ExitStack, count: int, scratch: Path, model_texts: int = _MODEL_TEXTS) -> list[Judging]:
    """Build everything that is measured, with ``count`` articles in each index; ``held`` closes the stores."""
    lexicon = load_lexicon()
    texts = [text.body for text in make_feed(model_texts, _MODEL_CHARS, copies_share=0.0, seed=2)]
    built: list[Judging] = []
    model: CodeModel | None = None
    for name, url, overrides in _SETTINGS if core_version() is None else (*_SETTINGS, _IN_PYTHON):
        ours = Dupwatch.opened(stack, lexicon, url.format(scratch=scratch), overrides)
        if model is None:
            model = CodeModel.fitted(ours.fingerprinter.fingerprint(texts).codes.reshape(-1))
        ours.preload(model, count, np.random.default_rng(3))
        built.append(Judging(name, ours.judge))
    if installed("jieba", "simhash"):
        stock = StockBuild()
        codes = np.array([stock.fingerprint(text).value for text in texts], np.uint64)
        stock.preload(CodeModel.fitted(codes).sample(count, np.random.default_rng(3)))
        built.append(Judging(STOCK, partial(_one_by_one, stock.judge)))
    if installed("datasketch"):
        lsh = MinHashLsh()
        lsh.preload(count, np.random.default_rng(3))
        built.append(Judging(DATASKETCH, partial(_one_by_one, lsh.judge)))
    if installed("rensa"):
        rensa = RensaLsh()
        rensa.preload(count, np.random.default_rng(3))
        built.append(Judging(RENSA, partial(_one_by_one, rensa.judge)))
    return built


def measure(judges: Sequence[Judging], feed: Sequence[FeedText], articles: int, rounds: int) -> list[Timing]:
    """Time the judges; round r judges ``feed[r * articles:(r + 1) * articles]``, the first one to warm up."""

    def judged(judge: Callable[[Sequence[FeedText]], object], number: int) -> int:
        part = feed[number * articles : (number + 1) * articles]
        judge(part)
        return len(part)

    return take_turns([Contender(name, partial(judged, judge)) for name, judge in judges], rounds)


def rows(timings: Sequence[Timing]) -> list[Row]:
    """Articles a second of each, and how many times the stock build's that is, round by round."""
    stock = next((timing for timing in timings if timing.name == STOCK), None)
    return [
        {
            "what": timing.name,
            "articles/s": timing.rate,
            "µs an article": timing.microseconds,
            "times stock": None if stock is None else ratios(timing, stock),
        }
        for timing in timings
    ]


def _one_by_one(judge: Callable[[str, str], bool], articles: Sequence[FeedText]) -> None:
    for article in articles:
        judge(article.id, article.body)


def main(
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
    preloaded: Annotated[int, typer.Option(help="Articles in each index at the start.")] = 100_000,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds, for a first look.")] = False,
) -> None:
    """Measure text in, verdict out."""
    single_threaded()
    keep_to_one_core()
    articles, rounds, count = (128, 3, preloaded // 10) if quick else (512, 7, preloaded)
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="dupwatch-bench-"))
        tell(f"Preloading {count:,} articles for each contender …")
        judges = preloaded_judges(stack, count, Path(scratch))
        for chars in CHARS:
            feed = make_feed((rounds + 1) * articles, chars, seed=chars)
            found = rows(measure(judges, feed, articles, rounds))
            title = f"End to end, one core, articles of {chars:,} characters, {count:,} preloaded"
            publish(PART, title, found, out=out, chars=chars, articles=articles, rounds=rounds, preloaded=count)


if __name__ == "__main__":
    typer.run(main)
