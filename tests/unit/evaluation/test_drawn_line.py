"""Where reviewers draw the line: found within its interval, whatever they are like."""

import secrets
from collections.abc import Sequence
from typing import Final

import numpy as np
import pytest

from benchmarks.quality.reviews import LINES, NOW
from consumer.evaluation.review_figures import evaluate_reviews
from consumer.evaluation.reviewed_pairs import reviewed_pairs
from consumer.evaluation.reviewer_line import ReviewerLine, fit_reviewer_line
from tests.examples import drawn
from tests.unit.evaluation.reviewing import lines_of, reviews_by

SEEDS: Final = 20
FOUND_MIN: Final = 19
MORE_SEEDS: Final = 200


def line_of(similarities: Sequence[float], right: Sequence[bool]) -> ReviewerLine:
    """The line in pairs that stand for themselves."""
    return fit_reviewer_line(similarities, right, [1.0] * len(similarities))


def line_in_reviews(hidden: float, seed: int) -> ReviewerLine:
    """What ``evaluate --reviews`` makes of a file of reviews by people with this line."""
    pairs = reviewed_pairs(lines_of(reviews_by(hidden, seed))).pairs
    return evaluate_reviews(pairs, lambda _: NOW, 0.99).overall.line


@pytest.mark.parametrize("hidden", drawn(LINES, 3))
def test_hidden_lines_are_found(hidden: float) -> None:
    """In 19 of 20 reviews by seeds that nobody has seen before the hidden line is within its interval.

    The intervals have it in more than 99 of 100 (decision 60), so fewer than one test in sixty has two without by
    chance. Then 200 further seeds decide, of which 95 % have to have it. By chance both fail less than once in a
    million.
    """

    def without(count: int) -> list[tuple[int, ReviewerLine]]:
        seeds = [secrets.randbits(64) for _ in range(count)]
        lines = [(seed, line_in_reviews(hidden, seed)) for seed in seeds]
        return [(seed, line) for seed, line in lines if not line.low <= hidden <= line.high]

    first = without(SEEDS)
    if len(first) > SEEDS - FOUND_MIN:
        more = without(MORE_SEEDS)
        assert len(more) <= MORE_SEEDS * (SEEDS - FOUND_MIN) / SEEDS, (hidden, first, more)


def test_intervals_are_narrow_enough_to_be_of_use() -> None:
    """An interval that has everything would always be right."""
    for seed, hidden in enumerate(LINES):
        line = line_in_reviews(hidden, seed)
        assert 0 < line.low < line.value < line.high < 1
        assert line.high - line.low < 0.06
        assert abs(line.value - hidden) < 0.03


def test_people_without_mistakes_leave_the_gap() -> None:
    """The line is somewhere between the most similar wrong pair and the least similar right one."""
    similarities = [0.6, 0.65, 0.7, 0.71, 0.72, 0.73, 0.8, 0.85, 0.9, 0.92] * 5
    line = line_of(similarities, [similarity > 0.75 for similarity in similarities])
    assert line.low <= 0.73
    assert line.high >= 0.8
    assert 0.73 < line.value <= 0.8
    assert line.softness == 0


def test_one_mistake_beside_the_line_does_not_move_it() -> None:
    """The interval has both sides of it, also where nobody was ever mistaken but there."""
    similarities = np.round(np.linspace(0.6, 0.95, 351), 4)
    right = similarities >= 0.7495
    right[np.searchsorted(similarities, 0.7495)] = False
    line = line_of(similarities.tolist(), right.tolist())
    assert line.low <= 0.7495
    assert line.high >= 0.7505
    assert line.high - line.low < 0.02


def test_rates_of_mistakes_and_softness_are_told() -> None:
    """Those above the line and those below it, and whether the line is a step."""
    random = np.random.default_rng(3)
    similarities = random.uniform(0.6, 0.95, 4_000)
    mistaken = random.random(4_000) < np.where(similarities >= 0.75, 0.2, 0.05)
    sharp = line_of(similarities.tolist(), ((similarities >= 0.75) ^ mistaken).tolist())
    assert sharp.wrong_above == pytest.approx(0.2, abs=0.02)
    assert sharp.right_below == pytest.approx(0.05, abs=0.02)
    assert sharp.softness <= 0.01
    seen = similarities + random.normal(0, 0.07, 4_000)
    soft = line_of(similarities.tolist(), (seen >= 0.75).tolist())
    assert soft.softness >= 0.02
    assert soft.low <= 0.75 <= soft.high


@pytest.mark.parametrize("all_right", [True, False])
def test_an_end_beyond_everything_is_open(*, all_right: bool) -> None:
    """People who call all pairs copies, or none, draw their line elsewhere."""
    similarities = np.linspace(0.75, 0.95, 100).tolist()
    line = line_of(similarities, [all_right] * 100)
    assert (line.low == 0.0) == all_right
    assert (line.high == 1.0) != all_right
    assert (line.high < 0.8) if all_right else (line.low > 0.9)


def test_a_single_review_says_nearly_nothing() -> None:
    """There is a line all the same, anywhere."""
    line = line_of([0.8], [True])
    assert (line.low, line.high) == (0.0, 1.0)


def test_the_error_of_the_sketch_widens_the_interval_to_where_pairs_become_more() -> None:
    """In true similarities the line is higher where pairs become more frequent with the similarity, or else lower."""
    random = np.random.default_rng(5)
    similarities = np.repeat(np.linspace(0.6, 0.9, 301), 20)
    right = (similarities + random.normal(0, 0.027, len(similarities)) >= 0.75).tolist()
    rising, even, falling = (
        fit_reviewer_line(similarities.tolist(), right, np.exp(slope * similarities).tolist())
        for slope in (15.0, 0.0, -15.0)
    )
    shift = 15 * 0.75 * 0.25 / 256
    assert rising.high - even.high == pytest.approx(shift, rel=0.3)
    assert even.low - falling.low == pytest.approx(shift, rel=0.3)
    assert rising.low > even.low
    assert falling.high < even.high


def test_a_sharp_line_is_no_wider_for_the_error_of_the_sketch() -> None:
    """People who go by the estimate, as a rule of another program would, have their line where it is."""
    similarities = np.repeat(np.linspace(0.6, 0.9, 301), 2).tolist()
    right = [similarity >= 0.75 for similarity in similarities]
    lines = {
        fit_reviewer_line(similarities, right, np.exp(slope * np.array(similarities)).tolist()) for slope in (0.0, 15.0)
    }
    assert len(lines) == 1
