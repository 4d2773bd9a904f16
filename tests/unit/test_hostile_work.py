"""No record takes much more work than ordinary text of its length: every stage against what was made to stall it.

What is refused for its work is tested by counts where the limits are (decoding, HTML, Avro, Protobuf). This is the net
beneath: whatever else takes time that grows with the square of a length is far above the ratio at this one.
"""

import pytest

from benchmarks.hostile import FORMS, Bench, Cost, cases, record
from consumer.model.article import BodyForm
from tests.examples import drawn

CHARS = 50_000
RATIO_MAX = 20
"""Twice the bound that benchmarks.hostile is held to: other tests use the same processor."""
TRIES = 5


@pytest.fixture(scope="module")
def bench() -> Bench:
    """With the dictionary, which takes a moment."""
    return Bench("python")


@pytest.fixture(scope="module")
def ordinary(bench: Bench) -> dict[BodyForm, Cost]:
    """What text and markup cost; a slower figure, from beside other tests, would only let more through."""
    return {form: bench.ordinary(CHARS, form) for form in ("text", *FORMS.values())}


@pytest.mark.parametrize("name", drawn(cases(), 12))
def test_a_hostile_record_costs_little_more_than_an_ordinary_one(
    bench: Bench, ordinary: dict[BodyForm, Cost], name: str
) -> None:
    """In processor time, from its bytes to its fingerprint."""
    data, form = record(name, CHARS)
    for _ in range(TRIES):
        # The least that it takes is what the code takes; all else is of what runs beside it.
        ratio = bench.cost(data, form).ratio(ordinary[form])
        if ratio < RATIO_MAX:
            return
    pytest.fail(f"{ratio:.1f} times the work of ordinary text")
