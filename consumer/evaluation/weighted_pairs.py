"""What reviewed pairs stand for. Pure.

A near miss is one of many, and people need not have looked at all pairs. Where they have not, they may have begun with
the least certain ones, so a reviewed pair stands for those of about its own similarity, and not for any.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.evaluation.reviewed_pair import KINDS, Kind, ReviewedPair

STRATUM_PAIRS_MIN: Final = 20
"""Reviewed pairs in a stratum, about."""
STRATA_MAX: Final = 8

Values = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


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
    _, group = np.unique(np.stack((flagged, weight)), axis=1, return_inverse=True)
    return WeightedPairs(similarity, right, flagged, weight, group.reshape(-1))


def _of_kind(kind: Kind, pairs: Sequence[ReviewedPair]) -> tuple[Values, Flags, Flags, Values]:
    similarity = np.array([pair.similarity for pair in pairs], np.float64)
    sampled_in = np.array([pair.sampled_in for pair in pairs], np.float64)
    reviewed = np.array([pair.right is not None for pair in pairs], np.bool_)
    right = np.array([bool(pair.right) for pair in pairs], np.bool_)
    weight = sampled_in * _stood_for(similarity, sampled_in, reviewed)
    flagged = np.full(len(pairs), kind == "flag")
    return similarity[reviewed], right[reviewed], flagged[reviewed], weight[reviewed]


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
