"""Words have the same hashes in the compiled engine as in the Python one."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import dupwatch_core as core
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.fingerprint import SCHEME_NAMES, simhash
from consumer.fingerprint.definitions import DEFINITIONS
from consumer.fingerprint.hashing import siphash_13
from tests.dev_feed import dev_sample
from tests.examples import drawn, examples

FOLDER = Path(__file__).parents[2] / "fixtures" / "fingerprint"
PUBLISHED: dict[str, Any] = json.loads((FOLDER / "published.json").read_text(encoding="utf-8"))
TEXTS: dict[str, str] = json.loads((FOLDER / "texts.json").read_text(encoding="utf-8"))
WORDS = some.text(some.characters(exclude_categories=["Cs"]), max_size=40)
LONG_WORDS = ("字" * 1_000_000, "a" * 1_000_000, "𠮷" * 250_000)
UNITS = {"code points": "multiply-xor", "utf-16 units": "multiply-xor-utf16"}


@pytest.mark.parametrize("scheme", SCHEME_NAMES)
def test_words_have_pythons_hash(scheme: str) -> None:
    """In every scheme: words of all lengths, and whole texts as words."""

    @examples(300)
    @given(WORDS)
    def check(word: str) -> None:
        assert core.hash_word(scheme, word) == DEFINITIONS[scheme].hashing.hash(word)

    check()
    for word in (
        "",
        "a",
        *TEXTS.values(),
        *(chr(code) * 3 for code in (0, 0x7F, 0x80, 0xD7FF, 0xE000, 0xFFFF, 0x10FFFF)),
    ):
        assert core.hash_word(scheme, word) == DEFINITIONS[scheme].hashing.hash(word)


@pytest.mark.parametrize("scheme", drawn(SCHEME_NAMES, 2))
def test_articles_have_pythons_hash(scheme: str) -> None:
    """Bodies of the development feed, taken as words, and one's beginnings up to some blocks of every hash."""
    bodies = [article["body"] for article in dev_sample(300)]
    for body in [*bodies, *(bodies[0][:length] for length in range(150))]:
        assert core.hash_word(scheme, body) == DEFINITIONS[scheme].hashing.hash(body)


@pytest.mark.parametrize(
    ("scheme", "word"), drawn([*product(SCHEME_NAMES, LONG_WORDS)], 6), ids=lambda value: value[:20]
)
def test_long_words_have_pythons_hash(scheme: str, word: str) -> None:
    """A word can be as long as its text."""
    assert core.hash_word(scheme, word) == DEFINITIONS[scheme].hashing.hash(word)


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("fact", PUBLISHED["multiply-xor"], ids=lambda fact: f"{fact['bits']} {fact['tokens'][0]}")
def test_multiply_xor_of_tokens(fact: dict[str, Any], units: str) -> None:
    """Unweighted tokens have the published fingerprints, over code points and over UTF-16 units."""
    bits, scheme = fact["bits"], f"{UNITS[units]}-{fact['bits']}/1"
    features = [(core.hash_word(scheme, token), 1.0) for token in fact["tokens"]]
    assert core.fingerprint_of(features, bits, tie=True) == simhash(features, bits, tie=True) == int(fact[units], 16)


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize(
    "fact", PUBLISHED["multiply-xor of one token"], ids=lambda fact: f"{fact['bits']} {fact['token']}"
)
def test_multiply_xor_of_one_token(fact: dict[str, Any], units: str) -> None:
    """A token alone has the published hash."""
    assert core.hash_word(f"{UNITS[units]}-{fact['bits']}/1", fact["token"]) == int(fact[units], 16)


@pytest.mark.parametrize("fact", PUBLISHED["jenkins"], ids=lambda fact: fact["text"])
def test_jenkins(fact: dict[str, str]) -> None:
    """Texts have the hashes that lookup3 gives them."""
    assert core.hash_word("jenkins-64/1", fact["text"]) == int(fact["hash"])


@pytest.mark.parametrize("fact", PUBLISHED["md5"], ids=lambda fact: fact["text"])
def test_md5(fact: dict[str, str]) -> None:
    """Texts have the published MD5, and its leading half for 64 bits."""
    assert core.hash_word("md5-128/1", fact["text"]) == int(fact["hash"], 16)
    assert core.hash_word("md5-64/1", fact["text"]) == int(fact["hash"][:16], 16)


def test_sha1_has_the_value_of_its_standard() -> None:
    """The leading bits of SHA-1 are those of the example in FIPS 180."""
    assert core.hash_word("sha1-128/1", "abc") == 0xA9993E364706816ABA3E25717850C26C
    assert core.hash_word("sha1-64/1", "abc") == 0xA9993E364706816A


def test_unknown_schemes_have_no_hash() -> None:
    """They are refused."""
    with pytest.raises(ValueError, match="unknown scheme"):
        core.hash_word("jieba-tfidf/4", "word")


def test_siphash_is_pythons() -> None:
    """Of any value, with any key."""
    rng = np.random.default_rng(4)
    values = rng.integers(0, 2**64, 300, dtype=np.uint64)
    for first, second in [(0, 0), (2**64 - 1, 1), *rng.integers(0, 2**64, (5, 2), dtype=np.uint64).tolist()]:
        expected = siphash_13(values, first, second).tolist()
        assert [core.siphash(value, first, second) for value in values.tolist()] == expected
