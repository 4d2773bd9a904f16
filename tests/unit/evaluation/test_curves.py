"""Precision, recall, F1 and their intervals against definitions written out pair by pair."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.evaluation.curves import (
    DISTANCES,
    NEVER_BITS,
    NEVER_SIMILAR,
    NORMAL_QUANTILE,
    SIMILARITIES,
    Curve,
    Measures,
    Setting,
    curve,
    evaluation_of,
    wilson,
)
from consumer.evaluation.recommendations import at_precision, best_f1

Labelled = list[tuple[float, bool]]

distances = st.lists(st.tuples(st.sampled_from([*DISTANCES, 20.0, float(NEVER_BITS)]), st.booleans()), max_size=40)
similarities = st.lists(
    st.tuples(st.sampled_from([*SIMILARITIES, 0.1, 1.0, NEVER_SIMILAR]) | st.floats(0, 1), st.booleans()), max_size=40
)
counts = st.integers(0, 3000)


def curve_of(setting: Setting, labelled: Labelled) -> Curve:
    """Return the curve of labelled values, over the thresholds of the command."""
    thresholds = SIMILARITIES if setting == "similarity_min" else DISTANCES
    values = np.array([value for value, _ in labelled], np.float64)
    return curve(setting, thresholds, values, np.array([label for _, label in labelled], bool))


def by_hand(setting: Setting, labelled: Labelled, threshold: float) -> tuple[int, int, float | None, float | None]:
    """Return right, wrong, precision and recall of one threshold, pair by pair."""
    similar = setting == "similarity_min"
    flagged = [label for value, label in labelled if (value >= threshold if similar else value <= threshold)]
    right = flagged.count(True)
    duplicates = [label for _, label in labelled].count(True)
    precision = right / len(flagged) if flagged else None
    return right, len(flagged) - right, precision, right / duplicates if duplicates else None


@given(distances)
def test_distances_against_brute_force(labelled: Labelled) -> None:
    """At every distance the curve equals a count of all pairs."""
    for point in curve_of("max_distance", labelled).points:
        found = (point.right, point.wrong, point.precision.value, point.recall.value)
        assert found == by_hand("max_distance", labelled, point.threshold)


@given(similarities)
def test_similarities_against_brute_force(labelled: Labelled) -> None:
    """At every similarity the curve equals a count of all pairs."""
    for point in curve_of("similarity_min", labelled).points:
        found = (point.right, point.wrong, point.precision.value, point.recall.value)
        assert found == by_hand("similarity_min", labelled, point.threshold)


@given(distances, similarities)
def test_recall_is_monotone(by_distance: Labelled, by_similarity: Labelled) -> None:
    """More bits never lose a duplicate, and more similarity never finds one more."""
    rising = [point.right for point in curve_of("reach", by_distance).points]
    falling = [point.right for point in curve_of("similarity_min", by_similarity).points]
    assert rising == sorted(rising)
    assert falling == sorted(falling, reverse=True)


@given(distances)
def test_f1_is_the_harmonic_mean(labelled: Labelled) -> None:
    """F1 is the harmonic mean of precision and recall where both are positive, and 0 where one is 0."""
    for point in curve_of("max_distance", labelled).points:
        precision, recall = point.precision.value, point.recall.value
        if precision and recall:
            assert point.f1 == pytest.approx(2 / (1 / precision + 1 / recall))
        elif precision is None and recall is None:
            assert point.f1 is None
        else:
            assert point.f1 == 0


@given(counts, counts)
def test_intervals_end_where_the_score_test_does(hits: int, more: int) -> None:
    """At each end p of an interval the share is 1.96 standard errors of p away, unless p is 0 or 1."""
    trials = hits + more
    interval = wilson(np.array([hits]), np.array([trials]))
    low, high = float(interval.low[0]), float(interval.high[0])
    if trials == 0:
        assert (low, high) == (0, 1)
        return
    share = hits / trials
    assert 0 <= low <= share <= high <= 1
    for end in {low, high} - {0.0, 1.0}:
        assert abs(share - end) == pytest.approx(NORMAL_QUANTILE * sqrt(end * (1 - end) / trials), rel=1e-6)
    assert (low == 0) == (hits == 0)
    assert (high == 1) == (hits == trials)


def test_intervals_without_hits_begin_at_nought() -> None:
    """Ends of 0 and 1 are exact for any number of trials."""
    trials = np.arange(1, 3000)
    assert not wilson(np.zeros_like(trials), trials).low.any()
    assert (wilson(trials, trials).high == 1).all()


def test_intervals_as_published() -> None:
    """81 of 263 has the interval 0.2553 to 0.3662 (Newcombe, Statistics in Medicine 17, 1998, table I)."""
    interval = wilson(np.array([81]), np.array([263]))
    assert (round(float(interval.low[0]), 4), round(float(interval.high[0]), 4)) == (0.2553, 0.3662)


def test_the_best_f1_of_few_pairs_by_hand() -> None:
    """Duplicates at 1, 2 and 6 bits, a unique pair at 4: at 2 bits F1 is 2·2/(2+3), at 6 it is 2·3/(4+3)."""
    points = curve_of("max_distance", [(1, True), (2, True), (4, False), (6, True)])
    best = best_f1(points, current=0)
    assert best is not None
    assert (best.point.threshold, best.point.f1) == (6, 6 / 7)
    assert best.ties == tuple(float(bits) for bits in range(6, 17))


def test_equal_f1_goes_to_fewer_wrong_flags() -> None:
    """Among thresholds with the same F1, those with fewer flagged unique pairs are taken."""
    never = (float(NEVER_BITS), True)
    points = curve_of("reach", [(0.0, True), (5.0, True), never, never, *[(5.0, False)] * 4])
    assert {point.f1 for point in points.points} == {0.4}
    best = best_f1(points, current=9)
    assert best is not None
    assert best.ties == (0, 1, 2, 3, 4)


@pytest.mark.parametrize(("setting", "taken"), [("reach", 3.0), ("max_distance", 3.0), ("similarity_min", 0.68)])
def test_of_equals_the_cheapest_or_the_middle(setting: Setting, taken: float) -> None:
    """Among equally good thresholds the fewest bits are taken, or the middle similarity."""
    values = (0.75, 0.6) if setting == "similarity_min" else (3.0, 9.0)
    best = best_f1(curve_of(setting, [(values[0], True), (values[1], False)]), current=-1)
    assert best is not None
    assert best.point.threshold == taken


@pytest.mark.parametrize(("now", "taken"), [(5.0, 5.0), (9.0, 3.0)])
def test_what_is_configured_stays_where_nothing_is_better(now: float, taken: float) -> None:
    """The configured setting is kept unless another one is better."""
    best = best_f1(curve_of("reach", [(3.0, True), (9.0, False)]), now)
    assert best is not None
    assert best.point.threshold == taken


def test_the_precision_asked_for_at_the_greatest_recall() -> None:
    """The threshold of that precision that finds the most is taken; precision need not be monotone."""
    labelled = [(0.0, True), (1.0, False), *[(2.0, True)] * 3, (8.0, False)]
    points = curve_of("max_distance", labelled)
    assert [point.precision.value for point in points.points[:3]] == [1.0, 0.5, 0.8]
    for asked, taken in ((0.8, 2.0), (0.81, 0.0), (1.0, 0.0), (0.0, 2.0)):
        choice = at_precision(points, -1, asked)
        assert choice is not None
        assert choice.point.threshold == taken


def test_a_precision_that_nothing_reaches() -> None:
    """Where no threshold is that precise, or none finds a duplicate, none is returned."""
    assert at_precision(curve_of("max_distance", [(0.0, True), (0.0, False)]), 0, 0.9) is None
    assert at_precision(curve_of("max_distance", [(0.0, False)]), 0, 0.0) is None
    assert best_f1(curve_of("max_distance", [(float(NEVER_BITS), True)]), 0) is None


def test_found_counts_and_the_judge_by_hand() -> None:
    """Every pair is counted once: by lanes, label and verdict."""
    rows = [  # duplicate, by blocks, by bands, flagged
        (True, True, True, True),
        (True, True, False, True),
        (True, False, True, False),
        (True, False, False, False),
        (False, True, False, True),
        (False, False, True, False),
        (False, False, False, False),
        (False, False, False, False),
    ]
    duplicate, by_blocks, by_bands, flagged = (np.array(column) for column in zip(*rows, strict=True))
    bits = np.zeros(len(rows), np.int64)
    found = evaluation_of(Measures(duplicate, bits, bits.astype(float), bits, by_blocks, by_bands, flagged))
    counted = {row.found_by: (row.duplicates_flagged, row.duplicates_passed, row.unique_flagged, row.unique_passed)
               for row in found.found}  # fmt: skip
    assert counted == {
        "both lanes": (1, 0, 0, 0),
        "blocks": (1, 0, 1, 0),
        "bands": (0, 1, 0, 1),
        "neither": (0, 1, 0, 2),
    }
    judge = found.judge
    assert (found.duplicates, found.unique) == (4, 4)
    assert (judge.right, judge.wrong, judge.precision.value, judge.recall.value) == (2, 1, 2 / 3, 0.5)
    assert judge.f1 == pytest.approx(4 / 7)
