"""Adding up weighted hashes."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.fingerprint.hashing import fnv1a_64
from consumer.fingerprint.summing import (
    bit_sums,
    fingerprint_batch,
    fingerprint_number,
    hamming_distance,
    hash_words,
    round_weights,
    simhash,
    split_blocks,
)

HASHES = st.integers(0, 2**64 - 1)
WEIGHTS = st.floats(0, 1e6)
FEATURES = st.lists(st.tuples(HASHES, WEIGHTS), max_size=40)


@pytest.mark.parametrize(
    ("weights", "hashes", "sums", "fingerprint"),
    [
        ([4, 5], ["100101", "101011"], [9, -9, 1, -1, 1, 9], "101011"),
        (
            [5, 2, 3, 1, 4],
            ["100101", "101011", "100111", "101111", "111011"],
            [15, -7, -1, 3, 5, 15],
            "100111",
        ),
        (
            [45.11, 32.09],
            ["01011001", "11001011"],
            [-13.02, 77.20, -77.20, 13.02, 77.20, -77.20, -13.02, 77.20],
            "01011001",
        ),
        ([3, 2, 4], ["10", "01", "11"], [5, 3], "11"),
    ],
)
def test_published_examples(weights: list[float], hashes: list[str], sums: list[float], fingerprint: str) -> None:
    """The published examples hold, their sums bit by bit and their fingerprints."""
    features = [(int(value, 2), weight) for value, weight in zip(hashes, weights, strict=True)]
    assert bit_sums(features, bits=len(sums)) == pytest.approx(sums)
    assert simhash(features, bits=len(sums)) == int(fingerprint, 2)


@pytest.mark.parametrize(
    ("keywords", "fingerprint"),
    [
        (
            [("CEO", 11.7392), ("蓝翔", 11.7392), ("白富美", 11.7392), ("升职", 10.8562), ("加薪", 10.6426)],
            "0ccd10d888c492e7",
        ),
        ([("上海", 45.11), ("北京", 32.09)], "4ef4ef9ee82af0c5"),
    ],
)
def test_published_keywords_by_fnv(keywords: list[tuple[str, float]], fingerprint: str) -> None:
    """Weighted words hashed by FNV-1a give the fingerprints computed independently, alone and in a batch."""
    features = [(fnv1a_64(word.encode()), weight) for word, weight in keywords]
    assert f"{simhash(features):016x}" == fingerprint
    assert f"{_batch([features])[0]:016x}" == fingerprint


def test_published_distance() -> None:
    """00101110 and 00001111 are 2 bits apart."""
    assert hamming_distance(0b00101110, 0b00001111) == 2


def test_published_blocks() -> None:
    """01100011 is cut into 01, 10, 00 and 11."""
    assert split_blocks(0b01100011, bits=8, blocks=4) == (0b01, 0b10, 0b00, 0b11)


def test_ties_and_nothing_are_zero() -> None:
    """A sum of exactly 0 gives a 0 bit, and so does having no feature."""
    assert simhash([(0b10, 1.5), (0b01, 1.5)], bits=2) == 0
    assert simhash([]) == 0
    assert _batch([[], [(2**64 - 1, 1.5), (0, 1.5)]]) == [0, 0]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: simhash([(-1, 1.0)]), "negative"),
        (lambda: simhash([(256, 1.0)], bits=8), "does not fit into 8 bits"),
        (lambda: hamming_distance(-1, 1), "negative"),
        (lambda: hamming_distance(1, -1), "negative"),
        (lambda: split_blocks(-1), "negative"),
        (lambda: split_blocks(1 << 64), "does not fit into 64 bits"),
        (lambda: split_blocks(1, bits=64, blocks=5), "cannot be cut into 5 equal blocks"),
        (lambda: split_blocks(1, bits=64, blocks=0), "cannot be cut into 0 equal blocks"),
        (lambda: _batch([[(1, 2.0**31), (2, 2.0**31)]]), "2\\*\\*32 or more"),
    ],
)
def test_refusals(call: Callable[[], object], reason: str) -> None:
    """What has no meaning is refused with a sentence that says why."""
    with pytest.raises(ValueError, match=reason):
        call()


@given(FEATURES, st.randoms())
def test_order_does_not_matter(features: list[tuple[int, float]], rng: random.Random) -> None:
    """Features in another order have the same sums and the same fingerprint, in the batch form too."""
    shuffled = features.copy()
    rng.shuffle(shuffled)
    assert bit_sums(shuffled) == bit_sums(features)
    assert _batch([shuffled]) == _batch([features])


@given(st.lists(FEATURES, max_size=6))
def test_batch_equals_one_by_one(texts: list[list[tuple[int, float]]]) -> None:
    """The batch form equals the reference over the rounded weights, bit for bit."""
    expected = [
        simhash([(value, float(round_weights(np.array([weight]))[0])) for value, weight in features])
        for features in texts
    ]
    assert _batch(texts) == expected


def test_near_ties_do_not_depend_on_order_in_the_batch() -> None:
    """Weights whose plain float sum depends on its order, such as 0.1, 0.2 and 0.3, tie exactly when rounded."""
    ones = 2**64 - 1
    orders = [
        [(ones, 0.1), (ones, 0.2), (0, round(0.1 * 2**20) / 2**20 + round(0.2 * 2**20) / 2**20)],
        [(0, round(0.1 * 2**20) / 2**20 + round(0.2 * 2**20) / 2**20), (ones, 0.2), (ones, 0.1)],
    ]
    assert [_batch([features]) for features in orders] == [[0], [0]]


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 2**128 - 1), st.integers(1, 3)), max_size=6), max_size=4), st.booleans()
)
def test_wide_batch_equals_one_by_one(texts: list[list[tuple[int, int]]], tie: bool) -> None:  # noqa: FBT001
    """The batch form equals the reference at 128 bits too, by either tie rule; small weights make ties common."""
    features = [feature for text in texts for feature in text]
    codes = fingerprint_batch(
        hash_words([value for value, _ in features], 128),
        np.array([weight for _, weight in features], dtype=np.float64),
        np.cumsum([0, *map(len, texts)]),
        tie=tie,
    )
    assert codes.shape == (len(texts), 2)
    assert list(map(fingerprint_number, codes)) == [simhash(text, 128, tie=tie) for text in texts]


def test_ties_are_ones_where_a_scheme_says_so() -> None:
    """By the other tie rule a sum of exactly 0 gives a 1 bit, and so does having no feature."""
    assert simhash([(0b10, 1.5), (0b01, 1.5)], bits=2, tie=True) == 0b11
    assert simhash([], bits=4, tie=True) == 0b1111


@given(HASHES)
def test_blocks_put_together_are_the_fingerprint(fingerprint: int) -> None:
    """No bit is lost or moved by cutting."""
    rebuilt = 0
    for block in split_blocks(fingerprint):
        rebuilt = rebuilt << 16 | block
    assert rebuilt == fingerprint


def _batch(texts: list[list[tuple[int, float]]]) -> list[int]:
    features = [feature for text in texts for feature in text]
    codes: list[int] = fingerprint_batch(
        hash_words([value for value, _ in features], 64),
        np.array([weight for _, weight in features], dtype=np.float64),
        np.cumsum([0, *map(len, texts)]),
    )[:, 0].tolist()
    return codes
