"""Passages that stand in both texts, wherever they stand."""

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from consumer.text.passages import PASSAGE_CHARS_MIN, RUN_CHARS, Passage, passages

WORDS = ("harbour", "ferry", "bridge", "council", "storm", "market", "river", "school", "winter", "engine")


def written(seed: int, words: int) -> str:
    """Words that share no passage with those of another seed."""
    random = Random(seed)  # a text
    return " ".join(f"{random.choice(WORDS)}{random.randint(1, 999)}" for _ in range(words))


STORY = written(1, 120)
HALF = STORY[: len(STORY) // 2]


def test_a_half_is_found_wherever_it_stands() -> None:
    """With its place in the text, and to the character."""
    text = f"1 {HALF} 2"
    (found,) = passages(text, f"{written(2, 60)} 3 {HALF} 4 {written(3, 60)}")
    assert found == Passage(1, f" {HALF} ")
    assert text[found.at : found.end] == found.text
    assert passages(HALF, HALF) == [Passage(0, HALF)]


def test_passages_may_stand_in_another_order() -> None:
    """A diff would find one of the two only."""
    first, second = STORY[:200], STORY[300:600]
    found = passages(f"{first} 111111 {second}", f"{second} 222222 {first}")
    assert [passage.text.strip() for passage in found] == [first.strip(), second.strip()]


def test_short_ones_are_left_out() -> None:
    """At the limit, and one character below it."""
    words = STORY[:PASSAGE_CHARS_MIN]
    assert [passage.text for passage in passages(f"…{words}…", f"!{words}!")] == [words]
    assert passages(f"…{words[1:]}…", f"!{words[1:]}!") == []


def test_texts_without_anything_in_common_have_none() -> None:
    """Nor has an empty one, nor one that is shorter than a run."""
    assert passages(written(2, 100), written(3, 100)) == []
    assert passages("", STORY) == passages(STORY, "") == passages("a" * (RUN_CHARS - 1), STORY) == []


@given(
    st.text(max_size=120), st.text(max_size=120), st.text(min_size=PASSAGE_CHARS_MIN, max_size=90), st.text(max_size=90)
)
def test_what_both_have_is_in_a_passage(before: str, after: str, common: str, other: str) -> None:
    """And all passages are cut from the text, in order, apart from each other; unpaired surrogates do no harm."""
    text = before + common + after
    found = passages(text, other + common + other)
    assert any(passage.at <= len(before) and passage.end >= len(before) + len(common) for passage in found)
    assert all(text[passage.at : passage.end] == passage.text for passage in found)
    assert all(one.end < two.at for one, two in pairwise(found))
