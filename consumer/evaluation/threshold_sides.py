"""How many reviewed pairs each threshold flags, and how many it does not. Pure.

Counted by where pairs lie among the thresholds, so that a million pairs need no row for each threshold.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.evaluation.weighted_pairs import Flags, WeightedPairs

DIGITS: Final = 1e-9
"""Similarities are decimals, and thresholds percents: what is nearer to each other is equal."""

Counts = npt.NDArray[np.float64]


class Sides(NamedTuple):
    """Pairs by threshold and group, each float64[thresholds, groups]."""

    above: Counts
    below: Counts


def sides(known: WeightedPairs, thresholds: Sequence[float], now: float, chosen: Flags) -> Sides:
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
    return Sides(above, by_place.sum(axis=0) - above)
