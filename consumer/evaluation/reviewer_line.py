"""Estimates the reviewers' line: the lowest similarity at which they call two articles copies. Pure functions.

The model: a pair is a copy if its similarity reaches the line, and people make mistakes on both sides, at a different
rate on each. Because people see the texts and not the estimate of the sketch, the line may be soft: a logistic curve
instead of a step. Everything is fitted by maximum likelihood.

The interval contains every line whose log likelihood is within ``LIKELIHOOD_DROP_MAX`` of the best, for any rates and
softness. For a soft line this is more than a 99 % interval. For a sharp line the usual limit (1.92, from the
chi-squared distribution) is wrong, because the likelihood is a staircase and not a parabola. On either side of the true
line, the log likelihood is then a random walk downwards. On each side, the probability that the walk ever rises by
``x`` is at most exp(-x) (Hinkley, Biometrika 57, 1970). So the interval misses a sharp line with a probability of at
most 2 exp(-4), 3.7 %.

A sketch estimates a similarity with an error, and people see the texts. If more similar pairs are more frequent, an
estimate of 0.8 more likely stands for 0.82 than for 0.78. So the line is a little higher in true similarities than in
estimated ones, or lower if more similar pairs are rarer. If a soft line is likely, the interval includes both.
"""

from math import sqrt
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

LIKELIHOOD_DROP_MAX: Final = 4.0
"""How far the log likelihood of a line in the interval may be below the best."""
MISTAKES_MIN: Final = 0.02
"""The minimum rate of mistakes, so that one mistake cannot move the line."""
MISTAKES_MAX: Final = 0.4
SOFTNESSES: Final = (0.01, 0.02, 0.04, 0.08)
_STEP: Final = 0.0025
_ROUNDS: Final = 30
_MARGIN: Final = 0.05
"""How far beyond the reviewed similarities a soft line may be."""
SKETCH_BINS: Final = 256
"""The variance of a sketch's estimate of the similarity s is about s (1 - s) divided by this number."""
_NEIGHBOURHOOD: Final = 0.06
_NEIGHBOURHOOD_MIN: Final = 0.02
"""How far the neighbourhood of the line extends on each side, and the minimum of this distance."""
_NEIGHBOURS_MIN: Final = 20

Values = npt.NDArray[np.float64]


class ReviewerLine(msgspec.Struct, frozen=True):
    """The lowest similarity at which reviewers call two articles copies, with its 95 % interval.

    An end of 0 or 1 is open: the line may be beyond all reviewed pairs. ``right_below`` and ``wrong_above`` are the
    shares of mistakes on each side. ``softness`` is how gradual the line is, 0 for a step.
    """

    value: float
    low: float
    high: float
    right_below: float
    wrong_above: float
    softness: float


class _Shift(NamedTuple):
    """The bounds of how much higher the line is in true similarities than in estimated ones."""

    low: float
    high: float


class _Fit(NamedTuple):
    """Candidate lines of one softness: the log likelihood, range and rates of mistakes of each."""

    likelihood: Values
    lows: Values
    highs: Values
    right_below: Values
    wrong_above: Values
    softness: float


def fit_reviewer_line(similarities: npt.ArrayLike, right: npt.ArrayLike, weights: npt.ArrayLike) -> ReviewerLine:
    """Fit the line. All arguments have one item for each reviewed pair, at least one.

    ``right`` says whether a flag was right: whether the reviewers called the pair copies. The weight of a pair is the
    number of pairs that it represents. Weights do not move the line in estimated similarities. They only show how
    frequent each similarity is, which moves the line in true similarities.
    """
    values, counts = _group_pairs(np.asarray(similarities, np.float64), np.asarray(right, np.bool_))
    fits = [_fit_step(values, counts), *(_fit_soft(values, counts, softness) for softness in SOFTNESSES)]
    most = max(float(fit.likelihood.max()) for fit in fits)
    best = next(fit for fit in fits if fit.likelihood.max() == most)
    at = _middle(np.flatnonzero(best.likelihood == most))
    lows = [
        float(fit.lows[likely].min()) for fit in fits if (likely := fit.likelihood >= most - LIKELIHOOD_DROP_MAX).any()
    ]
    highs = [
        float(fit.highs[likely].max()) for fit in fits if (likely := fit.likelihood >= most - LIKELIHOOD_DROP_MAX).any()
    ]
    low, high = min(lows), max(highs)
    value = min(max(float(best.lows[at] + best.highs[at]) / 2, low), high)
    if any(fit.softness and fit.likelihood.max() >= most - LIKELIHOOD_DROP_MAX for fit in fits):
        shift = _shift(value, np.asarray(similarities, np.float64), np.asarray(weights, np.float64))
        low, high = max(low + min(shift.low, 0.0), 0.0), min(high + max(shift.high, 0.0), 1.0)
    return ReviewerLine(
        value=value,
        low=low,
        high=high,
        right_below=float(best.right_below[at]),
        wrong_above=float(best.wrong_above[at]),
        softness=best.softness,
    )


def _group_pairs(similarities: Values, right: npt.NDArray[np.bool_]) -> tuple[Values, npt.NDArray[np.float64]]:
    """Return the distinct similarities, ascending, and the counts of right and wrong pairs for each: float64[n, 2]."""
    values, places = np.unique(similarities, return_inverse=True)
    counts = np.zeros((len(values), 2))
    np.add.at(counts, (places, (~right).astype(np.intp)), 1.0)
    return values, counts


def _shift(line: float, similarities: Values, weights: Values) -> _Shift:
    """Return the bounds of the shift: Tweedie's formula minus and plus two standard errors.

    The formula is the variance of the estimate times the slope of the log density. The slope is estimated from the mean
    of the similarities around the line. Both bounds are 0 if the pairs around the line are too few, or their range of
    similarities is too narrow.
    """
    variance = line * (1 - line) / SKETCH_BINS
    low, high = (
        max(line - _NEIGHBOURHOOD, float(similarities.min())),
        min(line + _NEIGHBOURHOOD, float(similarities.max())),
    )
    half = (high - low) / 2
    around = (similarities >= low) & (similarities <= high)
    if half < _NEIGHBOURHOOD_MIN or np.count_nonzero(around) < _NEIGHBOURS_MIN:
        return _Shift(0.0, 0.0)
    slope = 3 * float(np.average(similarities[around] - (low + high) / 2, weights=weights[around])) / half**2
    pairs = weights[around].sum() ** 2 / np.square(weights[around]).sum()
    error = sqrt(3 / pairs) / half
    return _Shift(variance * (slope - 2 * error), variance * (slope + 2 * error))


def _middle(places: npt.NDArray[np.intp]) -> int:
    return int(places[len(places) // 2])


def _fit_step(values: Values, counts: Values) -> _Fit:
    """Fit a sharp line before each of the values, and after the last value."""
    below = np.vstack((np.zeros(2), counts.cumsum(axis=0)))
    above = below[-1] - below
    right_below, wrong_above = _share(below[:, 0], below[:, 1]), _share(above[:, 1], above[:, 0])
    likelihood = (
        below[:, 0] * np.log(right_below)
        + below[:, 1] * np.log1p(-right_below)
        + above[:, 1] * np.log(wrong_above)
        + above[:, 0] * np.log1p(-wrong_above)
    )
    ends = np.concatenate(([0.0], values, [1.0]))
    return _Fit(likelihood, ends[:-1], ends[1:], right_below, wrong_above, 0.0)


def _share(mistakes: Values, others: Values) -> Values:
    return np.clip(mistakes / np.maximum(mistakes + others, 1.0), MISTAKES_MIN, MISTAKES_MAX)


def _fit_soft(values: Values, counts: Values, softness: float) -> _Fit:
    """Fit a soft line at every ``_STEP``, with rates of mistakes by expectation maximisation."""
    first, last = max(values[0] - _MARGIN, 0.0), min(values[-1] + _MARGIN, 1.0)
    lines = np.arange(first, last + _STEP, _STEP)
    grid = np.round(values / _STEP) * _STEP
    grid, places = np.unique(grid, return_inverse=True)
    merged = np.zeros((len(grid), 2))
    np.add.at(merged, places, counts)
    right, wrong = merged.T
    copy = 1.0 / (1.0 + np.exp((lines[:, np.newaxis] - grid) / softness))
    right_below = wrong_above = np.full((len(lines), 1), 0.05)
    for _ in range(_ROUNDS):
        mistaken_right = (1.0 - copy) * right_below
        mistaken_wrong = copy * wrong_above
        mistake_if_right = mistaken_right / (mistaken_right + copy * (1.0 - wrong_above))
        mistake_if_wrong = mistaken_wrong / (mistaken_wrong + (1.0 - copy) * (1.0 - right_below))
        below_right, above_wrong = mistake_if_right @ right, mistake_if_wrong @ wrong
        below_wrong, above_right = wrong.sum() - above_wrong, right.sum() - below_right
        right_below = _share(below_right, below_wrong)[:, np.newaxis]
        wrong_above = _share(above_wrong, above_right)[:, np.newaxis]
    chance = copy * (1.0 - wrong_above) + (1.0 - copy) * right_below
    likelihood = np.log(chance) @ right + np.log1p(-chance) @ wrong
    lows = np.where(lines <= first, 0.0, np.maximum(lines - _STEP / 2, 0.0))
    highs = np.where(lines >= last, 1.0, np.minimum(lines + _STEP / 2, 1.0))
    return _Fit(likelihood, lows, highs, right_below[:, 0], wrong_above[:, 0], softness)
