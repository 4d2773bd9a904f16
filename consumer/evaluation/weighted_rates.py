"""Precision and recall with intervals, from counts of which each stands for many. Pure.

Each count (of the right ones above a threshold, say, of one group of pairs with the same weight) is one of rare
events, so what it might have been has a gamma distribution (with Jeffreys' prior, shape count + 1/2). Drawn from those,
precision and recall have distributions, and their quantiles are the ends of the intervals. With one group that is
Jeffreys' interval for a share. A group without a single miss still has the uncertainty of its weight, which intervals
for a share of unweighted counts would hide: ten reviewed near misses, none of them a copy and each one of a hundred,
do not say that nothing was missed.

The draws have a fixed seed: the same reviews give the same figures.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.evaluation.curves import Rate

DRAWS: Final = 4_000
_SEED: Final = 60
_QUANTILES: Final = (0.025, 0.975)
_PRIOR: Final = 0.5

Counts = npt.NDArray[np.float64]


class SidedCounts(NamedTuple):
    """Reviewed pairs by threshold and group, each float64[thresholds, groups]: those a threshold flags, and others."""

    right_above: Counts
    wrong_above: Counts
    right_below: Counts
    wrong_below: Counts


class Rates(NamedTuple):
    """Precision and recall of one threshold."""

    precision: Rate
    recall: Rate


def rates(counts: SidedCounts, weights: Counts) -> list[Rates]:
    """Return precision and recall of each threshold; a pair of a group stands for as many as ``weights`` says."""
    random = np.random.default_rng(_SEED)
    above = counts.right_above + counts.wrong_above > 0
    below = counts.right_below + counts.wrong_below > 0
    found = []
    for number in range(len(counts.right_above)):
        right, wrong, missed = (
            _Sum.of(of_group[number], there[number], weights, random)
            for of_group, there in (
                (counts.right_above, above),
                (counts.wrong_above, above),
                (counts.right_below, below),
            )
        )
        found.append(Rates(_rate(right, wrong), _rate(right, missed)))
    return found


class _Sum(NamedTuple):
    """A weighted count, and draws of what it might have been."""

    value: float
    drawn: Counts

    @classmethod
    def of(cls, counts: Counts, there: npt.NDArray[np.bool_], weights: Counts, random: np.random.Generator) -> "_Sum":
        """Sum up the groups that have any pair on this side of the threshold; others have none by nature."""
        if not there.any():
            return cls(0.0, np.zeros(DRAWS))
        shapes = counts[there] + _PRIOR / np.count_nonzero(there)
        return cls(float(counts @ weights), random.standard_gamma(shapes, (DRAWS, len(shapes))) @ weights[there])


def _rate(hits: _Sum, others: _Sum) -> Rate:
    total = hits.value + others.value
    if not total:
        return Rate(None, 0.0, 1.0)
    low, high = np.quantile(hits.drawn / (hits.drawn + others.drawn), _QUANTILES).tolist()
    value = hits.value / total
    # What was never seen cannot be excluded, but neither can its absence: the interval has the share itself.
    return Rate(value, min(low, value), max(high, value))
