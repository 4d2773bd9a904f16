"""How many reviewed pairs each threshold flags, and precision and recall with intervals from these counts. Pure.

A near miss is one of many, and people need not have looked at all pairs. Where they have not, they may have begun with
the least certain ones, so a reviewed pair stands for those of about its own similarity, and not for any.

Pairs are counted by where they lie among the thresholds, so that a million pairs need no row for each threshold.

Each count (of the right ones above a threshold, say, of one group of pairs with the same weight) is one of rare
events, so what it might have been has a gamma distribution (with Jeffreys' prior, shape count + 1/2). Drawn from those,
precision and recall have distributions, and their quantiles are the ends of the intervals. With one group that is
Jeffreys' interval for a share. A group without a single miss still has the uncertainty of its weight, which intervals
for a share of unweighted counts would hide: ten reviewed near misses, none of them a copy and each one of a hundred,
do not say that nothing was missed.

The draws have a fixed seed: the same reviews give the same figures.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.evaluation.curves import Rate
from consumer.evaluation.reviewed_pairs import DIGITS, KINDS, Kind, ReviewedPair

STRATUM_PAIRS_MIN: Final = 20
"""Reviewed pairs in a stratum, about."""
STRATA_MAX: Final = 8
WEIGHTS_MAX: Final = 64
"""Different weights of one kind that are told apart; of more, those that are about the same become their mean."""

Values = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
DRAWS: Final = 4_000
_SEED: Final = 60
_QUANTILES: Final = (0.025, 0.975)
_PRIOR: Final = 0.5


class WeightedPairs(NamedTuple):
    """The reviewed ones of some pairs, as arrays of n; pairs of the same kind and weight have the same ``group``."""

    similarity: Values
    right: Flags
    flagged: Flags
    weight: Values
    group: npt.NDArray[np.intp]

    @property
    def group_weights(self) -> Values:
        """The weight of each group."""
        weights = np.zeros(int(self.group.max()) + 1)
        weights[self.group] = self.weight
        return weights


def weighted(pairs: Sequence[ReviewedPair]) -> WeightedPairs:
    """Weigh the reviewed pairs; there is at least one."""
    parts = [_of_kind(kind, [pair for pair in pairs if pair.kind == kind]) for kind in KINDS]
    similarity, right, flagged, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    # Weights are above 0.
    _, group = np.unique(np.where(flagged, -weight, weight), return_inverse=True)
    return WeightedPairs(similarity, right, flagged, weight, group.reshape(-1))


def _of_kind(kind: Kind, pairs: Sequence[ReviewedPair]) -> tuple[Values, Flags, Flags, Values]:
    times = np.array([pair.pairs for pair in pairs], np.intp)
    similarity = np.repeat(np.array([pair.similarity for pair in pairs], np.float64), times)
    sampled_in = np.repeat(np.array([pair.sampled_in for pair in pairs], np.float64), times)
    reviewed = np.repeat(np.array([pair.right is not None for pair in pairs], np.bool_), times)
    right = np.repeat(np.array([bool(pair.right) for pair in pairs], np.bool_), times)
    weight = (sampled_in * _stood_for(similarity, sampled_in, reviewed))[reviewed]
    return similarity[reviewed], right[reviewed], np.full(len(weight), kind == "flag"), _few(weight)


def _few(weight: Values) -> Values:
    """Return the weights; where there are very many different ones, those of a part of them are their mean."""
    different = np.unique(weight)
    if len(different) <= WEIGHTS_MAX:
        return weight
    edges = np.unique(np.quantile(different, np.arange(1, WEIGHTS_MAX) / WEIGHTS_MAX))
    part = np.searchsorted(edges, weight, side="right")
    counts = np.bincount(part)
    return np.asarray((np.bincount(part, weight) / np.maximum(counts, 1))[part], np.float64)


def _stood_for(similarity: Values, sampled_in: Values, reviewed: Flags) -> Values:
    """Return how many pairs of its stratum a reviewed pair stands for, itself included."""
    if reviewed.all() or not reviewed.any():
        return np.ones(len(similarity))
    known = similarity[reviewed]
    strata = min(max(len(known) // STRATUM_PAIRS_MIN, 1), STRATA_MAX)
    edges = np.unique(np.quantile(known, np.arange(1, strata) / strata, method="higher"))
    # The first stratum begins below the least similarity that was reviewed, and has that pair.
    stratum = np.searchsorted(edges[edges > known.min()], similarity, side="right")
    all_pairs = np.bincount(stratum, sampled_in)
    reviewed_pairs = np.bincount(stratum, sampled_in * reviewed, minlength=len(all_pairs))
    return np.asarray((all_pairs / reviewed_pairs)[stratum], np.float64)


class SplitCounts(NamedTuple):
    """Pairs by threshold and group, each float64[thresholds, groups]: those a threshold flags, and others."""

    above: Values
    below: Values


class DecisionCounts(NamedTuple):
    """The same of the right pairs and of the wrong ones."""

    right_above: Values
    wrong_above: Values
    right_below: Values
    wrong_below: Values


class Rates(NamedTuple):
    """Precision and recall of one threshold."""

    precision: Rate
    recall: Rate


def sides(known: WeightedPairs, thresholds: Sequence[float], now: float, chosen: Flags) -> SplitCounts:
    """Count those of the pairs that are ``chosen``. Thresholds ascend, and ``now`` is one of them.

    At the threshold that decided it a pair is on the side that it was on, whatever its four digits say.
    """
    groups = len(known.group_weights)
    place = np.searchsorted(np.asarray(thresholds) - DIGITS, known.similarity[chosen], side="right")
    group, size = known.group[chosen], (len(thresholds) + 1) * groups
    by_place = np.bincount(place * groups + group, minlength=size).reshape(-1, groups)
    # A pair is above as many thresholds as its place says.
    above = by_place[::-1].cumsum(axis=0)[::-1][1:].astype(np.float64)
    above[thresholds.index(now)] = np.bincount(known.group[chosen & known.flagged], minlength=groups)
    return SplitCounts(above, by_place.sum(axis=0) - above)


def rates(counts: DecisionCounts, weights: Values) -> list[Rates]:
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
    drawn: Values

    @classmethod
    def of(cls, counts: Values, there: Flags, weights: Values, random: np.random.Generator) -> "_Sum":
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
