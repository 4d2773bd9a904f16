"""Ranks what is near the articles of a batch, in one pass for all of them.

Most articles have short rows, and little or nothing near them. To choose candidates takes some thirty calls of numpy
for an article, however short its rows are; here all articles of a batch share them.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from consumer.fingerprint import LANE_MINHASH, LANE_SIMHASH
from consumer.judge.near_postings import (
    NOT_FOUND,
    OWNER,
    REFERENCE,
    SEQUENCE,
    TIME,
    Near,
    Numbers,
    alike,
    merge_repeats,
    rank,
    references_of,
    window_of,
)
from consumer.judge.settings import JudgeSettings
from storage.postings import PostingLayout, WithinDistance, code_of, layout_of
from storage.records import Record

ARTICLES_AT_ONCE: Final = 256
ROWS_BYTES_MAX: Final = 32 << 10
"""Limit on an article's bytes of postings in a lane: beyond it calls of its own are worth it; memory stays bounded."""
POSTINGS_NEAR_MAX: Final = 128
"""Limit on postings of other ids that are near an article by code, for the same reasons."""


class ArticleRows(NamedTuple):
    """An article, and the rows under its keys by lane, as packed postings; ``truncated`` if one was cut short."""

    record: Record
    by_blocks: Sequence[bytes]
    by_bands: Sequence[bytes]
    truncated: bool


class Ranked(NamedTuple):
    """The references of the versions near an article, best first, and their distances in bits of the fingerprint.

    The distance is ``NOT_FOUND`` where only lane 1 found a version.
    """

    references: tuple[bytes, ...]
    distances: tuple[int, ...]


def rank_together(articles: Sequence[ArticleRows], settings: JudgeSettings) -> list[Ranked | None]:
    """Return what is near each article and within the window; None for an article that needs a search of its own.

    Those are articles with truncated or long rows, with many postings near them, with more versions near than may be
    read, or with several versions of one id.
    """
    ranked: list[Ranked | None] = [None] * len(articles)
    small = [place for place, article in enumerate(articles) if _is_small(article)]
    for start in range(0, len(small), ARTICLES_AT_ONCE):
        places = small[start : start + ARTICLES_AT_ONCE]
        for place, found in zip(places, _rank([articles[place] for place in places], settings), strict=True):
            ranked[place] = found
    return ranked


def _is_small(article: ArticleRows) -> bool:
    return not article.truncated and all(
        sum(map(len, rows)) <= ROWS_BYTES_MAX for rows in (article.by_blocks, article.by_bands)
    )


def _rank(articles: Sequence[ArticleRows], settings: JudgeSettings) -> Iterator[Ranked | None]:
    owners, near = _near_by_code(articles, settings)
    own = np.frombuffer(b"".join(article.record.reference for article in articles), ">u8")
    own = own.astype(np.uint64).reshape(len(articles), -1)
    windows = np.array([window_of(article.record, settings.window_ms) for article in articles], np.uint64)
    times = near.tails[:, TIME]
    chosen = (times >= windows[owners, 0]) & (times <= windows[owners, 1])
    chosen &= ~alike(near.tails, own[owners].T, OWNER)
    alone = np.bincount(owners[chosen], minlength=len(articles)) > POSTINGS_NEAR_MAX
    chosen &= ~alone[owners]
    owners, near = _distinct(owners[chosen], near.take(chosen))
    versions_of_one_id = (owners[1:] == owners[:-1]) & alike(near.tails[1:], near.tails[:-1].T, OWNER)
    alone[owners[1:][versions_of_one_id]] = True
    alone |= np.bincount(owners, minlength=len(articles)) > settings.verifications_max
    # Among equals the earliest comes first, then the lowest reference, by which they are in order.
    ranks = rank(own[owners].T, near, by_sketch=settings.verify)
    order = np.lexsort((near.tails[:, SEQUENCE], near.tails[:, TIME], ranks, owners))
    bounds = np.searchsorted(owners, np.arange(len(articles) + 1)).tolist()
    references = references_of(near.tails[order])
    distances = near.simhash[order].tolist()
    for is_alone, start, end in zip(alone.tolist(), bounds[:-1], bounds[1:], strict=True):
        yield None if is_alone else Ranked(tuple(references[start:end]), tuple(distances[start:end]))


def _near_by_code(articles: Sequence[ArticleRows], settings: JudgeSettings) -> tuple[Numbers, Near]:
    """Return the postings that either lane finds near an article, and the places of these articles."""
    layout = layout_of(articles[0].record)
    codes = [[code_of(article.record, lane) for article in articles] for lane in (LANE_SIMHASH, LANE_MINHASH)]
    blocks = [article.by_blocks for article in articles]
    of_blocks, by_blocks = _within(blocks, codes[0], settings.suspect_distance_max, layout)
    bands = [article.by_bands for article in articles]
    of_bands, by_bands = _within(bands, codes[1], settings.one_bits_distance_max, layout)
    count = len(of_blocks) + len(of_bands)
    simhash, minhash = np.full((2, count), NOT_FOUND, np.uint8)
    simhash[: len(of_blocks)] = by_blocks.distances
    minhash[len(of_blocks) :] = by_bands.distances
    tails = np.concatenate((by_blocks.tails, by_bands.tails))
    return np.concatenate((of_blocks, of_bands)), Near(tails, simhash, minhash, np.ones(count, np.intp))


def _within(
    rows: Sequence[Sequence[bytes]], codes: Sequence[bytes], distance_max: int, layout: PostingLayout
) -> tuple[Numbers, WithinDistance]:
    """Return the postings within ``distance_max`` bits of the code of their article, and the places of the articles."""
    counts = [sum(map(len, of_article)) // layout.posting_bytes for of_article in rows]
    owners = np.repeat(np.arange(len(rows)), counts)
    of_each = np.frombuffer(b"".join(codes), f"V{layout.code_bytes}")[owners]
    found = layout.within(b"".join(chain.from_iterable(rows)), of_each.tobytes(), distance_max)
    return owners[found.places], found


def _distinct(owners: Numbers, near: Near) -> tuple[Numbers, Near]:
    """Merge the repeats of a version near the same article; sort by article, then by reference."""
    order = np.lexsort((*near.tails[:, REFERENCE[::-1]].T, owners))
    owners, near = owners[order], near.take(order)
    repeats = (owners[1:] == owners[:-1]) & alike(near.tails[1:], near.tails[:-1].T, REFERENCE)
    if not repeats.any():
        return owners, near
    starts = np.concatenate(([0], (~repeats).nonzero()[0] + 1))
    return owners[starts], merge_repeats(near, starts)
