"""Weighted hashes have the same fingerprint in the compiled engine as in the Python one."""

import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dupwatch_core as core
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.fingerprint.summing import fingerprint_batch, fingerprint_number, hash_words
from tests.examples import examples

PUBLISHED: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "fingerprint" / "published.json").read_text(encoding="utf-8")
)
SCHEMES = {"jenkins": "jenkins-64/1", "fnv-1a 64": "jieba-tfidf/1"}
UNIT = 2.0**-20
SUM_MAX = 2.0**32
WEIGHTS = (
    some.floats(0, 1e6)
    | some.floats(-1e6, 1e6)
    # Halves of a unit, which are rounded to even, and small multiples, which make ties.
    | some.integers(-8, 8).map(lambda halves: halves * UNIT / 2)
    | some.integers(1, 3).map(float)
)
FEW_BITS = some.sampled_from([0, 1, 2, 3, 2**64 - 1, 2**127, 2**128 - 1])


def in_python(features: list[tuple[int, float]], bits: int, *, tie: bool) -> int:
    """The fingerprint of one text."""
    codes = fingerprint_batch(
        hash_words([value for value, _ in features], bits),
        np.array([weight for _, weight in features], dtype=np.float64),
        np.array([0, len(features)]),
        tie=tie,
    )
    return fingerprint_number(codes[0])


def outcome(engine: Callable[..., int]) -> int | str:
    """The fingerprint, or why there is none."""
    try:
        return engine(64, tie=False)
    except ValueError as error:
        return str(error)


@examples(1_000)
@given(
    some.lists(some.tuples(FEW_BITS | some.integers(0, 2**128 - 1), WEIGHTS), max_size=40),
    some.sampled_from([64, 128]),
    some.booleans(),
)
def test_fingerprints_are_pythons(features: list[tuple[int, float]], bits: int, tie: bool) -> None:  # noqa: FBT001
    """Of both widths, by either tie rule, with weights of either sign, between two units, and with ties."""
    narrow = [(value % 2**bits, weight) for value, weight in features]
    assert core.fingerprint_of(narrow, bits, tie=tie) == in_python(narrow, bits, tie=tie)


@examples(500)
@given(some.lists(some.floats(-SUM_MAX, SUM_MAX) | some.sampled_from([1.0, 0.3, 1e300]), max_size=4), some.randoms())
def test_both_refuse_the_same_weights(weights: list[float], rng: random.Random) -> None:
    """Both refuse what adds up to 2**32, or neither does; filled up to just there, and to one unit less."""
    rest = SUM_MAX - sum(map(abs, weights))
    for filled in (weights, [*weights, rest], [*weights, rest - UNIT], [*weights, rest - UNIT / 2]):
        features = [(rng.getrandbits(64), weight) for weight in filled]
        assert outcome(partial(core.fingerprint_of, features)) == outcome(partial(in_python, features))


@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize("keywords", [0, 1, 255, 256, 80_000])
def test_any_number_of_keywords(keywords: int, bits: int) -> None:
    """From none to as many as a text of the greatest length has."""
    rng = random.Random(keywords)
    features = [(rng.getrandbits(bits), rng.randint(1, 20) * rng.uniform(0.5, 14)) for _ in range(keywords)]
    assert core.fingerprint_of(features, bits, tie=False) == in_python(features, bits, tie=False)


@pytest.mark.parametrize("fact", PUBLISHED["weighted"], ids=lambda fact: fact["hash"])
def test_weighted_keywords(fact: dict[str, Any]) -> None:
    """Published keywords with their weights have the published fingerprints."""
    features = [(core.hash_word(SCHEMES[fact["hash"]], word), weight) for word, weight in fact["keywords"]]
    assert f"{core.fingerprint_of(features, 64, tie=False):016x}" == fact["fingerprint"]
