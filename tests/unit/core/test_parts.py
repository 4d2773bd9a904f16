"""Texts have the same anchors and samples in the compiled engine as in the Python one."""

import random
from collections.abc import Sequence
from itertools import product
from types import MappingProxyType

import dupwatch_core as core
import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.fingerprint.characters.normalise import normalise
from consumer.fingerprint.parts import ANCHORS_POSTED, SAMPLE_MAX, parts_batch
from consumer.fingerprint.secret import Secret
from consumer.fingerprint.shingles import of_letters
from tests.dev_feed import EVERY_PART, dev_part
from tests.examples import drawn, examples
from tests.processor_time import within_processor_s

LANGUAGES = ("", "zh", "en", "ja-JP", "x")
PIECES = (
    *("", " ", "，", "。\n", "!?", "a", "bc", "word", "_", "7", "²", "½", "é", "the very same clause, ", "x" * 36),
    *("中", "文字", "あいう", "한국", "𠮷", "\u2e7f", "\u2e80", "😀", "新馆共有四层，藏书很多。", "好" * 20),
)
KNOWN = some.characters(exclude_categories=["Cn", "Cs"])
"""Without characters that the tables of one of both may lack."""
TEXTS = some.lists(some.sampled_from(PIECES) | some.text(KNOWN, max_size=40), max_size=60).map("".join)


def assert_same(texts: Sequence[str], languages: Sequence[str]) -> None:
    """Both engines agree on these texts, whatever the others in the batch are."""
    expected = parts_batch(texts, languages)
    assert len(expected.anchors) == len(expected.samples) == len(texts)
    for number, (text, language) in enumerate(zip(texts, languages, strict=True)):
        anchors, sample = core.parts(text, language)
        assert anchors == expected.anchors[number], (text, language)
        assert sample == expected.samples[number], (text, language)


@examples(1_000)
@given(some.lists(some.tuples(TEXTS, some.sampled_from(LANGUAGES)), min_size=1, max_size=4))
def test_parts_are_pythons(texts: list[tuple[str, str]]) -> None:
    """Mixed scripts, repeated clauses, with and without a language, among others in a batch."""
    assert_same([text for text, _ in texts], [language for _, language in texts])


def test_thousands_of_texts() -> None:
    """Of up to some thousand characters, put together from pieces, so that much comes again."""
    rng = random.Random(19)
    for _ in drawn(range(40), 4):
        texts = ["".join(rng.choices(PIECES, k=rng.choice([3, 12, 40, 300, 900]))) for _ in range(100)]
        assert_same(texts, rng.choices(LANGUAGES, k=len(texts)))


@pytest.mark.parametrize(("character", "length"), [("字", 20), ("a", 36)])
def test_lengths_at_which_stretches_and_neighbours_begin_to_fit(character: str, length: int) -> None:
    """Texts of one, two and up to three neighbourhoods of stretches, the last ones of the other script."""
    rng = random.Random(length)
    alphabet = [character, "b", "中", " "]
    texts = [
        "".join(rng.choices(alphabet[:kinds], k=length + more)) + tail
        for more in range(-2, 55)
        for kinds in (1, 2, 4)
        for tail in ("", "b" * 30, "中" * 30)
    ]
    assert_same(texts, [""] * len(texts))


@pytest.mark.parametrize("part", EVERY_PART)
def test_articles_have_pythons_parts(part: int) -> None:
    """The development feed, normalised, with the language that they declare."""
    articles = dev_part(part)
    assert_same([normalise(article["body"]) for article in articles], [article["lang"] for article in articles])


LONGEST = MappingProxyType({
    "one character": "字" * 1_000_000,
    "words": "a b " * 250_000,
    "nothing": "，" * 1_000_000,
    "a word amid nothing": "!" * 500_000 + "word" + "。" * 500_000,
    "mixed": "𠮷 a" * 300_000,
    "a sentence": "one sentence that comes again and again, " * 25_000,
    "numbers": "".join(f"{number:x} " for number in range(160_000)),
    "ideographs": "".join(chr(0x4E00 + number * number % 20_000) for number in range(20_000)) * 50,
})  # fmt: skip


@pytest.mark.parametrize(("name", "language"), drawn([*product(LONGEST, ["", "zh"])], 4))
def test_the_longest_texts(name: str, language: str) -> None:
    """Texts of a million characters, in less than 0.5 µs a character, with no more than is kept."""
    text = LONGEST[name]
    assert_same([text], [language])
    with within_processor_s(0.5):
        anchors, sample = core.parts(text, language)
    assert len(anchors) <= 8 * ANCHORS_POSTED
    assert len(sample) <= 4 * SAMPLE_MAX


@examples(200)
@given(some.lists(TEXTS, min_size=1, max_size=4), some.binary(min_size=32, max_size=32))
def test_parts_of_letters_are_pythons(texts: list[str], secret: bytes) -> None:
    """With any secret; all characters count."""
    key = Secret(secret).hash_key
    expected = parts_batch(texts, None, of_letters(key))
    for number, text in enumerate(texts):
        assert core.parts_letters(text, tuple(key)) == (expected.anchors[number], expected.samples[number]), text
