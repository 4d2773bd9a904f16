"""What reviewed pairs stand for. Pure.

A near miss is one of many, and people need not have looked at all pairs. Where they have not, they may have begun with
the least certain ones, so a reviewed pair stands for those of about its own similarity, and not for any.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.evaluation.reviewed_pairs import KINDS, Kind, ReviewedPair

STRATUM_PAIRS_MIN: Final = 20
"""Reviewed pairs in a stratum, about."""
STRATA_MAX: Final = 8
WEIGHTS_MAX: Final = 64
"""Different weights of one kind that are told apart; of more, those that are about the same become their mean."""

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
