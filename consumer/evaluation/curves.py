"""Precision, recall and F1 of thresholds on labelled pairs. Pure; computed with arrays over all pairs at once.

There are three curves, one for each setting that a user has to choose. They differ in which pairs count as flagged:

    max_distance     those at most this many bits apart: plain SimHash, ``verify = false``
    similarity_min   those with at least this similarity of sketches, whether or not a look-up would find them
    reach            those that the judge flags with this reach, all other settings as they are, ``verify = true``

Texts that are too short for a fingerprint are either equal or not; no threshold changes that.
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
"""The distance or reach of a pair that is a duplicate at none."""
NEVER_SIMILAR: Final = -1.0

Bits = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Shares = npt.NDArray[np.float64]


class Rate(msgspec.Struct, frozen=True):
    """A share with its Wilson 95 % interval; without any trial, ``value`` is None and the interval is 0 to 1."""

    value: float | None
    low: float
    high: float


class QualityFigures(msgspec.Struct, frozen=True):
    """The quality of a rule, which flags ``right`` labelled duplicates and ``wrong`` unique pairs.

    Precision is right / (right + wrong), recall right / all labelled duplicates, F1 their harmonic mean,
    2 right / (right + wrong + labelled duplicates); None where there are neither flags nor duplicates.
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
    """A setting over its ascending thresholds."""

    setting: Setting
    points: tuple[Point, ...]

    def within(self, low: float, high: float) -> "Curve":
        """Return the part of the curve from ``low`` to ``high``."""
        return Curve(self.setting, tuple(point for point in self.points if low <= point.threshold <= high))


class ProfileFigures(msgspec.Struct, frozen=True):
    """The quality of a judge with the settings of a profile."""

    profile: str
    figures: QualityFigures


class FoundCount(msgspec.Struct, frozen=True):
    """The number of labelled pairs that the same lanes find, by label and by whether the judge flags them."""

    found_by: FoundBy
    duplicates_flagged: int
    duplicates_passed: int
    unique_flagged: int
    unique_passed: int


class Evaluation(msgspec.Struct, frozen=True):
    """All figures for a set of labelled pairs. ``judge`` is the quality of the judge as it is configured."""

    duplicates: int
    unique: int
    found: tuple[FoundCount, ...]
    judge: QualityFigures
    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Measures:
    """The values that decide n labelled pairs, as arrays of n.

    ``distance`` and ``reach`` are the least bits at which the pair is a duplicate, ``NEVER_BITS`` where there are none.
    ``similarity`` is the greatest ``similarity_min`` at which it is one, ``NEVER_SIMILAR`` where there is none.
    ``flagged`` is the verdict of the judge as it is configured; ``by_blocks`` and ``by_bands`` say which lanes find the
    pair.
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
    """Return all curves, and the quality of the judge."""
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
    """Compare the articles of each pair as the judge does; ``articles`` has all articles of the pairs, by id.

    The measures are in the order of the pairs' first ids, so that the similarities of an article are estimated at once.
    """
    # With an unlimited reach, the distance of a near pair is the reach that it needs.
    unbounded = replace(settings, verify=True, reach=settings.scheme.bits)
    as_is: list[PairComparison] = []
    far: list[PairComparison] = []
    pairs = sorted(pairs, key=_first_id)
    for article_id, group in groupby(pairs, key=_first_id):
        others = [articles[pair.b] for pair in group]
        as_is += compare(articles[article_id], others, settings)
        far += compare(articles[article_id], others, unbounded)
    exact = np.array([_is_exact(articles[pair.a], articles[pair.b]) for pair in pairs], bool)
    verified = np.array([each.verified for each in far], bool)
    distance = np.array([each.distance for each in far], np.int64)
    similarity = np.array([NEVER_SIMILAR if each.similarity is None else each.similarity for each in far], np.float64)
    by_bands = np.array([each.found_by_bands for each in far], bool)
    near = np.array([each.near for each in far], bool)
    held_back = np.array([not (each.facts_agree and each.allowed) for each in far], bool)
    similarity = np.where(exact, np.where(verified, 1.0, NEVER_SIMILAR), similarity)
    return Measures(
        duplicate=np.array([pair.duplicate for pair in pairs], bool),
        distance=np.where(exact & ~verified, NEVER_BITS, distance),
        similarity=np.where(held_back, NEVER_SIMILAR, similarity),
        reach=np.where(near, np.where(by_bands, 0, distance), NEVER_BITS),
        by_blocks=np.array([each.found_by_blocks for each in as_is], bool),
        by_bands=by_bands,
        flagged=np.array([each.near for each in as_is], bool),
    )


def _first_id(pair: LabelledPair) -> str:
    return pair.a


def _is_exact(a: StoredVersion, b: StoredVersion) -> bool:
    """Return whether only equality makes these duplicates, because one of them is too short for anything else."""
    return not {a.record.kind, b.record.kind} <= {TextKind.LONG, TextKind.SHINGLED}


def found_counts(measures: Measures) -> tuple[FoundCount, ...]:
    """Count the pairs by lanes, label and verdict; each pair is counted once."""
    names: tuple[FoundBy, ...] = ("both lanes", "blocks", "bands", "neither")
    lane = np.select(
        [measures.by_blocks & measures.by_bands, measures.by_blocks, measures.by_bands], [0, 1, 2], default=3
    )
    cell = lane * 4 + ~measures.duplicate * 2 + ~measures.flagged
    counts = np.bincount(cell, minlength=16).reshape(4, 4).tolist()
    return tuple(FoundCount(name, *row) for name, row in zip(names, counts, strict=True))


def curve(setting: Setting, thresholds: Sequence[float], values: Bits | Shares, duplicate: Flags) -> Curve:
    """Return the quality at each threshold; values up to it are flagged, for ``similarity_min`` values from it on."""
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
    """Return the quality of n rules, which flag so many pairs rightly and wrongly; ``duplicates`` are labelled."""
    precisions = _rates(right, right + wrong)
    recalls = _rates(right, np.full_like(right, duplicates))
    counts = zip(right.tolist(), wrong.tolist(), strict=True)
    return [
        QualityFigures(hits, misses, precision, recall, _f1(hits, misses, duplicates))
        for (hits, misses), precision, recall in zip(counts, precisions, recalls, strict=True)
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
    """Return score intervals for shares of ``trials`` (Wilson, JASA 22, 1927); without any trial, 0 to 1."""
    asked = np.maximum(trials, 1)
    share = hits / asked
    z2 = NORMAL_QUANTILE**2
    centre = share + z2 / (2 * asked)
    reach = NORMAL_QUANTILE * np.sqrt(share * (1 - share) / asked + z2 / (4 * asked**2))
    scale = 1 + z2 / asked
    # For shares of 0 and 1 the formula is exact but for rounding, which must not exclude the share itself.
    low = np.where(hits == 0, 0.0, (centre - reach) / scale)
    high = np.where(hits == trials, 1.0, (centre + reach) / scale)
    return Wilson(low, high)
