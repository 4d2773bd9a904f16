"""The first look at a batch: which articles have anything near at all."""

import random

import numpy as np
import pytest

from consumer.judge.first_look import ARTICLES_AT_ONCE, ROWS_BYTES_MAX, Rows, has_others_near
from storage.postings import POSTING_LAYOUTS, PostingLayout

DISTANCE_MAX = 16


def posting(owner: int, code: bytes, chance: random.Random) -> bytes:
    """A posting of a version of this owner."""
    return code + owner.to_bytes(16) + chance.randbytes(32)


def flipped(code: bytes, bits: int, chance: random.Random) -> bytes:
    """The code with so many bits changed."""
    mask = sum(1 << place for place in chance.sample(range(8 * len(code)), bits))
    return (int.from_bytes(code) ^ mask).to_bytes(len(code))


def one_by_one(article: Rows, layout: PostingLayout) -> bool:
    """The same in plain Python."""
    width = layout.posting_bytes
    joined = b"".join(article.packed)
    for start in range(0, len(joined), width):
        code, owner = joined[start : start + layout.code_bytes], joined[start + layout.code_bytes :][:16]
        bits = (int.from_bytes(code) ^ int.from_bytes(article.code)).bit_count()
        if bits <= DISTANCE_MAX and owner != article.reference[:16]:
            return True
    return False


@pytest.mark.parametrize("code_bytes", [8, 16])
@pytest.mark.parametrize("seed", range(10))
def test_it_sees_what_is_seen_one_by_one(seed: int, code_bytes: int) -> None:
    """Other versions of the same id, codes at and beyond the limit, empty rows, and articles without any."""
    chance, layout = random.Random(seed), POSTING_LAYOUTS[code_bytes]
    articles = []
    for owner in range(3 * ARTICLES_AT_ONCE // 2):
        code = chance.randbytes(code_bytes)
        rows = [
            b"".join(
                posting(
                    chance.choice([owner, owner, 9_999]),
                    flipped(code, chance.choice([0, DISTANCE_MAX, DISTANCE_MAX + 1, 30, 40]), chance),
                    chance,
                )
                for _ in range(chance.choice([0, 0, 1, 2]))
            )
            for _ in range(chance.choice([0, 1, 4]))
        ]
        articles.append(Rows(owner.to_bytes(16) + chance.randbytes(16), code, rows))
    found = has_others_near(articles, layout, DISTANCE_MAX)
    assert found.tolist() == [one_by_one(article, layout) for article in articles]
    assert 0 < np.count_nonzero(found) < len(articles)


def test_an_owner_is_told_from_others_by_both_of_its_words() -> None:
    """Ids whose hashes begin, or end, alike are different ids."""
    layout, code, chance = POSTING_LAYOUTS[8], bytes(8), random.Random(0)
    own = 5 << 64 | 7
    for other, is_other in ((own, False), (5 << 64 | 8, True), (6 << 64 | 7, True)):
        rows = [posting(other, code, chance)]
        found = has_others_near([Rows(own.to_bytes(16) + bytes(16), code, rows)], layout, DISTANCE_MAX)
        assert found.tolist() == [is_other]


def test_long_rows_are_left_to_the_search_of_each_article(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may have something near; their postings are not copied."""
    layout, chance = POSTING_LAYOUTS[8], random.Random(0)
    far = posting(1, b"\xff" * 8, chance)
    fits = ROWS_BYTES_MAX // layout.posting_bytes
    articles = [Rows(bytes(32), bytes(8), [far * count]) for count in (fits, fits + 1)]
    copied: list[int] = []
    really = PostingLayout.distances

    def noted(self: PostingLayout, postings: bytes, codes: bytes) -> object:
        copied.append(len(postings))
        return really(self, postings, codes)

    monkeypatch.setattr(PostingLayout, "distances", noted)
    assert has_others_near(articles, layout, DISTANCE_MAX).tolist() == [False, True]
    assert copied == [fits * layout.posting_bytes]
