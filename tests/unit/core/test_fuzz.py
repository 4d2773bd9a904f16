"""Changed articles: whatever is done to a text, both engines give the same bytes."""

import os
import random
import sys

import pytest

from consumer.fingerprint import Scheme
from tests.dev_feed import dev_sample
from tests.unit.core.comparing import LANGUAGES, PIECES, assert_same, known, written

SEED_VARIABLE = "CORE_FUZZ_SEED"
ROUNDS = 40
TEXTS = 25
CHARS_MAX = 3_000
STRINGS = 1_000_000
STRINGS_AT_ONCE = 500


def mutated(text: str, others: list[str], chance: random.Random) -> str:
    """Cut, repeat, swap and insert, up to eight times."""
    for _ in range(chance.randrange(1, 9)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice((0, 1, 1, 2, 5, 40, 400)))
        other = chance.choice(others)
        at = chance.randrange(len(other) + 1)
        piece = chance.choice((
            "",
            text[start:end] * 2,
            text[start:end][::-1],
            text[start:end].swapcase(),
            chance.choice(PIECES),
            other[at : at + chance.choice((1, 3, 60))],
        ))  # fmt: skip
        text = (text[:start] + piece + text[end:])[:CHARS_MAX]
    return text


@pytest.mark.parametrize("name", ["jieba-tfidf/1", "jieba-tfidf/2"])
def test_mutants_are_equal(name: str) -> None:
    """A thousand mutants of real and written texts; the seed is another one each time, and in the message."""
    seed = int(os.environ.get(SEED_VARIABLE) or random.SystemRandom().randrange(1 << 32))
    chance = random.Random(seed)
    corpus = [*written(), *(article["body"] for article in dev_sample(40))]
    for _ in range(ROUNDS):
        texts = [known(mutated(chance.choice(corpus), corpus, chance)) for _ in range(TEXTS)]
        try:
            assert_same(Scheme(name, facts=True), texts, chance.choices(LANGUAGES, k=len(texts)))
        except AssertionError as error:
            raise AssertionError(f"{SEED_VARIABLE}={seed}") from error


@pytest.mark.load
@pytest.mark.timeout(1_800)
def test_a_million_strings_are_equal() -> None:
    """Pieces that are hard for one of the engines, put together at random with characters of all of Unicode."""
    seed = int(os.environ.get(SEED_VARIABLE) or random.SystemRandom().randrange(1 << 32))
    chance = random.Random(seed)

    def string() -> str:
        pieces = chance.choices(PIECES, k=chance.randrange(8))
        pieces += (chr(chance.randrange(sys.maxunicode + 1)) for _ in range(chance.randrange(6)))
        pieces += (chr(chance.randrange(0x3400)) for _ in range(chance.randrange(6)))
        chance.shuffle(pieces)
        return known("".join(pieces))

    for number in range(STRINGS // STRINGS_AT_ONCE):
        texts = [string() for _ in range(STRINGS_AT_ONCE)]
        try:
            name = f"jieba-tfidf/{number % 2 + 1}"
            assert_same(Scheme(name, facts=True), texts, chance.choices(LANGUAGES, k=len(texts)))
        except AssertionError as error:
            raise AssertionError(f"{SEED_VARIABLE}={seed}, batch {number}") from error
