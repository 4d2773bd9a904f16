"""The compiled engine sorts texts, and chooses keywords and runs as evidence, as the Python engine does."""

import random
from itertools import product

import dupwatch_core as core
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.fingerprint.characters.normalise import normalise
from consumer.fingerprint.features import Features
from consumer.fingerprint.text_kinds import (
    LETTERS_BINS_MIN,
    SHINGLED_BINS_MIN,
    kinds_by_keywords,
    kinds_in_every_script,
    runs,
)
from tests.dev_feed import EVERY_PART, dev_part
from tests.examples import drawn, examples
from tests.processor_time import within_processor_s

LIMITS = some.none() | some.integers(0, 40)
RUN_CHARACTERS = "ab字é²½٣3_ ,\u0301\u0597\u0651\u093f\u0966\u0e34\u0e50\u17b7\u1780\n𠮷"
RUN_TEXTS = some.text(RUN_CHARACTERS, max_size=60) | some.text(some.characters(exclude_categories=["Cn", "Cs"]))
WORDS = some.text("ab中\ufffd𠮷", min_size=1, max_size=4) | some.integers(60, 70).map("长".__mul__)
WEIGHTS_OF_MANY = [(1.0,), (1.0, 2.0), tuple(number / 7 for number in range(1, 90_000))]
WEIGHTS = some.floats(1e-6, 1e6) | some.sampled_from([11.9547675029, 2.0, 3.0])


def in_python(keywords: list[tuple[str, float]]) -> Features:
    """The features of one text, all of whose words count."""
    words, count = [word for word, _ in keywords], len(keywords)
    return Features(
        words,
        np.arange(count),
        np.zeros((count, 1), dtype=np.uint64),
        np.array([weight for _, weight in keywords], dtype=np.float64),
        np.array([0, count]),
        [count],
    )


def assert_same(keywords: list[tuple[str, float]], keywords_max: int | None) -> None:
    """Both engines choose the same keywords, in the same order."""
    features = in_python(keywords)
    assert core.heaviest(keywords, keywords_max, short=False) == features.heaviest(0, keywords_max)
    evidence = [keywords[place] for place in core.heaviest(keywords, keywords_max, short=True)]
    assert evidence == list(features.evidence(0, keywords_max))


@examples(1_000)
@given(some.dictionaries(WORDS, WEIGHTS, max_size=60), LIMITS)
def test_the_heaviest_keywords_are_pythons(keywords: dict[str, float], keywords_max: int | None) -> None:
    """Many of equal weight, and some of more than 64 characters, which are no evidence."""
    assert_same(list(keywords.items()), keywords_max)


@pytest.mark.parametrize(
    ("weights", "keywords_max"), drawn([*product(WEIGHTS_OF_MANY, [None, 1, 32, 79_999, 80_000, 80_001])], 9)
)
def test_many_keywords(weights: tuple[float, ...], keywords_max: int | None) -> None:
    """As many as a text of the greatest length has: all of one weight, of two, and of many."""
    rng = random.Random(19)
    words = list({f"{rng.getrandbits(64):x}" for _ in range(80_000)})
    assert_same([(word, rng.choice(weights)) for word in words], keywords_max)


def test_a_long_keyword_makes_room_for_another() -> None:
    """Words of a million characters, too."""
    assert_same([("长" * 1_000_000, 9.0), ("长" * 999_999, 9.0), ("b", 1.0), ("a", 1.0)], 2)
    assert_same([], 32)


@examples(1_000)
@given(RUN_TEXTS, LIMITS)
def test_runs_are_pythons(text: str, runs_max: int | None) -> None:
    """Letters with marks of several scripts, digits of all kinds, and whatever ends a run."""
    assert tuple(core.runs(text, runs_max)) == runs(text, runs_max)


@pytest.mark.parametrize("part", EVERY_PART)
def test_runs_of_articles_are_pythons(part: int) -> None:
    """The development feed."""
    for article in dev_part(part):
        text = normalise(article["body"])
        assert tuple(core.runs(text, 32)) == runs(text, 32)


@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, "a " * 500_000, "а" * 64 + " " + "б" * 65, " " * 1_000_000, "\u0301" * 1_000_000]
)
def test_runs_of_the_longest_texts(text: str) -> None:
    """In less than 1 µs a character."""
    assert tuple(core.runs(text, None)) == runs(text, None)
    with within_processor_s(1):
        core.runs(text, 32)


def test_runs_of_as_many_words_as_fit() -> None:
    """Each once: the first by code points are chosen."""
    text = " ".join(f"{number:x}".translate(str.maketrans("0123456789", "ghijklmnop")) for number in range(150_000))
    for runs_max in (None, 32):
        assert tuple(core.runs(text, runs_max)) == runs(text, runs_max)


def test_kinds_are_pythons() -> None:
    """Below, at and above every limit."""
    for keywords, short_max, bins, text in product(
        (0, 1, 6, 7, 8, 9), (0, 7), (0, 63, 64, 95, 96, 256), ("", "a", "😀")
    ):
        distinct = np.array([keywords])
        by_keywords = kinds_by_keywords(distinct, short_max)[0]
        assert core.kind(keywords, short_max, bins, text, bins_min=None) == by_keywords
        for bins_min in (SHINGLED_BINS_MIN, LETTERS_BINS_MIN):
            expected = kinds_in_every_script(distinct, short_max, np.array([bins]), [text], bins_min)[0]
            assert core.kind(keywords, short_max, bins, text, bins_min=bins_min) == expected
