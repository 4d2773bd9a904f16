"""Schemes side by side on a labelled feed.

``python -m benchmarks.quality.schemes --feed FEED --pairs PAIRS --by lang``: dupwatch judges the whole feed with each
scheme, with its other defaults and a store in memory; ``score`` says what counts as right and found. ``--by lang`` has
a row for each language beside those of the whole feed, ``--by copy`` one for each kind of copy (what stands behind
``~`` in the id). *Copies flagged* counts copies whatever the truth says of them.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from benchmarks.quality.compare import judge_with_dupwatch
from benchmarks.quality.feed import Article, read_feed, read_lines
from benchmarks.quality.pairs import SimilarPair
from benchmarks.quality.score import Quality, Rate, Verdict, measure
from benchmarks.speed.report import OUT, Row, publish, tell

PART: Final = "schemes"
SCHEMES: Final = ("jieba-tfidf/1", "jieba-tfidf/2", "jieba-tfidf/3")
ALL: Final = "all"


class By(StrEnum):
    """What the rows are of."""

    ALL = "all"
    LANG = "lang"
    COPY = "copy"


def copy_kind(article: Article) -> str:
    """Return the kind of a copy; empty for an original."""
    return article.id.rpartition("~")[2] if "~" in article.id else ""


def groups(articles: Sequence[Article], by: By) -> dict[str, Collection[str]]:
    """Return the ids of the articles that each row counts, by the name of the row; the whole feed comes last."""
    name: Callable[[Article], str] = {
        By.ALL: lambda _: "",
        By.LANG: lambda article: article.lang.partition("-")[0],
        By.COPY: copy_kind,
    }[by]
    found: defaultdict[str, set[str]] = defaultdict(set)
    for article in articles:
        if name(article):
            found[name(article)].add(article.id)
    return {**dict(sorted(found.items())), ALL: {article.id for article in articles}}


def judge_with_scheme(feed: Path, scheme: str) -> list[Verdict]:
    """Judge a feed with a scheme and the other defaults."""
    return judge_with_dupwatch(feed, {"fingerprint": {"scheme": scheme}}).verdicts


def rows(
    articles: Sequence[Article], pairs: Sequence[SimilarPair], judged: Mapping[str, Sequence[Verdict]], by: By
) -> list[Row]:
    """Return a row for each group and scheme."""
    ids = [article.id for article in articles]
    copies = {article.id for article in articles if copy_kind(article)}
    found: list[Row] = []
    for name, counted in groups(articles, by).items():
        of_these = copies.intersection(counted)
        for scheme, verdicts in judged.items():
            flagged = sum(verdict.outcome == "duplicate" for verdict in verdicts if verdict.id in of_these)
            quality = measure(ids, pairs, verdicts, counted)
            found.append({by.value: name, "scheme": scheme, **_figures(quality, flagged, len(of_these))})
    return found


def _figures(quality: Quality, copies_flagged: int, copies: int) -> Row:
    return {
        "articles": quality.articles,
        "copies flagged": f"{copies_flagged} of {copies}",
        "found": f"{quality.found} of {quality.found + quality.missed}",
        "recall": rate_text(quality.recall),
        "precision": rate_text(quality.precision),
        "flags": quality.flags,
        "between": quality.between,
        "wrong": quality.wrong,
    }


def rate_text(rate: Rate) -> str | None:
    """Write a rate with its interval; None where there is nothing to count."""
    return None if rate.value is None else f"{rate.value:.4f} ({rate.low:.3f}–{rate.high:.3f})"


def main(
    feed: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="Articles as JSON lines, in feed order.")],
    pairs: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="The feed's similar pairs.")],
    by: Annotated[By, typer.Option(help="What the rows are of.")] = By.ALL,
    scheme: Annotated[list[str] | None, typer.Option(help="May be repeated; without it both.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Score the schemes side by side."""
    articles = read_feed(feed)
    judged = {}
    for name in scheme or SCHEMES:
        tell(f"{feed.name}: {name} …")
        judged[name] = judge_with_scheme(feed, name)
    found = rows(articles, list(read_lines(pairs, SimilarPair)), judged, by)
    title = f"Schemes on {feed.name.partition('.')[0]}, {len(articles):,} articles"
    publish(PART, title, found, out=out, feed=feed.name, pairs=pairs.name)


if __name__ == "__main__":
    typer.run(main)
