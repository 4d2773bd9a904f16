"""Computes weighted counts of reviewed pairs at each threshold, and precision and recall with intervals.

Pure functions.

A near miss represents many pairs like it, and people may not have reviewed all pairs. They may have begun with the
least certain ones, so a reviewed pair represents only pairs of about its own similarity.

Pairs are counted by their position among the thresholds, so that memory does not grow with pairs times thresholds.

Each count (for example of the right pairs above a threshold in a group of equal weight) is treated as a count of rare
events, so its possible values have a gamma distribution. The shape is the count plus its part of Jeffreys' prior, 1/2,
which all groups on that side of the threshold share equally. Draws from these distributions give distributions of
precision and recall, whose quantiles are the ends of the intervals. With one group this is Jeffreys' interval for a
share.

A group without any miss still has the uncertainty of its weight, which intervals of unweighted counts would hide: if
ten near misses of a thousand were reviewed and none is a copy, some copies may still have been missed.

The draws have a fixed seed: the same reviews give the same figures.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.evaluation.curves import Rate
from consumer.evaluation.reviewed_pairs import KINDS, ROUNDING_TOLERANCE, Kind, ReviewedPair

STRATUM_PAIRS_MIN: Final = 20
"""The approximate minimum of reviewed pairs in a stratum."""
STRATA_MAX: Final = 8
WEIGHTS_MAX: Final = 64
"""The maximum number of different weights of pairs of one kind. If there are more, similar weights are merged."""

Values = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
DRAWS: Final = 4_000
_SEED: Final = 60
_QUANTILES: Final = (0.025, 0.975)
_PRIOR: Final = 0.5


class WeightedPairs(NamedTuple):
    """n reviewed pairs, as arrays of n. Pairs of the same kind and weight have the same ``group``."""

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


def weighted_pairs(pairs: Sequence[ReviewedPair]) -> WeightedPairs:
    """Return the reviewed pairs with their weights. At least one pair must be reviewed."""
    parts = [_of_kind(kind, [pair for pair in pairs if pair.kind == kind]) for kind in KINDS]
    similarity, right, flagged, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    # Weights are positive, so the sign can distinguish flags.
    _, group = np.unique(np.where(flagged, -weight, weight), return_inverse=True)
    return WeightedPairs(similarity, right, flagged, weight, group.reshape(-1))


def _of_kind(kind: Kind, pairs: Sequence[ReviewedPair]) -> tuple[Values, Flags, Flags, Values]:
    times = np.array([pair.pairs for pair in pairs], np.intp)
    similarity = np.repeat(np.array([pair.similarity for pair in pairs], np.float64), times)
    sampled_in = np.repeat(np.array([pair.sampled_in for pair in pairs], np.float64), times)
    reviewed = np.repeat(np.array([pair.right is not None for pair in pairs], np.bool_), times)
    right = np.repeat(np.array([bool(pair.right) for pair in pairs], np.bool_), times)
    weight = (sampled_in * _pairs_represented(similarity, sampled_in, reviewed))[reviewed]
    return similarity[reviewed], right[reviewed], np.full(len(weight), kind == "flag"), _merge_similar(weight)


def _merge_similar(weight: Values) -> Values:
    """Return the weights. If more than ``WEIGHTS_MAX`` are different, replace similar weights with their mean."""
    distinct = np.unique(weight)
    if len(distinct) <= WEIGHTS_MAX:
        return weight
    edges = np.unique(np.quantile(distinct, np.arange(1, WEIGHTS_MAX) / WEIGHTS_MAX))
    part = np.searchsorted(edges, weight, side="right")
    counts = np.bincount(part)
    return np.asarray((np.bincount(part, weight) / np.maximum(counts, 1))[part], np.float64)


def _pairs_represented(similarity: Values, sampled_in: Values, reviewed: Flags) -> Values:
    """Return the number of pairs of its stratum that each reviewed pair represents, including itself."""
    if reviewed.all() or not reviewed.any():
        return np.ones(len(similarity))
    known = similarity[reviewed]
    strata = min(max(len(known) // STRATUM_PAIRS_MIN, 1), STRATA_MAX)
    edges = np.unique(np.quantile(known, np.arange(1, strata) / strata, method="higher"))
    # The first stratum has no lower bound, and includes the pair with the least reviewed similarity.
    stratum = np.searchsorted(edges[edges > known.min()], similarity, side="right")
    all_pairs = np.bincount(stratum, sampled_in)
    reviewed_pairs = np.bincount(stratum, sampled_in * reviewed, minlength=len(all_pairs))
    return np.asarray((all_pairs / reviewed_pairs)[stratum], np.float64)


class SplitCounts(NamedTuple):
    """Counts by threshold and group, each float64[thresholds, groups]: pairs that a threshold flags, and others."""

    above: Values
    below: Values


class DecisionCounts(NamedTuple):
    """``SplitCounts`` of the right pairs and of the wrong ones, above and below each threshold."""

    right_above: Values
    wrong_above: Values
    right_below: Values
    wrong_below: Values


class Rates(NamedTuple):
    """Precision and recall of one threshold."""

    precision: Rate
    recall: Rate


def split_counts(known: WeightedPairs, thresholds: Sequence[float], current: float, chosen: Flags) -> SplitCounts:
    """Count the ``chosen`` pairs on both sides of each threshold. Thresholds ascend.

    ``current`` is the configured threshold, one of ``thresholds``. At this threshold, pairs are counted as they were
    flagged, because their similarities are rounded to four digits.
    """
    groups = len(known.group_weights)
    place = np.searchsorted(np.asarray(thresholds) - ROUNDING_TOLERANCE, known.similarity[chosen], side="right")
    group, size = known.group[chosen], (len(thresholds) + 1) * groups
    by_place = np.bincount(place * groups + group, minlength=size).reshape(-1, groups)
    # The place of a pair is the number of thresholds that it reaches.
    above = by_place[::-1].cumsum(axis=0)[::-1][1:].astype(np.float64)
    above[thresholds.index(current)] = np.bincount(known.group[chosen & known.flagged], minlength=groups)
    return SplitCounts(above, by_place.sum(axis=0) - above)


def rates(counts: DecisionCounts, weights: Values) -> list[Rates]:
    """Return precision and recall of each threshold. ``weights`` has the weight of the pairs in each group."""
    random = np.random.default_rng(_SEED)
    above = counts.right_above + counts.wrong_above > 0
    below = counts.right_below + counts.wrong_below > 0
    found = []
    for number in range(len(counts.right_above)):
        right, wrong, missed = (
            _Sum.of(of_group[number], is_present[number], weights, random)
            for of_group, is_present in (
                (counts.right_above, above),
                (counts.wrong_above, above),
                (counts.right_below, below),
            )
        )
        found.append(Rates(_rate(right, wrong), _rate(right, missed)))
    return found


class _Sum(NamedTuple):
    """A weighted count, and draws of its possible values."""

    value: float
    drawn: Values

    @classmethod
    def of(cls, counts: Values, is_present: Flags, weights: Values, random: np.random.Generator) -> "_Sum":
        """Sum up the groups. Only those with a pair, right or wrong, on this side of the threshold are drawn."""
        if not is_present.any():
            return cls(0.0, np.zeros(DRAWS))
        shapes = counts[is_present] + _PRIOR / np.count_nonzero(is_present)
        return cls(float(counts @ weights), random.standard_gamma(shapes, (DRAWS, len(shapes))) @ weights[is_present])


def _rate(hits: _Sum, others: _Sum) -> Rate:
    total = hits.value + others.value
    if not total:
        return Rate(None, 0.0, 1.0)
    low, high = np.quantile(hits.drawn / (hits.drawn + others.drawn), _QUANTILES).tolist()
    value = hits.value / total
    # The interval must contain the share itself, even if that is 0 or 1.
    return Rate(value, min(low, value), max(high, value))
