"""Arrays of the postings whose codes are near an article's: merging, ranking, and the last version of each id.

Most articles have short rows and few near postings. Choosing candidates takes some thirty numpy calls, however short
the rows are. ``rank_together`` lets all articles of a batch share these calls.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from consumer.fingerprint import LANE_MINHASH, LANE_SIMHASH
from consumer.judge.settings import JudgeSettings
from storage.postings import TAIL_WORDS, WORD_SPREAD, PostingLayout, WithinDistance, code_of, layout_of
from storage.records import REFERENCE_BYTES, Record

NOT_FOUND: Final = 255
"""Stands for the distance in a lane that did not find a version; it is greater than all distances."""
OWNER: Final = (0, 1)
DIGEST: Final = (2, 3)
REFERENCE: Final = (0, 1, 2, 3)
TIME: Final = 4
SEQUENCE: Final = 5
_TIME_MAX: Final = (1 << 64) - 1
_ARRIVAL: Final = (TIME, SEQUENCE, 0, 1, 2, 3)
"""The words of a posting's tail, in the order in which arrivals are compared."""

ARTICLES_AT_ONCE: Final = 256
ROWS_BYTES_MAX: Final = 32 << 10
"""Limit on an article's bytes of postings per lane. Beyond it, separate calls pay off, and memory stays bounded."""
POSTINGS_NEAR_MAX: Final = 128
"""Limit on near postings of other ids, for the same reasons."""

Words = NDArray[np.uint64]
Numbers = NDArray[np.intp]


class NearPostings(NamedTuple):
    """Versions with near codes, as arrays of n: tails of postings, distances in both lanes, numbers of shared keys.

    A lane that did not find a version has the distance ``NOT_FOUND``.
    """

    tails: Words
    simhash: NDArray[np.uint8]
    minhash: NDArray[np.uint8]
    keys: Numbers

    def take(self, chosen: NDArray[np.bool_] | Numbers) -> "NearPostings":
        """Return the chosen versions, by a mask or by indexes."""
        return NearPostings(self.tails[chosen], self.simhash[chosen], self.minhash[chosen], self.keys[chosen])


NOTHING: Final = NearPostings(
    np.zeros((0, TAIL_WORDS), np.uint64), np.zeros(0, np.uint8), np.zeros(0, np.uint8), np.zeros(0, np.intp)
)


def distinct(near: NearPostings) -> NearPostings:
    """Merge the postings of each version, which is found under every key it shares; keep the nearest in each lane."""
    if len(near.tails) <= 1:
        return near
    # Words 0 and 2 are parts of digests. If two versions have the same mixed word, all their words are compared.
    mixed = near.tails[:, 0] * WORD_SPREAD ^ near.tails[:, 2]
    order = np.argsort(mixed)
    mixed, tails = mixed[order], near.tails[order]
    repeats = mixed[1:] == mixed[:-1]
    if (repeats & ~words_equal(tails[1:], tails[:-1].T, REFERENCE)).any():
        order = np.lexsort(near.tails[:, _ARRIVAL[::-1]].T)
        order = order[np.lexsort(near.tails[order][:, REFERENCE].T)]
        tails = near.tails[order]
        repeats = words_equal(tails[1:], tails[:-1].T, REFERENCE)
    starts = np.concatenate(([0], (~repeats).nonzero()[0] + 1))
    return near if len(starts) == len(tails) else merge_repeats(near.take(order), starts)


def merge_repeats(near: NearPostings, starts: Numbers) -> NearPostings:
    """Merge adjacent postings of a version; keep the nearest in each lane. ``starts`` has the first of each version."""
    return NearPostings(
        near.tails[starts],
        np.minimum.reduceat(near.simhash, starts),
        np.minimum.reduceat(near.minhash, starts),
        np.add.reduceat(near.keys, starts),
    )


def words_equal(tails: Words, words: Words, columns: Sequence[int]) -> NDArray[np.bool_]:
    """Return a mask of the tails that have these words in these columns; a word may be an array, one per tail."""
    equal: NDArray[np.bool_] = tails[:, columns[0]] == words[columns[0]]
    for column in columns[1:]:
        equal &= tails[:, column] == words[column]
    return equal


def rank(own: Words, near: NearPostings, *, by_sketch: bool) -> Words:
    """Return the rank of each version; the nearest has the lowest.

    If the sketch decides, the distance in lane 1, which estimates the similarity, counts before that of fingerprints,
    otherwise after it. Versions with the same title and text, by the digest in their reference, come before all others.
    A word of ``own`` may be an array, one per version.
    """
    lanes = (near.minhash, near.simhash) if by_sketch else (near.simhash, near.minhash)
    rank = (~words_equal(near.tails, own, DIGEST)).astype(np.uint64)
    for byte in (*lanes, NOT_FOUND - np.minimum(near.keys, NOT_FOUND)):
        rank = rank << np.uint64(8) | byte.astype(np.uint64)
    return rank


def window_of(record: Record, window_ms: int) -> tuple[int, int]:
    """Return the first and last time of the window around an article, in milliseconds."""
    return max(record.time_ms - window_ms, 0), min(record.time_ms + window_ms, _TIME_MAX)


def references_of(tails: Words) -> list[bytes]:
    """Return the references of versions as bytes."""
    packed = tails[:, REFERENCE].astype(">u8").tobytes()
    return [packed[start : start + REFERENCE_BYTES] for start in range(0, len(packed), REFERENCE_BYTES)]


def last_of_ids(record: Record, own: Words, tails: Words) -> Numbers:
    """Return, for each version, the index of the last version of its id that arrived before the article.

    A version that arrived later gets its own index. Of an id's earlier versions, only the last can be in force.
    """
    last = np.arange(len(tails))
    owners = np.sort(tails[:, 0])
    if not (owners[1:] == owners[:-1]).any():
        return last
    before = _arrived_before(tails, (record.time_ms, record.sequence, *own.tolist())).nonzero()[0]
    order = before[np.lexsort(tails[before][:, (3, 2, SEQUENCE, TIME, 1, 0)].T)]
    is_last = np.append(
        ~words_equal(tails[order[1:]], tails[order[:-1]].T, OWNER), np.ones(min(len(order), 1), np.bool_)
    )
    last[order] = order[is_last][np.cumsum(is_last) - is_last]
    return last


def _arrived_before(tails: Words, arrival: Sequence[int]) -> NDArray[np.bool_]:
    """Return a mask of the tails that arrived earlier, comparing as ``Arrival`` does."""
    before = np.zeros(len(tails), np.bool_)
    tied = np.ones(len(tails), np.bool_)
    for column, value in zip(_ARRIVAL, arrival, strict=True):
        words = tails[:, column]
        before |= tied & (words < np.uint64(value))
        tied &= words == np.uint64(value)
    return before


class ArticleRows(NamedTuple):
    """An article, and the rows of its keys in each lane, as packed postings.

    ``truncated`` says whether any row is truncated.
    """

    record: Record
    by_blocks: Sequence[bytes]
    by_bands: Sequence[bytes]
    truncated: bool


class RankedVersions(NamedTuple):
    """The references of the versions near an article, best first, and their distances in bits of the fingerprint.

    A version that only lane 1 found has the distance ``NOT_FOUND``.
    """

    references: tuple[bytes, ...]
    distances: tuple[int, ...]


def rank_together(articles: Sequence[ArticleRows], settings: JudgeSettings) -> list[RankedVersions | None]:
    """Return the ranked versions near each article in the window, or None for an article that needs a separate search.

    Such an article has truncated or long rows, many near postings, more near versions than may be read, or several near
    versions of one id.
    """
    ranked: list[RankedVersions | None] = [None] * len(articles)
    small = [place for place, article in enumerate(articles) if _is_small(article)]
    for start in range(0, len(small), ARTICLES_AT_ONCE):
        places = small[start : start + ARTICLES_AT_ONCE]
        for place, versions in zip(places, _rank([articles[place] for place in places], settings), strict=True):
            ranked[place] = versions
    return ranked


def _is_small(article: ArticleRows) -> bool:
    return not article.truncated and all(
        sum(map(len, rows)) <= ROWS_BYTES_MAX for rows in (article.by_blocks, article.by_bands)
    )


def _rank(articles: Sequence[ArticleRows], settings: JudgeSettings) -> Iterator[RankedVersions | None]:
    owners, near = _near_by_code(articles, settings)
    own = np.frombuffer(b"".join(article.record.reference for article in articles), ">u8")
    own = own.astype(np.uint64).reshape(len(articles), -1)
    windows = np.array([window_of(article.record, settings.window_ms) for article in articles], np.uint64)
    times = near.tails[:, TIME]
    chosen = (times >= windows[owners, 0]) & (times <= windows[owners, 1])
    chosen &= ~words_equal(near.tails, own[owners].T, OWNER)
    needs_own_search = np.bincount(owners[chosen], minlength=len(articles)) > POSTINGS_NEAR_MAX
    chosen &= ~needs_own_search[owners]
    owners, near = _distinct(owners[chosen], near.take(chosen))
    versions_of_one_id = (owners[1:] == owners[:-1]) & words_equal(near.tails[1:], near.tails[:-1].T, OWNER)
    needs_own_search[owners[1:][versions_of_one_id]] = True
    needs_own_search |= np.bincount(owners, minlength=len(articles)) > settings.verifications_max
    # Among equals the earliest comes first. Postings are already sorted by reference, the last criterion.
    ranks = rank(own[owners].T, near, by_sketch=settings.verify)
    order = np.lexsort((near.tails[:, SEQUENCE], near.tails[:, TIME], ranks, owners))
    bounds = np.searchsorted(owners, np.arange(len(articles) + 1)).tolist()
    references = references_of(near.tails[order])
    distances = near.simhash[order].tolist()
    for separate, start, end in zip(needs_own_search.tolist(), bounds[:-1], bounds[1:], strict=True):
        yield None if separate else RankedVersions(tuple(references[start:end]), tuple(distances[start:end]))


def _near_by_code(articles: Sequence[ArticleRows], settings: JudgeSettings) -> tuple[Numbers, NearPostings]:
    """Return the place of each posting's article, and the postings that either lane finds near the articles."""
    layout = layout_of(articles[0].record)
    codes = [[code_of(article.record, lane) for article in articles] for lane in (LANE_SIMHASH, LANE_MINHASH)]
    blocks = [article.by_blocks for article in articles]
    block_owners, by_blocks = _within(blocks, codes[0], settings.suspect_distance_max, layout)
    bands = [article.by_bands for article in articles]
    band_owners, by_bands = _within(bands, codes[1], settings.one_bits_distance_max, layout)
    count = len(block_owners) + len(band_owners)
    simhash, minhash = np.full((2, count), NOT_FOUND, np.uint8)
    simhash[: len(block_owners)] = by_blocks.distances
    minhash[len(block_owners) :] = by_bands.distances
    tails = np.concatenate((by_blocks.tails, by_bands.tails))
    return np.concatenate((block_owners, band_owners)), NearPostings(tails, simhash, minhash, np.ones(count, np.intp))


def _within(
    rows: Sequence[Sequence[bytes]], codes: Sequence[bytes], distance_max: int, layout: PostingLayout
) -> tuple[Numbers, WithinDistance]:
    """Return the place of each posting's article, and the postings within ``distance_max`` bits of its code."""
    counts = [sum(map(len, article_rows)) // layout.posting_bytes for article_rows in rows]
    owners = np.repeat(np.arange(len(rows)), counts)
    own_codes = np.frombuffer(b"".join(codes), f"V{layout.code_bytes}")[owners]
    within = layout.within(b"".join(chain.from_iterable(rows)), own_codes.tobytes(), distance_max)
    return owners[within.places], within


def _distinct(owners: Numbers, near: NearPostings) -> tuple[Numbers, NearPostings]:
    """Merge the postings of each version near the same article; sort by article, then by reference."""
    order = np.lexsort((near.tails[:, 0], owners))
    tails = near.tails[order]
    ties = (owners[order][1:] == owners[order][:-1]) & (tails[1:, 0] == tails[:-1, 0])
    if (ties & ~words_equal(tails[1:], tails[:-1].T, REFERENCE)).any():
        # Two versions of one id, or two ids whose hashes begin with the same word.
        order = np.lexsort((*near.tails[:, REFERENCE[::-1]].T, owners))
    owners, near = owners[order], near.take(order)
    repeats = (owners[1:] == owners[:-1]) & words_equal(near.tails[1:], near.tails[:-1].T, REFERENCE)
    if not repeats.any():
        return owners, near
    starts = np.concatenate(([0], (~repeats).nonzero()[0] + 1))
    return owners[starts], merge_repeats(near, starts)
