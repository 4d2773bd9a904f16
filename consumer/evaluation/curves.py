"""Computes precision, recall and F1 of thresholds on labelled pairs. Pure functions on arrays of all pairs.

There are three curves, one for each setting that a user has to choose. They differ in which pairs count as flagged:

    max_distance     pairs at most this many bits apart: plain SimHash, ``verify = false``
    similarity_min   pairs with at least this similarity of sketches, even if a look-up would not find them, except
                     those that the rules of sources or the guards of facts keep apart
    reach            pairs that the judge flags with this reach and its other settings, ``verify = true``

Texts that are too short for a fingerprint are either equal or not, whatever the threshold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from consumer.evaluation.labelled_pairs import LabelledPair
from consumer.fingerprint import TextKind
from consumer.judge.comparison import PairComparison, compare
from consumer.judge.settings import JudgeSettings
from storage.records import StoredVersion

Setting = Literal["max_distance", "similarity_min", "reach"]
FoundBy = Literal["both lanes", "blocks", "bands", "neither"]

DISTANCES: Final = tuple(float(bits) for bits in range(17))
SIMILARITIES: Final = tuple(percent / 100 for percent in range(30, 101))
NORMAL_QUANTILE: Final = 1.959963984540054
"""The 97.5 % quantile of the normal distribution, for two-sided 95 % intervals."""
NEVER_BITS: Final = 1 << 15
"""The distance or reach of a pair that no threshold flags."""
NEVER_SIMILAR: Final = -1.0
"""The similarity of a pair that no threshold flags, even if its texts are similar."""

Bits = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Shares = npt.NDArray[np.float64]


class Rate(msgspec.Struct, frozen=True):
    """A share with its Wilson 95 % interval. Without trials, ``value`` is None and the interval is 0 to 1."""

    value: float | None
    low: float
    high: float


class QualityFigures(msgspec.Struct, frozen=True):
    """The quality of a rule that flags ``right`` labelled duplicates and ``wrong`` unique pairs.

    Precision is right / (right + wrong), recall is right / all labelled duplicates, and F1 is their harmonic mean,
    2 right / (right + wrong + labelled duplicates), or None if there are neither flags nor duplicates.
    """

    right: int
    wrong: int
    precision: Rate
    recall: Rate
    f1: float | None


class Point(QualityFigures, frozen=True):
    """The quality of one threshold."""

    threshold: float


class Curve(msgspec.Struct, frozen=True):
    """The quality of a setting at each of its thresholds, in ascending order."""

    setting: Setting
    points: tuple[Point, ...]

    def within(self, low: float, high: float) -> "Curve":
        """Return the part of the curve from ``low`` to ``high``, both included."""
        return Curve(self.setting, tuple(point for point in self.points if low <= point.threshold <= high))


class ProfileFigures(msgspec.Struct, frozen=True):
    """The quality of a judge with the settings of a profile."""

    profile: str
    figures: QualityFigures


class FoundCount(msgspec.Struct, frozen=True):
    """The labelled pairs found by the same lanes, counted by label and by whether the judge flags them."""

    found_by: FoundBy
    duplicates_flagged: int
    duplicates_passed: int
    unique_flagged: int
    unique_passed: int


class Evaluation(msgspec.Struct, frozen=True):
    """All figures for a set of labelled pairs. ``judge`` is the quality of the configured judge."""

    duplicates: int
    unique: int
    found: tuple[FoundCount, ...]
    judge: QualityFigures
    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Measures:
    """The values that decide n labelled pairs, as arrays of n.

    ``duplicate`` is the label. ``distance`` and ``reach`` are the smallest ``max_distance`` and ``reach`` that flag the
    pair, or ``NEVER_BITS``. ``similarity`` is the greatest ``similarity_min`` that flags it, or ``NEVER_SIMILAR``.
    ``flagged`` is the verdict of the configured judge. ``by_blocks`` and ``by_bands`` say which lanes find the pair.
    """

    duplicate: Flags
    distance: Bits
    similarity: Shares
    reach: Bits
    by_blocks: Flags
    by_bands: Flags
    flagged: Flags


class Wilson(NamedTuple):
    """The ends of n intervals, each float64[n]."""

    low: Shares
    high: Shares


def evaluation_of(measures: Measures) -> Evaluation:
    """Return all figures for the measured pairs."""
    duplicate = measures.duplicate
    positives = int(np.count_nonzero(duplicate))
    right = np.array([np.count_nonzero(measures.flagged & duplicate)])
    wrong = np.array([np.count_nonzero(measures.flagged & ~duplicate)])
    return Evaluation(
        duplicates=positives,
        unique=len(duplicate) - positives,
        found=found_counts(measures),
        judge=figures_of(right, wrong, positives)[0],
        curves=(
            curve("max_distance", DISTANCES, measures.distance, duplicate),
            curve("similarity_min", SIMILARITIES, measures.similarity, duplicate),
            curve("reach", DISTANCES, measures.reach, duplicate),
        ),
    )


def measure(pairs: Sequence[LabelledPair], articles: Mapping[str, StoredVersion], settings: JudgeSettings) -> Measures:
    """Compare the articles of each pair as the judge does. ``articles`` must have all articles of the pairs by id.

    The measures are sorted by the pairs' first ids, so that all similarities of an article are estimated together.
    """
    # With an unlimited reach, the distance of a near pair is the reach that it needs, unless bands find it.
    unbounded = replace(settings, verify=True, reach=settings.scheme.bits)
    configured: list[PairComparison] = []
    unlimited: list[PairComparison] = []
    pairs = sorted(pairs, key=_first_id)
    for article_id, group in groupby(pairs, key=_first_id):
        others = [articles[pair.b] for pair in group]
        configured += compare(articles[article_id], others, settings)
        unlimited += compare(articles[article_id], others, unbounded)
    exact = np.array([_is_exact(articles[pair.a], articles[pair.b]) for pair in pairs], bool)
    verified = np.array([each.verified for each in unlimited], bool)
    distance = np.array([each.distance for each in unlimited], np.int64)
    similarity = np.array(
        [NEVER_SIMILAR if each.similarity is None else each.similarity for each in unlimited], np.float64
    )
    by_bands = np.array([each.found_by_bands for each in unlimited], bool)
    near = np.array([each.near for each in unlimited], bool)
    held_back = np.array([not (each.facts_agree and each.allowed) for each in unlimited], bool)
    similarity = np.where(exact, np.where(verified, 1.0, NEVER_SIMILAR), similarity)
    return Measures(
        duplicate=np.array([pair.duplicate for pair in pairs], bool),
        distance=np.where(exact & ~verified, NEVER_BITS, distance),
        similarity=np.where(held_back, NEVER_SIMILAR, similarity),
        reach=np.where(near, np.where(by_bands, 0, distance), NEVER_BITS),
        by_blocks=np.array([each.found_by_blocks for each in configured], bool),
        by_bands=by_bands,
        flagged=np.array([each.near for each in configured], bool),
    )


def _first_id(pair: LabelledPair) -> str:
    return pair.a


def _is_exact(a: StoredVersion, b: StoredVersion) -> bool:
    """Return whether only equal texts are duplicates, because one of the two is too short for other comparisons."""
    return not {a.record.kind, b.record.kind} <= {TextKind.LONG, TextKind.SHINGLED}


def found_counts(measures: Measures) -> tuple[FoundCount, ...]:
    """Count the pairs by lanes, label and verdict. Each pair counts once."""
    names: tuple[FoundBy, ...] = ("both lanes", "blocks", "bands", "neither")
    lane = np.select(
        [measures.by_blocks & measures.by_bands, measures.by_blocks, measures.by_bands], [0, 1, 2], default=3
    )
    cell = lane * 4 + ~measures.duplicate * 2 + ~measures.flagged
    counts = np.bincount(cell, minlength=16).reshape(4, 4).tolist()
    return tuple(FoundCount(name, *row) for name, row in zip(names, counts, strict=True))


def curve(setting: Setting, thresholds: Sequence[float], values: Bits | Shares, duplicate: Flags) -> Curve:
    """Return the quality at each threshold.

    A pair is flagged if its value is at most the threshold, or for ``similarity_min`` at least the threshold.
    """
    sign = -1 if setting == "similarity_min" else 1
    cuts = sign * np.asarray(thresholds, np.float64)
    right, wrong = (
        np.searchsorted(np.sort(sign * values[chosen]), cuts, side="right") for chosen in (duplicate, ~duplicate)
    )
    figures = figures_of(right, wrong, int(np.count_nonzero(duplicate)))
    points = zip(figures, thresholds, strict=True)
    return Curve(
        setting,
        tuple(
            Point(figure.right, figure.wrong, figure.precision, figure.recall, figure.f1, threshold)
            for figure, threshold in points
        ),
    )


def figures_of(right: npt.NDArray[np.int64], wrong: npt.NDArray[np.int64], duplicates: int) -> list[QualityFigures]:
    """Return the quality of n rules, given the counts of their right and wrong flags and of labelled duplicates."""
    precisions = _rates(right, right + wrong)
    recalls = _rates(right, np.full_like(right, duplicates))
    counts = zip(right.tolist(), wrong.tolist(), strict=True)
    return [
        QualityFigures(hits, mistakes, precision, recall, _f1(hits, mistakes, duplicates))
        for (hits, mistakes), precision, recall in zip(counts, precisions, recalls, strict=True)
    ]


def _f1(right: int, wrong: int, duplicates: int) -> float | None:
    total = right + wrong + duplicates
    return 2 * right / total if total else None


def _rates(hits: npt.NDArray[np.int64], trials: npt.NDArray[np.int64]) -> list[Rate]:
    low, high = wilson(hits, trials)
    return [
        Rate(hit / trial if trial else None, *ends)
        for hit, trial, *ends in zip(hits.tolist(), trials.tolist(), low.tolist(), high.tolist(), strict=True)
    ]


def wilson(hits: npt.NDArray[np.int64], trials: npt.NDArray[np.int64]) -> Wilson:
    """Return Wilson's score intervals (JASA 22, 1927) for the shares ``hits / trials``; 0 to 1 without any trial."""
    n = np.maximum(trials, 1)
    share = hits / n
    z2 = NORMAL_QUANTILE**2
    centre = share + z2 / (2 * n)
    half_width = NORMAL_QUANTILE * np.sqrt(share * (1 - share) / n + z2 / (4 * n**2))
    scale = 1 + z2 / n
    # For shares of 0 and 1 the formula is exact except for rounding, which must not exclude the share itself.
    low = np.where(hits == 0, 0.0, (centre - half_width) / scale)
    high = np.where(hits == trials, 1.0, (centre + half_width) / scale)
    return Wilson(low, high)
