"""Finds out which articles of a batch have anything near at all, before candidates are chosen for each of those.

Most articles are new. To choose candidates takes some thirty calls of numpy, however short the rows are; here all
articles of a batch share a dozen.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.postings import TAIL_WORDS, PostingLayout
from storage.records import REFERENCE_BYTES

ARTICLES_AT_ONCE: Final = 256
ROWS_BYTES_MAX: Final = 32 << 10
"""Articles with more bytes of postings are not looked at: each is worth calls of its own, and memory stays bounded."""
_OWNER_WORDS: Final = 2
_WORD_BYTES: Final = 8


class Rows(NamedTuple):
    """What one lane has for an article: its reference, its code in that lane, and the postings under its keys."""

    reference: bytes
    code: bytes
    packed: Sequence[bytes]


def has_others_near(articles: Sequence[Rows], layout: PostingLayout, distance_max: int) -> NDArray[np.bool_]:
    """Return for each article whether another id has a posting within ``distance_max`` bits of its code: bool[n].

    It is True, too, for articles with more than ``ROWS_BYTES_MAX`` of postings.
    """
    found = np.array([sum(map(len, article.packed)) > ROWS_BYTES_MAX for article in articles], np.bool_)
    small = np.flatnonzero(~found)
    for start in range(0, len(small), ARTICLES_AT_ONCE):
        some = small[start : start + ARTICLES_AT_ONCE]
        found[some] = _has_others_near([articles[place] for place in some], layout, distance_max)
    return found


def _has_others_near(articles: Sequence[Rows], layout: PostingLayout, distance_max: int) -> NDArray[np.bool_]:
    found = np.zeros(len(articles), np.bool_)
    counts = [sum(map(len, article.packed)) // layout.posting_bytes for article in articles]
    packed = b"".join(chain.from_iterable(article.packed for article in articles))
    of_article = np.repeat(np.arange(len(articles)), counts)
    codes = np.frombuffer(b"".join(article.code for article in articles), f"V{layout.code_bytes}")
    close = np.flatnonzero(layout.distances(packed, codes[of_article].tobytes()) <= distance_max)
    postings = np.frombuffer(packed, np.uint64).reshape(-1, layout.posting_bytes // _WORD_BYTES)
    owners = postings[close, -TAIL_WORDS : _OWNER_WORDS - TAIL_WORDS]
    references = np.frombuffer(b"".join(article.reference for article in articles), np.uint64)
    own = references.reshape(-1, REFERENCE_BYTES // _WORD_BYTES)[of_article[close], :_OWNER_WORDS]
    found[of_article[close][(owners != own).any(axis=1)]] = True
    return found
