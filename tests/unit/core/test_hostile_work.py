"""No text takes the compiled engine much more work than an ordinary one of its length."""

import pytest

from benchmarks.hostile import TEXTS, Bench, Cost, record

CHARS = 50_000
RATIO_MAX = 20
"""Twice the bound that benchmarks.hostile is held to: other tests use the same processor."""
TRIES = 5


@pytest.fixture(scope="module")
def bench() -> Bench:
    """With the engine's tables built."""
    return Bench("compiled")


@pytest.fixture(scope="module")
def ordinary(bench: Bench) -> Cost:
    """What ordinary text costs."""
    return bench.ordinary(CHARS, "text")


@pytest.mark.parametrize("name", TEXTS)
def test_a_hostile_text_costs_little_more_than_an_ordinary_one(bench: Bench, ordinary: Cost, name: str) -> None:
    """In processor time, decoding included; the least of some tries."""
    data, form = record(name, CHARS)
    ratio = 0.0
    for _ in range(TRIES):
        ratio = bench.cost(data, form).ratio(ordinary)
        if ratio < RATIO_MAX:
            return
    pytest.fail(f"{ratio:.1f} times the work of ordinary text")
