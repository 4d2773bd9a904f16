"""Scheme 3 with many secrets beside scheme 2: means and the worst, since the hash of shingles is drawn with each store.

``python -m benchmarks.quality.secrets --feed FEED --pairs PAIRS --secrets 20``: dupwatch judges the whole feed with
each secret, its other defaults and a store in memory; ``score`` says what counts as right and found. ``--feed`` and
``--pairs`` may be given several times, the pairs in the order of the feeds.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Final

import typer

from benchmarks.quality.compare import judge_with_dupwatch
from benchmarks.quality.feed import read_feed, read_lines
from benchmarks.quality.judging import KEYED, some_secret
from benchmarks.quality.pairs import SimilarPair
from benchmarks.quality.schemes import judge_with_scheme
from benchmarks.quality.score import Quality, Verdict, measure
from benchmarks.speed.report import OUT, Row, publish, tell

PART: Final = "secrets"
UNKEYED: Final = "jieba-tfidf/2"
_OWNER_ONLY: Final = 0o600


def judge_with_secret(feed: Path, seed: int) -> list[Verdict]:
    """Judge a feed with scheme 3, the secret of a seed and the other defaults."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "secret"
        file.touch(_OWNER_ONLY)
        file.write_text(some_secret(seed).hex())
        return judge_with_dupwatch(feed, {"fingerprint": {"scheme": KEYED.name, "secret_file": str(file)}}).verdicts


def row(feed: str, scheme: str, found: Sequence[Quality]) -> Row:
    """Return the mean figures of a scheme, and the worst of its rates."""
    precisions = [quality.precision.value or 0.0 for quality in found]
    recalls = [quality.recall.value or 0.0 for quality in found]
    return {
        "feed": feed,
        "scheme": scheme,
        "flags": round(fmean(quality.flags for quality in found), 1),
        "between": round(fmean(quality.between for quality in found), 1),
        "wrong": round(fmean(quality.wrong for quality in found), 1),
        "missed": round(fmean(quality.missed for quality in found), 1),
        "precision": f"{fmean(precisions):.4f}",
        "worst precision": f"{min(precisions):.4f}",
        "recall": f"{fmean(recalls):.4f}",
        "worst recall": f"{min(recalls):.4f}",
    }


def main(
    feed: Annotated[
        list[Path], typer.Option(exists=True, dir_okay=False, help="Articles as JSON lines, in feed order.")
    ],
    pairs: Annotated[list[Path], typer.Option(exists=True, dir_okay=False, help="The feed's similar pairs.")],
    secrets: Annotated[int, typer.Option(min=1, help="How many secrets.")] = 20,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Score scheme 3 with many secrets, and scheme 2."""
    if len(feed) != len(pairs):
        raise typer.BadParameter("give one --pairs for each --feed, in the same order")
    rows: list[Row] = []
    for one_feed, its_pairs in zip(feed, pairs, strict=True):
        ids = [article.id for article in read_feed(one_feed)]
        listed = list(read_lines(its_pairs, SimilarPair))
        name = one_feed.name.partition(".")[0]
        tell(f"{name}: {UNKEYED} …")
        rows.append(row(name, UNKEYED, [measure(ids, listed, judge_with_scheme(one_feed, UNKEYED))]))
        found = []
        for seed in range(secrets):
            tell(f"{name}: {KEYED.name}, secret {seed + 1} of {secrets} …")
            found.append(measure(ids, listed, judge_with_secret(one_feed, seed)))
        rows.append(row(name, KEYED.name, found))
    publish(PART, f"Scheme 3 with {secrets} secrets", rows, out=out, secrets=secrets)


if __name__ == "__main__":
    typer.run(main)
