"""Where the time of one article goes, stage by stage: what to make faster next.

``python -m benchmarks.speed.stages [--like-for-like] [--chars 2000]``. The stages of judging are timed by stand-ins
around the store's calls; those of a fingerprint, where Python computes it, by calling the engine's public functions
once more on the same texts. What is left of each whole is its last line. Processor time, not time on the clock: a busy
machine changes it little, and waiting for the disk is not in it.
"""

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final
from unittest import mock

import numpy as np
import typer

from benchmarks.speed.codes import CodeModel
from benchmarks.speed.machine import keep_to_one_core, single_threaded
from benchmarks.speed.ours import LIKE_FOR_LIKE, Dupwatch
from benchmarks.speed.report import OUT, Row, publish
from consumer.fingerprint import Fingerprinter, default_tokenizer, normalise, sketch_batch
from consumer.judge import search, situation
from consumer.judge.comparison_batch import ComparisonBatch
from consumer.stress.made_texts import FeedText, make_feed
from consumer.workers.word_files import load_lexicon

PART: Final = "stages"
STORE_CALLS: Final = ("create", "add", "look_up", "read", "settle")
JUDGE_STEPS: Final[tuple[tuple[object, str], ...]] = (
    (search, "find_candidates"),
    (ComparisonBatch, "compare_all"),
    (situation, "decide"),
)
_BATCH: Final = 256


class Clock:
    """Adds up the seconds of processor time spent under each name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def timed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function so that its time is counted under this name."""

        def wrapper(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401  # passes on what it is given
            began = time.process_time()
            try:
                return work(*arguments, **options)
            finally:
                self.seconds[name] += time.process_time() - began

        return wrapper


@contextmanager
def watched(clock: Clock, store: object) -> Iterator[None]:
    """Time the store's calls and the judge's own steps while this is entered."""
    with ExitStack() as stack:
        for name in STORE_CALLS:
            stand_in = clock.timed(f"store: {name}", getattr(store, name))
            stack.enter_context(mock.patch.object(store, name, stand_in))
        for owner, name in JUDGE_STEPS:
            stand_in = clock.timed(f"judge: {name}", getattr(owner, name))
            stack.enter_context(mock.patch.object(owner, name, stand_in))
        yield


def measure(ours: Dupwatch, feed: Sequence[FeedText]) -> dict[str, float]:
    """Judge the feed in batches; microseconds an article of each stage, and of the whole."""
    clock = Clock()
    fingerprint = clock.timed("fingerprint", ours.fingerprinter.fingerprint)
    versions = clock.timed("fingerprint and versions", ours.versions)
    judge = clock.timed("judge", ours.detector.judge)
    store = ours.detector.store
    with watched(clock, store), mock.patch.object(ours.fingerprinter, "fingerprint", fingerprint):
        for start in range(0, len(feed), _BATCH):
            judge(versions(feed[start : start + _BATCH]))
    if isinstance(ours.fingerprinter, Fingerprinter):
        _engine(clock, ours.fingerprinter, feed, sketched=ours.detector.settings.sketched)
    clock.seconds["whole"] = clock.seconds["fingerprint and versions"] + clock.seconds["judge"]
    clock.seconds["versions"] = clock.seconds.pop("fingerprint and versions") - clock.seconds["fingerprint"]
    inner = [name for name in clock.seconds if name.startswith(("store: ", "judge: "))]
    clock.seconds["judge: the rest"] = clock.seconds["judge"] - sum(clock.seconds[name] for name in inner)
    parts = [name for name in clock.seconds if name.startswith("fingerprint: ")]
    clock.seconds["fingerprint: the rest"] = clock.seconds["fingerprint"] - sum(clock.seconds[name] for name in parts)
    return {name: 1e6 * seconds / len(feed) for name, seconds in sorted(clock.seconds.items())}


def _engine(clock: Clock, engine: Fingerprinter, feed: Sequence[FeedText], *, sketched: bool) -> None:
    tokenizer = default_tokenizer()
    layout = engine.scheme.sketch
    for start in range(0, len(feed), _BATCH):
        texts = [text.body for text in feed[start : start + _BATCH]]
        normalised = clock.timed("fingerprint: normalise", lambda texts=texts: [normalise(text) for text in texts])()
        clock.timed("fingerprint: cut and count", lambda cut=normalised: [tokenizer.count(text) for text in cut])()
        if sketched:
            clock.timed("fingerprint: sketch", sketch_batch)(normalised, layout)


def rows(found: dict[str, float]) -> list[Row]:
    """Microseconds an article, and the share of the whole."""
    return [
        {"stage": name, "µs an article": took, "share, %": 100 * took / found["whole"]} for name, took in found.items()
    ]


def main(
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
    chars: Annotated[int, typer.Option(help="Characters an article.")] = 2_000,
    articles: Annotated[int, typer.Option(help="Articles that are measured, after as many to warm up.")] = 1_024,
    preloaded: Annotated[int, typer.Option(help="Articles in the store at the start.")] = 100_000,
    *,
    like_for_like: Annotated[bool, typer.Option(help="Lane 1 and verification off.")] = False,
) -> None:
    """Measure where the time of one article goes."""
    single_threaded()
    keep_to_one_core()
    feed = make_feed(2 * articles, chars, seed=chars)
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="dupwatch-bench-"))
        overrides = LIKE_FOR_LIKE if like_for_like else {}
        ours = Dupwatch.opened(stack, load_lexicon(), f"lmdb:{scratch}/store", overrides)
        codes = ours.fingerprinter.fingerprint([text.body for text in feed]).codes.reshape(-1)
        ours.preload(CodeModel.fitted(codes), preloaded, np.random.default_rng(3))
        ours.judge(feed[:articles])
        found = measure(ours, feed[articles:])
    title = f"Stages of one article of {chars:,} characters, LMDB, {'like for like' if like_for_like else 'default'}"
    publish(PART, title, rows(found), out=out, chars=chars, articles=articles, preloaded=preloaded)


if __name__ == "__main__":
    typer.run(main)
