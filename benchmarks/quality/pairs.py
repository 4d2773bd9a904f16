"""All pairs of a feed's articles that are similar, exactly.

``python -m benchmarks.quality.pairs FEED -o PAIRS.jsonl.gz`` writes ``[earlier id, later id, Jaccard, containment]``
in feed order. The search is the prefix filter of Chaudhuri, Ganti and Kaushik ("A primitive operator for similarity
joins in data cleaning", ICDE 2006) and of All-Pairs (Bayardo, Ma and Srikant, WWW 2007), with the suffix bound of
PPJoin (Xiao, Wang, Lin and Yu, WWW 2008). They only rule out what cannot reach the threshold; the rest is counted.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer

from benchmarks.quality.chinese import converted, opencc
from benchmarks.quality.feed import Article, read_feed, write_lines
from benchmarks.quality.shingles import Int64, ShingleSets, normalise, shingle_sets

JACCARD_MIN = 0.4
CJK_SHINGLE_CHARS = 5
SHINGLE_CHARS = 9
DECIMALS = 4
# Bounds are loosened by a hair, so that no rounding can rule out a pair.
ROUNDING = 1e-9


class Overlap(NamedTuple):
    """Two sets by number, the lower first, and what they share: all counts in shingles."""

    earlier: int
    later: int
    shared: int
    smaller: int
    union: int


class SimilarPair(NamedTuple):
    """A line of the pairs file."""

    earlier: str
    later: str
    jaccard: float
    containment: float


class _Prefixes(NamedTuple):
    """The index: for each prefix shingle the sets that have it, ascending.

    ``shingles`` of set ``i`` stand at ``starts[i]:starts[i + 1]``; ``row_starts`` says where the row of such a shingle
    begins in ``rows`` and ``places`` where in it the set itself is, so that what lies between are the lower sets.
    """

    starts: Int64
    row_starts: Int64
    places: Int64
    rows: Int64
    last_shingle: Int64
    suffix_sizes: Int64


def similar_pairs(
    articles: Sequence[Article],
    jaccard_min: float = JACCARD_MIN,
    *,
    drop_invisible: bool = False,
    shingle_chars: int = SHINGLE_CHARS,
) -> list[SimilarPair]:
    """Return every pair with a Jaccard similarity of at least ``jaccard_min`` (above 0), in feed order.

    Shingles that begin with a Chinese or Japanese character have 5 characters, all others ``shingle_chars``, whatever
    language a text declares. Containment is the shared part of the smaller set. An article without words is in no pair.
    """
    texts = [normalise(article.body, drop_invisible=drop_invisible) for article in articles]
    found = sorted(
        (o.later, o.earlier, o.shared / o.union, o.shared / o.smaller)
        for o in overlaps(shingle_sets(texts, shingle_chars, CJK_SHINGLE_CHARS), jaccard_min)
    )
    return [
        SimilarPair(articles[earlier].id, articles[later].id, round(jaccard, DECIMALS), round(part, DECIMALS))
        for later, earlier, jaccard, part in found
    ]


def overlaps(sets: ShingleSets, jaccard_min: float) -> Iterator[Overlap]:
    """Yield every two sets with ``shared / union >= jaccard_min``; memory grows with the sets, not with their pairs."""
    sizes = sets.sizes()
    prefixes = _index_prefixes(sets, jaccard_min)
    marks = np.zeros(int(sets.members.max(initial=-1)) + 1, dtype=np.int64)
    for later in range(len(sizes)):
        candidates = _candidates(prefixes, sizes, later, jaccard_min)
        if not len(candidates):
            continue
        own = sets.members[sets.starts[later] : sets.starts[later + 1]]
        marks[own] = 1
        for earlier in candidates.tolist():
            other = sets.members[sets.starts[earlier] : sets.starts[earlier + 1]]
            shared = int(marks[other].sum())
            union = len(own) + len(other) - shared
            if shared / union >= jaccard_min:
                yield Overlap(earlier, later, shared, min(len(own), len(other)), union)
        marks[own] = 0


def _index_prefixes(sets: ShingleSets, jaccard_min: float) -> _Prefixes:
    """Index the part of each set without which nothing is left to reach the threshold.

    Two sets with Jaccard >= t share at least t·|A| shingles, so not all of them can be among the last ⌈t·|A|⌉ − 1 of A.
    """
    sizes = sets.sizes()
    suffix_sizes = np.maximum(np.ceil(jaccard_min * sizes - ROUNDING).astype(np.int64) - 1, 0)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    in_prefix = np.arange(len(sets.members)) - sets.starts[owners] < (sizes - suffix_sizes)[owners]
    prefix_ends = (sets.starts[1:] - suffix_sizes)[sizes > 0]
    last_shingle = np.full(len(sizes), -1, dtype=np.int64)
    last_shingle[sizes > 0] = sets.members[prefix_ends - 1]
    shingles, owners = sets.members[in_prefix], owners[in_prefix]
    by_shingle = np.argsort(shingles, kind="stable")
    place = np.empty(len(shingles), dtype=np.int64)
    place[by_shingle] = np.arange(len(shingles))
    row_starts = np.searchsorted(shingles[by_shingle], shingles)
    starts = np.searchsorted(owners, np.arange(len(sizes) + 1))
    return _Prefixes(starts, row_starts, place, owners[by_shingle], last_shingle, suffix_sizes)


def _candidates(prefixes: _Prefixes, sizes: Int64, later: int, jaccard_min: float) -> Int64:
    """Return the lower-numbered sets that may reach the threshold with this one, by what the prefixes share."""
    own = slice(prefixes.starts[later], prefixes.starts[later + 1])
    rows = zip(prefixes.row_starts[own].tolist(), prefixes.places[own].tolist(), strict=True)
    parts = [prefixes.rows[start:place] for start, place in rows if start < place]
    if not parts:
        return np.empty(0, dtype=np.int64)
    counts = np.bincount(np.concatenate(parts))
    earlier = np.flatnonzero(counts)
    # Up to where the prefix ends first both sets are seen whole; beyond it lies that set's suffix and no more.
    suffix = np.where(
        prefixes.last_shingle[earlier] < prefixes.last_shingle[later],
        prefixes.suffix_sizes[earlier],
        prefixes.suffix_sizes[later],
    )
    smaller = np.minimum(sizes[earlier], sizes[later])
    shared_most = np.minimum(counts[earlier] + suffix, smaller)
    needed = jaccard_min / (1 + jaccard_min) * (sizes[earlier] + sizes[later])
    candidates: Int64 = earlier[shared_most >= needed - ROUNDING]
    return candidates


def main(
    feed: Annotated[
        Path,
        typer.Argument(exists=True, dir_okay=False, help="Articles as JSON lines, in feed order; .gz is unpacked."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Pairs as JSON lines; .gz is packed.")],
    shingle_chars: Annotated[
        int, typer.Option(min=1, help="Length of shingles that do not begin with a Chinese or Japanese character.")
    ] = SHINGLE_CHARS,
    *,
    drop_invisible: Annotated[
        bool, typer.Option(help="Take zero-width characters and soft hyphens out before comparing.")
    ] = False,
    simplified: Annotated[
        bool, typer.Option("--simplified", help="Compare all texts in simplified characters, by OpenCC's tw2sp.")
    ] = False,
) -> None:
    """Write all pairs of articles with a Jaccard similarity of 0.4 and more."""
    articles = read_feed(feed)
    if simplified:
        articles = list(converted(articles, opencc("tw2sp")))
    pairs = similar_pairs(articles, drop_invisible=drop_invisible, shingle_chars=shingle_chars)
    typer.echo(f"{write_lines(output, pairs)} pairs, {sum(p.jaccard >= 0.8 for p in pairs)} of them at 0.8 or more")


if __name__ == "__main__":
    typer.run(main)
