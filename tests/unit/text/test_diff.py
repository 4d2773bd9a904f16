"""The difference of two texts: it covers both, is minimal where it can be, and says what was not compared."""

import random
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.text import diff as module
from consumer.text.diff import Stretch, difference
from tests.examples import drawn
from tests.processor_time import within_processor_s

FILLER_A, FILLER_B = "甲", "乙"
SHARED = "天地玄黄宇宙洪荒日月"


def assert_covers(stretches: list[Stretch], a: str, b: str) -> None:
    """Nothing of either text is left out, and what is called equal is."""
    assert "".join(stretch.a for stretch in stretches) == a
    assert "".join(stretch.b for stretch in stretches) == b
    at_a = at_b = 0
    for stretch in stretches:
        assert (stretch.at_a, stretch.at_b) == (at_a, at_b)
        assert (stretch.a == stretch.b) == (stretch.kind == "equal")
        at_a, at_b = at_a + len(stretch.a), at_b + len(stretch.b)
    kinds = [stretch.kind == "equal" for stretch in stretches]
    assert all(kind != following for kind, following in pairwise(kinds))


def equal_chars(stretches: list[Stretch]) -> int:
    """How much the two texts were found to share."""
    return sum(len(stretch.a) for stretch in stretches if stretch.kind == "equal")


def longest(a: str, b: str) -> int:
    """The length of the longest common subsequence, the slow way."""
    row = [0] * (len(b) + 1)
    for left in a:
        new = [0]
        for place, right in enumerate(b):
            new.append(row[place] + 1 if left == right else max(row[place + 1], new[-1]))
        row = new
    return row[-1]


few = st.text(alphabet="天地玄", max_size=40)


@given(few, few)
def test_a_small_difference_is_minimal(a: str, b: str) -> None:
    """What is found equal is a longest common subsequence, whichever way it is found."""
    assert_covers(difference(a, b), a, b)
    assert equal_chars(difference(a, b)) == longest(a, b)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "_EXACT_CELLS_MAX", 0)
        assert equal_chars(difference(a, b)) == longest(a, b)
        patched.setattr(module, "EDITS_MAX", 0)
        patched.setattr(module, "_ANCHOR_TOKENS", (3, 1))
        assert_covers(difference(a, b), a, b)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_texts(a: str, b: str) -> None:
    """Whatever characters they have."""
    assert_covers(difference(a, b), a, b)


def test_words_are_not_cut() -> None:
    """Letters and digits make a word; each character of a script without spaces is one of its own."""
    assert difference("one word 北京市", "one sword 北海市") == [
        Stretch("equal", 0, "one ", 0, "one "),
        Stretch("changed", 4, "word", 4, "sword"),
        Stretch("equal", 8, " 北", 9, " 北"),
        Stretch("changed", 10, "京", 11, "海"),
        Stretch("equal", 11, "市", 12, "市"),
    ]


def with_edits(count: int) -> tuple[str, str]:
    """A text of one character, and the same with this many characters inserted: nothing in it can be an anchor."""
    piece = FILLER_A * 150
    return piece * (count + 1), FILLER_B.join([piece] * (count + 1))


def test_few_edits_in_a_monotonous_text_are_all_found() -> None:
    """150 are found exactly; with one more the middle is marked as not compared."""
    a, b = with_edits(150)
    found = difference(a, b)
    assert_covers(found, a, b)
    assert [(stretch.kind, stretch.a, stretch.b) for stretch in found if stretch.kind != "equal"] == [
        ("changed", "", FILLER_B)
    ] * 150
    a, b = with_edits(151)
    beyond = difference(a, b)
    assert_covers(beyond, a, b)
    assert [stretch.kind for stretch in beyond] == ["equal", "not compared", "equal"]


def scattered(filler: str, size: int) -> str:
    """A text of one filler with the shared characters in it."""
    step = size // len(SHARED)
    return "".join(letter + filler * (step - 1) for letter in SHARED) + filler * (size - step * len(SHARED))


def test_a_gap_of_200_million_pairs_of_tokens_is_compared() -> None:
    """14,000 tokens and 14,000 are compared to the last shared one; 15,000 are marked as not compared."""
    a, b = FILLER_A + scattered(FILLER_A, 14_000), FILLER_B + scattered(FILLER_B, 14_000)
    found = difference(a, b)
    assert_covers(found, a, b)
    assert "".join(stretch.a for stretch in found if stretch.kind == "equal") == SHARED
    a, b = FILLER_A + scattered(FILLER_A, 15_000), FILLER_B + scattered(FILLER_B, 15_000)
    assert [stretch.kind for stretch in difference(a, b)] == ["not compared"]


def test_small_gaps_come_before_a_large_one() -> None:
    """Where not all can be compared it is the largest that is not."""
    chance = random.Random("gaps")
    anchor = "".join(chr(0x4E00 + number) for number in chance.sample(range(5_000), 1_000))
    a = FILLER_A * 14_000 + anchor + "大门" + anchor[::-1] + FILLER_A * 2_500
    b = FILLER_B * 14_000 + anchor + "小门" + anchor[::-1] + FILLER_B * 2_500
    found = difference(a, b)
    assert_covers(found, a, b)
    assert [(stretch.kind, stretch.a[:1], stretch.b[:1]) for stretch in found if stretch.kind != "equal"] == [
        ("not compared", FILLER_A, FILLER_B), ("changed", "大", "小"), ("changed", FILLER_A, FILLER_B),
    ]  # fmt: skip


LONG_TEXTS: Final = ("edits all over", "another order", "halves changed places", "one character", "words")


def long_texts(case: str) -> tuple[str, str]:
    """Return a pair of texts of about 1 MB in UTF-8, each a hard case for something."""
    chance = random.Random("long")
    if case == "one character":
        return FILLER_A * 333_000, FILLER_A * 111_000 + FILLER_B + FILLER_A * 221_000
    if case == "words":
        words = [f"w{number % 9_999}" for number in range(160_000)]
        return " ".join(words), " ".join(word for word in words if chance.random() > 0.1)
    letters = [chr(0x4E00 + int(chance.paretovariate(0.7)) % 3_000) for _ in range(333_000)]
    text = "".join(letters)
    if case == "edits all over":
        return text, "".join("改" if chance.random() < 0.1 else letter for letter in letters)
    if case == "another order":
        return text, "".join(chance.sample(letters, len(letters)))
    return text, text[150_000:] + text[:150_000]


@pytest.mark.parametrize("case", drawn(LONG_TEXTS, 3))
def test_a_megabyte_takes_about_a_second(case: str) -> None:
    """Of processor time, whatever differs; the bound leaves room for a slow and busy machine."""
    a, b = long_texts(case)
    with within_processor_s(15):
        found = difference(a, b)
    assert_covers(found, a, b)


def test_more_distinct_words_than_there_are_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then characters are compared."""
    monkeypatch.setattr(module, "_TOKENS_MAX", 3)
    found = difference("one two three four", "one two three five")
    assert [(stretch.a, stretch.b) for stretch in found if stretch.kind != "equal"] == [("our", "ive")]
