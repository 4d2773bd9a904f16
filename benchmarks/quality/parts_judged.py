"""How many parts verdicts name: ``python -m benchmarks.quality.parts_judged FEED``.

The feed of ``benchmarks.quality.parts``, judged with ``judge.parts`` by dupwatch, with a store in memory and batches of
256. *Found* is a copy whose verdict names its original, or the kept article that the original is a duplicate of, for a
part or as near: copies of what is a copy itself cannot name more. *Right* is as there.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from benchmarks.quality.feed import Article, read_feed
from benchmarks.quality.part_cases import KINDS, feed_of_parts
from benchmarks.quality.parts import COPIES_SHARE, Name, Rules, Truth, right_names
from benchmarks.quality.score import wilson
from benchmarks.speed.ours import Dupwatch
from benchmarks.speed.report import Row, publish
from consumer.fingerprint.characters.normalise import normalise
from consumer.model.verdict import Verdict
from consumer.stress.made_texts import FeedText
from consumer.workers.word_files import load_lexicon

PART: Final = "parts_judged"


class Judged(NamedTuple):
    """The verdicts on a feed, and what one article cost: rows and postings read for parts, its own among them."""

    verdicts: Sequence[Verdict]
    rows: float
    postings: float


def judged(articles: Sequence[Article]) -> Judged:
    """Judge the articles in their order."""
    with ExitStack() as stack:
        ours = Dupwatch.opened(stack, load_lexicon(), "memory:", {"judge": {"parts": True}})
        events = ours.judge([FeedText(article.id, article.body, None) for article in articles])
        tally, count = ours.detector.tally, max(len(articles), 1)
        costs = tally.part_row_reads / count, tally.part_postings_read / count
        return Judged([event.verdict for event in events], *costs)


def names_of(verdicts: Sequence[Verdict]) -> list[Name]:
    """Return what the verdicts name for parts, by places in the feed."""
    places = {verdict.id: place for place, verdict in enumerate(verdicts)}
    return [
        Name(place, places[part.id], max(part.share_of_this, part.share_of_that), 0)
        for place, verdict in enumerate(verdicts)
        for part in (verdict.parts if isinstance(verdict.parts, tuple) else ())
    ]


def found_copies(verdicts: Sequence[Verdict]) -> dict[str, tuple[int, int]]:
    """Return for each kind of copies how many were found, and of how many."""
    kept: dict[str, str] = {}
    said: defaultdict[str, set[str]] = defaultdict(set)
    for verdict in verdicts:
        kept[verdict.id] = verdict.id if verdict.duplicate_of is None else kept[verdict.duplicate_of]
        parts = verdict.parts if isinstance(verdict.parts, tuple) else ()
        named = [*(match.id for match in verdict.matches), *(part.id for part in parts)]
        said[verdict.id] = {kept[other] for other in named}
    found, copies = Counter[str](), Counter[str]()
    for verdict in verdicts:
        original, copied, kind = verdict.id.rpartition("~")
        if copied:
            copies[kind] += 1
            found[kind] += kept[original] in said[verdict.id]
    return {kind: (found[kind], copies[kind]) for kind in KINDS}


def main(
    feed: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Articles as JSON lines, in feed order.")],
    seed: Annotated[int, typer.Option(help="Of the choice of articles, halves and places.")] = 1,
) -> None:
    """Measure how well verdicts name parts."""
    articles = feed_of_parts(read_feed(feed), seed, COPIES_SHARE)
    done = judged(articles)
    names = names_of(done.verdicts)
    right = right_names(names, Truth([normalise(article.body) for article in articles], None), Rules())
    late = [is_right for name, is_right in zip(names, right, strict=True) if name.place >= len(articles) // 2]
    rates = {f"recall: {kind}": wilson(*counts) for kind, counts in found_copies(done.verdicts).items()}
    rates |= {
        "precision": wilson(sum(right), len(right)),
        "precision, second half of the feed": wilson(sum(late), len(late)),
    }
    rows: list[Row] = [
        {"what": what, "value": rate.value, "from": rate.low, "to": rate.high} for what, rate in rates.items()
    ]
    title = f"Parts named by verdicts on {feed.name.partition('.')[0]}: {len(articles):,} texts, {len(names):,} names"
    publish(PART, title, rows, feed=feed.name, seed=seed)
    cost: Row = {"rows read": done.rows, "postings read, own among them": done.postings}
    publish(PART, "Work an article", [cost], feed=feed.name, seed=seed)


if __name__ == "__main__":
    typer.run(main)
