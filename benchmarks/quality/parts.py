"""How many texts that stand in other texts are found by their anchors: ``python -m benchmarks.quality.parts FEED``.

The feed gets copies of halves of its articles, alone and within others, and common footers
(``benchmarks.quality.part_cases``). Each article is looked up before it is posted, in an index in memory: the rows of
its first anchors are read, those with more than a few postings ignored, and who stands in the others is compared by
samples, without the hashes that many texts so far have. Named are those of which enough is shared, by estimate.

Truth is exact, by shingles, and knows which footers were put in: these do not count. A name is *right* where at least
two thirds of the share and of the characters that are asked for are shared, so that an estimate that misses by little
is not wrong. *In hindsight* shingles that more than ``common-max`` texts of the whole feed have do not count either:
what the first texts with some boilerplate share is wrong then, although nobody could know. *Found* is a copy where its
original is named.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import typer

from benchmarks.quality.feed import Article, read_feed
from benchmarks.quality.part_cases import FOOTERS, KINDS, feed_of_parts
from benchmarks.quality.score import Rate, wilson
from benchmarks.speed.report import Row, publish, tell
from consumer.fingerprint.characters.normalise import normalise
from consumer.fingerprint.parts import (
    ANCHORS_LOOKED_UP,
    SAMPLED_ONE_IN,
    parts_batch,
    shares_of_many,
    unpacked_anchors,
    unpacked_sample,
)
from consumer.fingerprint.shingles import hashed_chunks

PART: Final = "parts"
KEY_BITS: Final = 40
RIGHT_FROM: Final = 2 / 3
COPIES_SHARE: Final = 0.4
"""Of the articles that are long enough."""

Uint64 = npt.NDArray[np.uint64]


class Rules(NamedTuple):
    """What is ignored, and how much must be shared: a share of one of both, and a number of characters."""

    row_max: int = 4
    common_max: int = 12
    share_min: float = 0.3
    chars_min: int = 50


class Name(NamedTuple):
    """That an article, by its place in the feed, is said to share a stretch with an earlier one, and how much."""

    place: int
    earlier: int
    share: float
    characters: int


class Work(NamedTuple):
    """What an article costs on average: rows and postings read, texts compared, and postings written."""

    rows: float
    postings: float
    compared: float
    written: float


class Index:
    """Postings by keys of 40 bits; of a row no more is kept than tells that it is too long."""

    def __init__(self, row_max: int) -> None:
        self._row_max = row_max
        self._rows: defaultdict[int, list[int]] = defaultdict(list)
        self.rows_read = self.postings_read = self.postings_written = 0

    def look_up(self, anchors: Uint64) -> list[int]:
        """Return who stands in the rows of these anchors that are not too long, ascending."""
        rows = [self._rows.get(key, []) for key in (anchors >> np.uint64(64 - KEY_BITS)).tolist()]
        self.rows_read += len(rows)
        self.postings_read += sum(map(len, rows))
        return sorted({place for row in rows if len(row) <= self._row_max for place in row})

    def post(self, anchors: Uint64, place: int) -> None:
        """Add an article to the rows of its anchors."""
        for key in (anchors >> np.uint64(64 - KEY_BITS)).tolist():
            self.postings_written += 1
            if len(self._rows[key]) <= self._row_max:
                self._rows[key].append(place)


def named(texts: Sequence[str], rules: Rules) -> tuple[list[Name], Work]:
    """Return who is named for each normalised text by those before it, and what that costs."""
    found, common_max = parts_batch(texts), rules.common_max
    anchors, samples = map(unpacked_anchors, found.anchors), [unpacked_sample(packed) for packed in found.samples]
    index, seen, names, compared = Index(rules.row_max), Counter[int](), list[Name](), 0
    for place, (own, sample) in enumerate(zip(anchors, samples, strict=True)):
        candidates = index.look_up(own[:ANCHORS_LOOKED_UP])
        index.post(own, place)
        compared += len(candidates)
        those = [samples[other] for other in candidates]
        common = [value for value in np.unique(np.concatenate((sample, *those))).tolist() if seen[value] > common_max]
        shares = shares_of_many(sample, those, np.array(common, dtype=np.uint32))
        share = np.maximum(shares.of_this, shares.of_that)
        characters = shares.shared * SAMPLED_ONE_IN
        names += [
            Name(place, candidates[number], float(share[number]), int(characters[number]))
            for number in np.flatnonzero((share >= rules.share_min) & (characters >= rules.chars_min))
        ]
        seen.update(sample.tolist())
    count = max(len(texts), 1)
    costs = (index.rows_read, index.postings_read, compared, index.postings_written)
    return names, Work(*(cost / count for cost in costs))


class Truth:
    """The shingles of all texts, exactly, without those of footers, and without those in too many texts, if asked."""

    def __init__(self, texts: Sequence[str], common_max: int | None) -> None:
        footers = np.unique(np.concatenate([*_shingles([normalise(footer) for footer in FOOTERS.values()])]))
        own = [np.unique(hashes) for hashes in _shingles(texts)]
        # All at once: to look for each text's in those of all others would take a sort of these each time.
        values, numbers, counts = np.unique(np.concatenate(own), return_inverse=True, return_counts=True)
        telling = ~np.isin(values, footers)
        if common_max is not None:
            telling &= counts <= common_max
        kept = np.split(telling[numbers], np.cumsum([len(hashes) for hashes in own])[:-1])
        self._shingles = [hashes[of_these] for hashes, of_these in zip(own, kept, strict=True)]

    def shared(self, place: int, other: int) -> tuple[float, int]:
        """Return the greater share that one of two texts has of the other, and how many characters that are."""
        own, theirs = self._shingles[place], self._shingles[other]
        shared = len(np.intersect1d(own, theirs, assume_unique=True))
        return shared / max(min(len(own), len(theirs)), 1), shared


def _shingles(texts: Sequence[str]) -> Iterable[Uint64]:
    for text in texts:
        yield np.concatenate([chunk.hashes for chunk in hashed_chunks([text])])


def right_names(names: Iterable[Name], truth: Truth, rules: Rules) -> list[bool]:
    """Return of each name whether it is right."""

    def is_right(name: Name) -> bool:
        share, characters = truth.shared(name.place, name.earlier)
        return share >= RIGHT_FROM * rules.share_min and characters >= RIGHT_FROM * rules.chars_min

    return [is_right(name) for name in names]


def _kind(article: Article) -> str:
    return article.id.rpartition("~")[2] if "~" in article.id else ""


def recall(articles: Sequence[Article], names: Sequence[Name], kind: str) -> Rate:
    """Return the share of the copies of a kind whose original is named."""
    ids = [article.id for article in articles]
    said = {(name.place, ids[name.earlier]) for name in names}
    copies = [place for place, article in enumerate(articles) if _kind(article) == kind]
    return wilson(sum((place, ids[place].rpartition("~")[0]) in said for place in copies), len(copies))


def measured(
    articles: Sequence[Article], names: Sequence[Name], right: Sequence[bool], in_hindsight: Sequence[bool]
) -> list[Row]:
    """Return a row for the recall of each kind of copies, and for the precision of all names and of some of them."""
    half = len(articles) // 2

    def precision(are_right: Sequence[bool], counts: Callable[[Name], bool] = lambda _: True) -> Rate:
        of_these = [is_right for name, is_right in zip(names, are_right, strict=True) if counts(name)]
        return wilson(sum(of_these), len(of_these))

    rates = {
        **{f"recall: {kind}": recall(articles, names, kind) for kind in KINDS},
        "precision": precision(right),
        "precision, second half of the feed": precision(right, lambda name: name.place >= half),
        "precision, of no copies": precision(right, lambda name: not _kind(articles[name.place])),
        "in hindsight": precision(in_hindsight),
        "in hindsight, second half of the feed": precision(in_hindsight, lambda name: name.place >= half),
    }
    return [{"what": what, "value": rate.value, "from": rate.low, "to": rate.high} for what, rate in rates.items()]


def main(
    feed: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Articles as JSON lines, in feed order.")],
    seed: Annotated[int, typer.Option(help="Of the choice of articles, halves and places.")] = 1,
    row_max: Annotated[int, typer.Option(min=1, help="Rows with more postings are ignored.")] = Rules().row_max,
    common_max: Annotated[int, typer.Option(min=1, help="Hashes in more texts do not count.")] = Rules().common_max,
    share_min: Annotated[float, typer.Option(min=0, max=1, help="That must be shared.")] = Rules().share_min,
    show: Annotated[int, typer.Option(min=0, help="How many wrong names to show.")] = 0,
) -> None:
    """Measure how well anchors and samples find texts that stand in others."""
    rules = Rules(row_max, common_max, share_min)
    articles = feed_of_parts(read_feed(feed), seed, COPIES_SHARE)
    texts = [normalise(article.body) for article in articles]
    names, work = named(texts, rules)
    right = right_names(names, Truth(texts, None), rules)
    in_hindsight = right_names(names, Truth(texts, common_max), rules)
    title = f"Parts in {feed.name.partition('.')[0]}: {len(articles):,} texts, {len(names):,} names"
    publish(PART, title, measured(articles, names, right, in_hindsight), feed=feed.name, seed=seed, **rules._asdict())
    publish(PART, "Work an article", [work._asdict()], feed=feed.name, seed=seed, **rules._asdict())
    wrong = [name for name, is_right in zip(names, right, strict=True) if not is_right]
    for name in wrong[:show]:
        tell(f"{articles[name.place].id} does not share {name.share:.2f} with {articles[name.earlier].id}")


if __name__ == "__main__":
    typer.run(main)
