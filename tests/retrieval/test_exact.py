"""Every version within ``max_distance`` bits is found, and no other; compared with brute force on every store."""

import random
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.judge.detector import Detector
from storage.interface import Store
from tests.builders import TIME_MS
from tests.contract.conftest import LMDB, MEMORY, ROW_POSTINGS_MAX, Kind, SetClock
from tests.examples import drawn, examples, share_of
from tests.retrieval.populations import (
    BEYOND,
    DISTANCES,
    ENDS,
    POPULATIONS,
    brute_force,
    distances_of,
    fill,
    fingerprint_version,
    looked_up,
    plain,
)

PAIRS = share_of(60)


def distances(kind: Kind, plan: str) -> Sequence[int]:
    """Return all distances that the plan is exact for in memory; elsewhere the greatest at each radius."""
    return DISTANCES[plan] if kind is MEMORY else ENDS[plan]


def pairs(kind: Kind, codes: Sequence[int], chance: random.Random) -> Sequence[int]:
    """Return all fingerprints, or some adjacent pairs where every row is read from a server."""
    if not kind.remote or len(codes) < 2 * PAIRS:
        return codes
    return [code for at in sorted(chance.sample(range(0, len(codes) - 1, 2), PAIRS)) for code in codes[at : at + 2]]


@pytest.mark.parametrize(("name", "plan"), drawn([*product(POPULATIONS, DISTANCES)], 2))
def test_the_look_up_finds_what_brute_force_finds(kind: Kind, store: Store, name: str, plan: str) -> None:
    """The look-up finds all versions within each distance that the plan is exact for, and no others."""
    chance = random.Random("exact")
    codes = pairs(kind, POPULATIONS[name](chance), chance)
    versions = [fingerprint_version(code, number, plan=plan) for number, code in enumerate(codes)]
    fill(store, versions)
    for max_distance in distances(kind, plan):
        assert looked_up(store, versions, plain(max_distance, plan)) == brute_force(codes, max_distance)


@pytest.mark.parametrize(("plan", "radii"), [("4x16", [0] * 4 + [1] * 4), ("16x28", [0] * 4 + [1])])
def test_the_distances_are_those_promised(plan: str, radii: list[int]) -> None:
    """Each plan accepts exactly these distances, at these radii; one more is refused."""
    assert [plain(max_distance, plan).radius for max_distance in DISTANCES[plan]] == radii
    with pytest.raises(ValueError, match="finds every pair within"):
        plain(DISTANCES[plan].stop, plan)


def test_the_populations_have_pairs_at_every_distance() -> None:
    """The test above is not vacuous: many pairs are at each distance, and just beyond the last one."""
    codes = [code for population in POPULATIONS.values() for code in population(random.Random("exact"))]
    found = distances_of(codes)
    for distance in range(BEYOND):
        assert (found == distance).sum() > 100, distance


codes_around_one = some.builds(
    lambda base, masks: [base, *(base ^ sum(1 << bit for bit in mask) for mask in masks)],
    some.integers(0, 2**64 - 1),
    some.lists(some.sets(some.integers(0, 63), max_size=9), min_size=1, max_size=12),
)


@pytest.mark.parametrize("plan", DISTANCES)
@pytest.mark.parametrize("kind", [MEMORY, LMDB], ids=["memory", "lmdb"])
@examples(40)
@given(codes=codes_around_one | some.lists(some.integers(0, 2**64 - 1), min_size=2, max_size=12))
def test_no_choice_of_fingerprints_hides_one(kind: Kind, plan: str, codes: Sequence[int]) -> None:
    """The look-up and brute force agree at each distance, whatever bits an adversary flips."""
    versions = [fingerprint_version(code, number, plan=plan) for number, code in enumerate(codes)]
    with kind.opened(lambda: TIME_MS, ROW_POSTINGS_MAX) as opened:
        fill(opened, versions)
        for max_distance in distances(kind, plan):
            assert looked_up(opened, versions, plain(max_distance, plan)) == brute_force(codes, max_distance)


@pytest.mark.parametrize("plan", DISTANCES)
def test_judging_keeps_what_brute_force_keeps(kind: Kind, clock: SetClock, plan: str) -> None:
    """Judged in batches, an article is flagged if and only if an earlier kept one is within the distance."""
    for max_distance in distances(kind, plan):
        with kind.opened(clock, ROW_POSTINGS_MAX) as store:
            _judge_and_compare(store, plan, max_distance, size=20 if kind.remote else 60)


def _judge_and_compare(store: Store, plan: str, max_distance: int, size: int) -> None:
    chance = random.Random("judged")
    codes = [code for population in POPULATIONS.values() for code in chance.sample(population(chance), size)]
    chance.shuffle(codes)
    kept: list[int] = []
    for number, code in enumerate(codes):
        if all((code ^ codes[other]).bit_count() > max_distance for other in kept):
            kept.append(number)
    detector = Detector(store, plain(max_distance, plan), lambda: TIME_MS)
    versions = [fingerprint_version(code, number, plan=plan) for number, code in enumerate(codes)]
    events = [event for at in range(0, len(versions), 16) for event in detector.judge(versions[at : at + 16])]
    assert [n for n, event in enumerate(events) if event.verdict.outcome == "unique"] == kept
    assert len(kept) < len(codes)
