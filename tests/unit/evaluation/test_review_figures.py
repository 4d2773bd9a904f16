"""Precision and recall from reviews, and what another threshold would change."""

import tracemalloc
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest

from benchmarks.quality.reviews import NOW
from consumer.evaluation.review_figures import (
    REVIEWS_MIN,
    SOURCES_MAX,
    ReviewFigures,
    ReviewPoint,
    evaluate_reviews,
    figures,
)
from consumer.evaluation.reviewed_pairs import ReviewedPair
from consumer.evaluation.weighted_rates import WEIGHTS_MAX, DecisionCounts, rates, weighted_pairs
from storage.clock import MS_PER_DAY

ROUNDS: Final = 300


def flag(similarity: float, *, right: bool | None = True, **members: Any) -> ReviewedPair:  # noqa: ANN401  # members of the pair
    """A reviewed flag."""
    return ReviewedPair("flag", similarity, right, **members)


def miss(similarity: float, *, right: bool | None = False, sampled_in: float = 10.0, **members: Any) -> ReviewedPair:  # noqa: ANN401  # members of the pair
    """A reviewed near miss, one of ten."""
    return ReviewedPair("near_miss", similarity, right, sampled_in=sampled_in, **members)


def of(pairs: Sequence[ReviewedPair], precision_min: float = 0.9) -> ReviewFigures:
    """The figures of all."""
    return figures(None, pairs, NOW, precision_min)


def at(found: ReviewFigures, threshold: float) -> ReviewPoint:
    """The point of a threshold."""
    return next(point for point in found.points if point.threshold == threshold)


def test_a_near_miss_stands_for_many() -> None:
    """Precision, recall and what would come are of all pairs, and not of the reviewed ones."""
    found = of([flag(0.9)] * 60 + [flag(0.8, right=False)] * 20 + [miss(0.72, right=True)] * 3 + [miss(0.65)] * 5)
    now = at(found, NOW)
    assert (now.flags, now.precision.value) == (80, 60 / 80)
    assert now.recall is not None
    assert now.recall.value == 60 / 90
    lower = at(found, 0.7)
    assert (lower.flags, lower.precision.value) == (110, 90 / 110)
    assert lower.recall is not None
    assert lower.recall.value == 1
    assert (lower.change.come, lower.change.wrong_come, lower.change.gone) == (30, 0, 0)
    higher = at(found, 0.85)
    assert (higher.change.gone, higher.change.wrong_gone, higher.change.come) == (20, 20, 0)
    assert higher.precision.value == 1
    assert at(found, 0.65).change.wrong_come == 50
    assert found.judged_from == 0.65
    assert (found.counts.flags_right, found.counts.flags_wrong) == (60, 20)
    assert (found.counts.near_misses_right, found.counts.near_misses_wrong) == (3, 5)


def test_the_best_threshold_and_the_one_for_the_wanted_precision() -> None:
    """The best F1, and the most flags whose precision is as wanted; None where no threshold reaches it."""
    pairs = [flag(0.9)] * 60 + [flag(0.8, right=False)] * 20 + [miss(0.72, right=True)] * 3 + [miss(0.65)] * 5
    found = of(pairs, 0.8)
    assert found.reaching is not None
    assert found.reaching.threshold == 0.66
    assert found.best_f1 is not None
    assert 0.66 <= found.best_f1.threshold <= 0.72
    strict = of(pairs, 0.99)
    assert strict.reaching is not None
    assert strict.reaching.threshold == 0.81
    assert of([flag(0.9, right=False), flag(0.9)], 0.99).reaching is None


def test_among_equals_the_configured_threshold_is_best() -> None:
    """Nobody is sent to change what is as good as any."""
    found = of([flag(0.95)] * 20 + [miss(0.62)] * 20)
    assert found.best_f1 is not None
    assert found.best_f1.threshold == NOW


def test_flags_of_a_lower_threshold_do_not_judge_it() -> None:
    """Flags from before the threshold was raised are some of the pairs there; near misses begin higher."""
    found = of([flag(0.9)] * 20 + [flag(0.66)] * 3 + [miss(0.7)] * 20)
    assert found.judged_from == min(point.threshold for point in found.points) == 0.7


def test_near_misses_are_a_group_of_their_own_though_all_were_sent() -> None:
    """They are never above the threshold, and flags never below, however much each stands for."""
    known = weighted_pairs([flag(0.9), miss(0.7, sampled_in=1.0)])
    assert known.weight.tolist() == [1.0, 1.0]
    assert len(set(known.group.tolist())) == 2


def test_with_flags_alone_recall_is_unknown() -> None:
    """So is F1, and no threshold below the configured one is judged."""
    found = of([flag(0.9)] * 60 + [flag(0.8, right=False)] * 20)
    assert not found.recall_known
    assert found.judged_from == min(point.threshold for point in found.points) == NOW
    assert {(point.recall, point.f1) for point in found.points} == {(None, None)}
    assert found.best_f1 is None
    assert found.reaching is not None


def test_near_misses_that_nobody_looked_at_say_nothing() -> None:
    """Recall stays unknown, and they are counted."""
    found = of([flag(0.9)] * 5 + [miss(0.7, right=None)] * 4)
    assert not found.recall_known
    assert found.counts.open == 4


def test_a_configured_threshold_between_two_percents_is_a_point() -> None:
    """And pairs are on the side that they were on, whatever their digits."""
    found = figures(None, [flag(0.7649), miss(0.765, right=True)], 0.765, 0.9)
    now = at(found, 0.765)
    assert (now.flags, now.change.gone, now.change.come) == (1, 0, 0)


def test_pairs_that_were_not_reviewed_weigh_in_where_they_are() -> None:
    """Who looks at the least similar flags first finds more wrong ones; the figures are of all flags."""
    wrong_first = [flag(0.76, right=number % 2 == 0) for number in range(100)]
    few_others = [flag(0.95) for _ in range(20)]
    rest = [flag(0.95, right=None) for _ in range(880)]
    assert at(of(wrong_first + few_others), NOW).precision.value == pytest.approx(70 / 120)
    value = at(of(wrong_first + few_others + rest), NOW).precision.value
    assert value == pytest.approx(950 / 1_000, abs=0.005)


def test_weights_sum_up_to_all_pairs() -> None:
    """However similarities and reviews are spread, also with repeated similarities and several rates."""
    random = np.random.default_rng(8)
    for _ in range(50):
        pairs = [
            ReviewedPair(
                "flag" if random.random() < 0.5 else "near_miss",
                float(np.round(random.uniform(0.6, 0.7), 2)),
                bool(random.integers(2)) if random.random() < 0.3 else None,
                sampled_in=float(random.integers(1, 4)),
            )
            for _ in range(int(random.integers(40, 400)))
        ]
        known = weighted_pairs(pairs)
        for kind, chosen in (("flag", known.flagged), ("near_miss", ~known.flagged)):
            total = sum(pair.sampled_in for pair in pairs if pair.kind == kind)
            assert known.weight[chosen].sum() == pytest.approx(total)
        assert (known.group_weights[known.group] == known.weight).all()


def test_intervals_hold_what_they_promise() -> None:
    """In at least nine of ten samples they have the true precision and recall; 95 % are aimed at."""
    random = np.random.default_rng(21)
    expected = {"right": 150.0, "wrong": 9.0, "missed": 30.0, "others": 60.0}
    precision, recall, held = 150 / 159, 150 / (150 + 10 * 30 / 10), [0, 0]
    for _ in range(ROUNDS):
        right, wrong = random.poisson(expected["right"]), random.poisson(expected["wrong"])
        missed, others = random.poisson(expected["missed"] / 10), random.poisson(expected["others"] / 10)
        counts = DecisionCounts(*(np.array([row], float) for row in ([right, 0], [wrong, 0], [0, missed], [0, others])))
        (found,) = rates(counts, np.array([1.0, 10.0]))
        held[0] += found.precision.low <= precision <= found.precision.high
        held[1] += found.recall.low <= recall <= found.recall.high
    assert min(held) >= 0.9 * ROUNDS, held


def test_no_miss_among_few_samples_does_not_say_that_nothing_was_missed() -> None:
    """Each of them stands for a hundred; with the same pairs unweighted the interval would be much narrower."""
    none_missed = [np.array([row], float) for row in ([200, 0], [2, 0], [0, 0], [0, 10])]
    (found,) = rates(DecisionCounts(*none_missed), np.array([1.0, 100.0]))
    assert (found.recall.value, found.recall.high) == (1.0, 1.0)
    assert found.recall.low < 0.65
    (found,) = rates(DecisionCounts(*none_missed), np.array([1.0, 1.0]))
    assert found.recall.low > 0.98


def test_the_same_reviews_give_the_same_figures() -> None:
    """Intervals are drawn, but always with the same numbers."""
    pairs = [flag(0.9), flag(0.8, right=False), miss(0.7)] * 9
    assert of(pairs) == of(pairs)


@pytest.mark.parametrize(
    ("members", "days"),
    [
        ([{"arrived_ms": 0, "at_ms": 0}, {"arrived_ms": 4 * MS_PER_DAY, "at_ms": 1}], 4),
        ([{"at_ms": 0}, {"at_ms": 3 * MS_PER_DAY}], 3),
        ([{"arrived_ms": 0}, {"at_ms": 3 * MS_PER_DAY}], None),
        ([{}, {}], None),
        ([{"arrived_ms": 0}, {"arrived_ms": MS_PER_DAY // 2}], None),
    ],
)
def test_over_how_many_days_the_pairs_came(members: list[dict[str, Any]], days: float | None) -> None:
    """By their arrival; else by their reviews; unknown where some pairs say neither, or within a day."""
    assert of([flag(0.9, **own) for own in members]).days == days


def test_sources_with_enough_reviews_have_figures_of_their_own() -> None:
    """By the later article's source, with its own threshold; the others are counted."""
    pairs = [flag(0.9, source="wire")] * REVIEWS_MIN + [flag(0.9, source="blog")] * (REVIEWS_MIN - 1)
    pairs += [flag(0.95, source="")] * REVIEWS_MIN
    found = evaluate_reviews(pairs, lambda source: 0.8 if source == "wire" else NOW, 0.9)
    assert [(own.source, own.now) for own in found.sources] == [("wire", 0.8)]
    assert (found.overall.source, found.overall.now, found.sources_left_out) == (None, NOW, 1)
    assert found.sources[0].counts.flags_right == REVIEWS_MIN
    one = evaluate_reviews([flag(0.9, source="wire")] * REVIEWS_MIN, lambda _: NOW, 0.9)
    assert (one.sources, one.sources_left_out) == ((), 0)


def test_no_more_sources_than_the_limit_have_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with the most reviews do, and the others are counted. Articles without a source take no place."""
    monkeypatch.setattr("consumer.evaluation.review_figures.SOURCES_MAX", 2)
    assert SOURCES_MAX > 2
    pairs = [
        flag(0.9, source=source)
        for source, more in (("a", 0), ("b", 2), ("c", 1), ("", 3))
        for _ in range(REVIEWS_MIN + more)
    ]
    found = evaluate_reviews(pairs, lambda _: NOW, 0.9)
    assert [own.source for own in found.sources] == ["b", "c"]
    assert found.sources_left_out == 1


def test_pairs_that_are_alike_can_be_counted_together() -> None:
    """One of them stands for the others: what a million rows come down to has the same figures."""
    kinds = [
        (flag(0.9, source="a", arrived_ms=5 * MS_PER_DAY), 60),
        (flag(0.8, right=False, source="a", arrived_ms=0), 20),
        (flag(0.85, right=None, source="b", arrived_ms=MS_PER_DAY), 30),
        (miss(0.72, right=True, source="b", arrived_ms=MS_PER_DAY), 9),
        (miss(0.65, source="a", arrived_ms=2 * MS_PER_DAY), 25),
    ]
    one_by_one = [pair for pair, times in kinds for _ in range(times)]
    together = [pair._replace(pairs=times) for pair, times in kinds]
    assert evaluate_reviews(together, lambda _: NOW, 0.9) == evaluate_reviews(one_by_one, lambda _: NOW, 0.9)
    # Those that came between the first and the last add no days.
    spread = [together[0]._replace(last_ms=9 * MS_PER_DAY), *together[1:]]
    assert of(spread).days == 9


def test_weights_that_are_very_many_become_few() -> None:
    """Nobody can make an evaluation endless by sampling each pair at another rate; sums stay what they were."""
    chance = np.random.default_rng(5)
    pairs = [miss(0.7, right=n % 3 == 0, sampled_in=float(chance.uniform(1, 1e12))) for n in range(2_000)]
    known = weighted_pairs(pairs)
    assert len(known.group_weights) <= WEIGHTS_MAX
    assert known.weight.sum() == pytest.approx(sum(pair.sampled_in for pair in pairs))
    rates_found = at(of([*pairs, flag(0.9)]), 0.7).precision
    true = sum(pair.sampled_in for pair in pairs if pair.right) / sum(pair.sampled_in for pair in pairs)
    assert rates_found.value == pytest.approx(true, abs=0.02)


def test_a_million_pairs_need_no_million_rows_for_each_threshold() -> None:
    """The memory for it is that of the pairs."""
    pairs = [flag(0.75 + n / 1_000, right=n > 40, pairs=3_600) for n in range(250)]
    pairs += [miss(0.6 + n / 1_000, right=n > 110, pairs=600) for n in range(150)]
    tracemalloc.start()
    try:
        found = of(pairs)
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (
        found.counts.flags_right
        + found.counts.flags_wrong
        + found.counts.near_misses_right
        + found.counts.near_misses_wrong
        == 990_000
    )
    assert most_bytes < 250 << 20
