"""How the index is packed: what comes out is what went in, and a word is found by one page."""

from bisect import bisect_right

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from consumer.reviews.word_index import pages as module
from consumer.reviews.word_index.pages import (
    Entries,
    entries_of,
    flags_with_word,
    merge_entries,
    pack_entries,
    pack_ids,
    renumber,
    split,
    unpack_ids,
    unpack_page,
)

WORDS = st.sets(st.one_of(st.integers(1, 30), st.integers(1, (1 << 44) - 1)), max_size=30)
TEXTS = st.lists(WORDS, max_size=30)


def pairs(entries: Entries) -> list[tuple[int, int]]:
    """Return the entries as pairs."""
    return list(zip(entries.words.tolist(), entries.flags.tolist(), strict=True))


def expected(texts: list[set[int]]) -> list[tuple[int, int]]:
    """Return what the entries of texts are."""
    return sorted((word, flag) for flag, text in enumerate(texts) for word in text)


@given(TEXTS, st.integers(1, 40))
def test_pages_hold_all_entries(texts: list[set[int]], page_entries: int) -> None:
    """Each word whole on one page, which is the last one that does not begin after it."""
    before, module.PAGE_ENTRIES = module.PAGE_ENTRIES, page_entries  # type: ignore[misc]
    try:
        made = list(pack_entries(entries_of(texts)))
    finally:
        module.PAGE_ENTRIES = before  # type: ignore[misc]
    assert [pair for page in made for pair in pairs(unpack_page(page.content))] == expected(texts)
    firsts = [page.first for page in made]
    assert firsts == sorted(set(firsts))
    for word in [*{word for text in texts for word in text}, 31, 1 << 50]:
        place = bisect_right(firsts, word) - 1
        flags = flags_with_word(made[place].content, word).tolist() if place >= 0 else []
        assert flags == [flag for flag, text in enumerate(texts) if word in text]


@given(TEXTS, TEXTS, st.data())
def test_parts_become_one(first: list[set[int]], second: list[set[int]], data: st.DataObject) -> None:
    """Flags that leave are left out, one that is in both is there once, and it can be split anywhere."""
    numbers = [
        np.array(
            data.draw(st.lists(st.integers(-90, 40), min_size=len(part), max_size=len(part), unique=True)), np.int64
        )
        for part in (first, second)
    ]
    parts = [renumber(entries_of(part), each) for part, each in zip((first, second), numbers, strict=True)]
    whole = merge_entries(parts)
    wanted = {
        (word, int(number))
        for part, each in zip((first, second), numbers, strict=True)
        for text, number in zip(part, each, strict=True)
        if number >= 0
        for word in text
    }
    assert pairs(whole) == sorted(wanted)
    before, after = split(whole, 15)
    assert pairs(before) + pairs(after) == pairs(whole)
    assert all(word < 15 for word, _ in pairs(before))
    assert all(word >= 15 for word, _ in pairs(after))


@given(st.lists(st.integers(0, (1 << 62) - 1), max_size=50))
def test_numbers_of_flags_are_held(ids: list[int]) -> None:
    """In their order, whatever it is: a flag that left is 0."""
    assert unpack_ids(pack_ids(np.array(ids, np.int64))).tolist() == ids
