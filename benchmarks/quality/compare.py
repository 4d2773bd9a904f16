"""Detectors side by side on labelled feeds: ``python -m benchmarks.quality.compare --feed FEED --pairs PAIRS``.

Each detector judges the whole feed, in its order, and its verdicts are scored as ``score`` does it. ``--feed`` and
``--pairs`` may be given several times, the pairs in the order of the feeds. The detectors:

- dupwatch with its defaults; as SimHash was published (22 keywords, 3 bits, no verification, one lane); with its best
  settings (8 bands of 5 minima). Run in this process, built as the command line builds it, with a store in memory.
- ``datasketch.MinHashLSH``: 128 permutations, threshold 0.7, shingles as the pairs have them (normalised; 5
  characters for Chinese and Japanese, else 9). Whatever ``query()`` returns is a flag, and of several hits the one
  with the highest estimate is named; an article without a hit is kept and inserted. *Verified*: only hits with an
  estimate of 0.7 count.

*Reads* are posting rows read an article, for ``datasketch`` its hash tables. *Strict* is the precision that counts
flags between 0.5 and 0.7 as wrong.
"""

import io
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import msgspec
import typer

from benchmarks.quality.feed import Article, is_cjk, read_feed, read_lines
from benchmarks.quality.pairs import CJK_SHINGLE_CHARS, SHINGLE_CHARS, SimilarPair
from benchmarks.quality.score import Quality, Rate, Verdict, measure
from benchmarks.speed.peers import THRESHOLD, MinHashLsh, installed, shingles
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.config.loading import load_config
from consumer.lifecycle.stopping import StopSignal
from consumer.model.hooks import Hooks
from consumer.pipeline.feed_kind import Streams
from consumer.wiring.file_run import prepared_run

PART: Final = "quality"
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "dupwatch, default": {},
    "dupwatch, SimHash as published": {
        "fingerprint": {"keywords_max": 22},
        "judge": {"max_distance": 3, "verify": False, "lane1": False},
    },
    "dupwatch, best: 8 bands of 5": {"fingerprint": {"bands": 8, "band_minima": 5}},
}
DATASKETCH: Final = "datasketch.MinHashLSH"


class Judged(NamedTuple):
    """A detector's verdicts on a feed, and what they cost: posting rows and seconds an article."""

    verdicts: list[Verdict]
    reads: float
    seconds: float


def judge_with_dupwatch(
    feed: Path, overrides: dict[str, Any], clock: Callable[[], float] = time.perf_counter
) -> Judged:
    """Judge a feed with these settings and a store in memory; ``ValueError`` if a line is not an article."""
    io_sections = {"source": {"url": str(feed)}, "sink": {"url": "-", "emit": "all"}, "store": {"url": "memory:"}}
    events, letters = io.BytesIO(), io.BytesIO()
    with prepared_run(
        load_config(None, overrides | io_sections), Streams(events, letters), Hooks(), StopSignal()
    ) as run:
        began = clock()
        run.pipeline.run()
        seconds = clock() - began
    if letters.getvalue():
        raise ValueError(f"{feed} has lines that are no articles: {letters.getvalue()[:200]!r}")
    decoder = msgspec.json.Decoder(Verdict)
    verdicts = [decoder.decode(line) for line in events.getvalue().splitlines()]
    articles = max(1, run.tally.versions)
    return Judged(verdicts, run.tally.row_reads / articles, seconds / articles)


def judge_with_datasketch(articles: Sequence[Article], similarity_min: float) -> Judged:
    """Judge articles with ``datasketch``; only hits with an estimate of ``similarity_min`` count."""
    lsh = MinHashLsh()
    verdicts = []
    began = time.perf_counter()
    for article in articles:
        chars = CJK_SHINGLE_CHARS if is_cjk(article.lang, article.body) else SHINGLE_CHARS
        named, estimate = lsh.judge_shingles(article.id, shingles(article.body, chars), similarity_min)
        if named is None:
            verdicts.append(Verdict(article.id, "unique"))
        else:
            verdicts.append(Verdict(article.id, "duplicate", named, estimate))
    seconds = (time.perf_counter() - began) / max(1, len(articles))
    return Judged(verdicts, float(lsh.tables), seconds)


def detectors(feed: Path, articles: Sequence[Article]) -> dict[str, Callable[[], Judged]]:
    """Everything that can judge this feed here, by name."""
    found: dict[str, Callable[[], Judged]] = {
        name: partial(judge_with_dupwatch, feed, overrides) for name, overrides in SETTINGS.items()
    }
    if installed("datasketch"):
        found[DATASKETCH] = partial(judge_with_datasketch, articles, 0.0)
        found[f"{DATASKETCH}, verified"] = partial(judge_with_datasketch, articles, THRESHOLD)
    return found


def compare(feed: Path, pairs: Path) -> list[Row]:
    """Judge a feed with every detector; a row of figures for each."""
    articles = read_feed(feed)
    listed = list(read_lines(pairs, SimilarPair))
    ids = [article.id for article in articles]
    rows = []
    for name, judge in detectors(feed, articles).items():
        tell(f"{feed.name}: {name} …")
        judged = judge()
        rows.append(_row(name, measure(ids, listed, judged.verdicts), judged))
    return rows


def _row(name: str, quality: Quality, judged: Judged) -> Row:
    return {
        "detector": name,
        "reads": round(judged.reads, 1),
        "precision": _share(quality.precision.value),
        "95 %": _interval(quality.precision),
        "strict": _share(quality.precision_strict.value),
        "recall": _share(quality.recall.value),
        "95 %, recall": _interval(quality.recall),
        "F1": _share(quality.f1),
        "right": quality.right,
        "between": quality.between,
        "wrong": quality.wrong,
        "missed": quality.missed,
        "articles/s": round(1 / judged.seconds),
    }


def _share(value: float | None) -> str | None:
    return None if value is None else f"{value:.4f}"


def _interval(rate: Rate) -> str:
    return f"{rate.low:.3f}–{rate.high:.3f}"


def main(
    feed: Annotated[
        list[Path], typer.Option(exists=True, dir_okay=False, help="Articles as JSON lines, in feed order.")
    ],
    pairs: Annotated[list[Path], typer.Option(exists=True, dir_okay=False, help="The feed's similar pairs.")],
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Score detectors side by side."""
    if len(feed) != len(pairs):
        raise typer.BadParameter("give one --pairs for each --feed, in the same order")
    for one_feed, its_pairs in zip(feed, pairs, strict=True):
        rows = compare(one_feed, its_pairs)
        title = f"Quality on {one_feed.name.partition('.')[0]}, {len(read_feed(one_feed)):,} articles"
        publish(PART, title, rows, out=out, feed=one_feed.name)


if __name__ == "__main__":
    typer.run(main)
