"""How good thresholds are on labelled pairs: precision, recall and F1. Pure; array work over all pairs at once.

Three curves, one for each setting that a user has to choose:

    max_distance     flagged is what is at most so many bits apart: plain SimHash, ``verify = false``
    similarity_min   flagged is what is at least so similar by the sketch, whether or not a look-up would find it
    reach            flagged is what the judge flags with this reach, all other settings as they are, ``verify = true``

Texts too short for a fingerprint are equal or are not; no threshold changes what becomes of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from consumer.evaluation.labelled_pairs import LabelledPair
from consumer.fingerprint import TextKind
from consumer.judge.comparison import Comparison, compare
from consumer.judge.settings import JudgeSettings
from storage.records import Stored

Setting = Literal["max_distance", "similarity_min", "reach"]
FoundBy = Literal["both lanes", "blocks", "bands", "neither"]

DISTANCES: Final = tuple(float(bits) for bits in range(17))
SIMILARITIES: Final = tuple(percent / 100 for percent in range(50, 96))
NORMAL_QUANTILE: Final = 1.959963984540054
"""The 97.5 % point of the normal distribution: intervals are two-sided 95 %."""
NEVER_BITS: Final = 1 << 15
"""The distance, or reach, of a pair that none makes a duplicate."""
NEVER_SIMILAR: Final = -1.0

Bits = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Shares = npt.NDArray[np.float64]


class Rate(msgspec.Struct, frozen=True):
    """A share with its Wilson 95 % interval; ``value`` is None where there is nothing to count, then it is 0 to 1."""

    value: float | None
    low: float
    high: float


class Figures(msgspec.Struct, frozen=True):
    """What some rule does: ``right`` of the labelled duplicates it flags, and ``wrong`` of the unique pairs.

    Precision is right / (right + wrong), recall right / all labelled duplicates, F1 their harmonic mean,
    2 right / (right + wrong + labelled duplicates); None where there is neither a flag nor a duplicate.
    """

    right: int
    wrong: int
    precision: Rate
    recall: Rate
    f1: float | None


class Point(Figures, frozen=True):
    """What one threshold does."""

    threshold: float


class Curve(msgspec.Struct, frozen=True):
    """One setting over all its thresholds, which rise."""

    setting: Setting
    points: tuple[Point, ...]

    def within(self, low: float, high: float) -> "Curve":
        """The part of the curve whose thresholds can be set."""
        return Curve(self.setting, tuple(point for point in self.points if low <= point.threshold <= high))


class Choice(msgspec.Struct, frozen=True):
    """A threshold to use. ``ties`` are all that do as well, itself among them."""

    point: Point
    ties: tuple[float, ...]


class Recommendation(msgspec.Struct, frozen=True):
    """What to set: for the best F1, and for the precision that was asked for. ``now`` is what is configured."""

    setting: Setting
    now: float
    best_f1: Choice | None
    reaching: Choice | None


class FoundCount(msgspec.Struct, frozen=True):
    """Labelled pairs by which lane finds them, and whether the judge then flags them or passes them."""

    found_by: FoundBy
    duplicates_flagged: int
    duplicates_passed: int
    unique_flagged: int
    unique_passed: int


class Evaluation(msgspec.Struct, frozen=True):
    """All figures for some labelled pairs. ``judge`` is what the judge does as it is configured."""

    duplicates: int
    unique: int
    found: tuple[FoundCount, ...]
    judge: Figures
    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Measures:
    """What decides each of n labelled pairs, as arrays of n.

    ``distance`` and ``reach`` are the least bits that make the pair a duplicate, ``NEVER_BITS`` where none does;
    ``similarity`` the greatest ``similarity_min`` that does, ``NEVER_SIMILAR`` where none does. ``flagged`` is what
    the judge says as it is configured, ``by_blocks`` and ``by_bands`` which lane finds the pair.
    """

    duplicate: Flags
    distance: Bits
    similarity: Shares
    reach: Bits
    by_blocks: Flags
    by_bands: Flags
    flagged: Flags


class Wilson(NamedTuple):
    """The ends of intervals, each float64[n]."""

    low: Shares
    high: Shares


def evaluation_of(measures: Measures) -> Evaluation:
    """All curves, and what the judge does."""
    duplicate = measures.duplicate
    positives = int(np.count_nonzero(duplicate))
    right = np.array([np.count_nonzero(measures.flagged & duplicate)])
    wrong = np.array([np.count_nonzero(measures.flagged & ~duplicate)])
    return Evaluation(
        duplicates=positives,
        unique=len(duplicate) - positives,
        found=found_counts(measures),
        judge=_figures(right, wrong, positives)[0],
        curves=(
            curve("max_distance", DISTANCES, measures.distance, duplicate),
            curve("similarity_min", SIMILARITIES, measures.similarity, duplicate),
            curve("reach", DISTANCES, measures.reach, duplicate),
        ),
    )


def measure(pairs: Sequence[LabelledPair], articles: Mapping[str, Stored], settings: JudgeSettings) -> Measures:
    """Compare the articles of each pair as the judge does; ``articles`` are by id, all that the pairs name.

    The measures are in the order of the pairs' first ids, so that one article's similarities are estimated at once.
    """
    # With every suspect in reach, what is left to tell is how far the reach must go.
    unbounded = replace(settings, verify=True, reach=settings.scheme.bits)
    as_is: list[Comparison] = []
    far: list[Comparison] = []
    pairs = sorted(pairs, key=_first_id)
    for article_id, group in groupby(pairs, key=_first_id):
        others = [articles[pair.b] for pair in group]
        as_is += compare(articles[article_id], others, settings)
        far += compare(articles[article_id], others, unbounded)
    exact = np.array([_is_exact(articles[pair.a], articles[pair.b]) for pair in pairs], bool)
    verified = np.array([one.verified for one in far], bool)
    distance = np.array([one.distance for one in far], np.int64)
    similarity = np.array([NEVER_SIMILAR if one.similarity is None else one.similarity for one in far], np.float64)
    by_bands = np.array([one.found_by_bands for one in far], bool)
    near = np.array([one.near for one in far], bool)
    held_back = np.array([not one.facts_agree for one in far], bool)
    similarity = np.where(exact, np.where(verified, 1.0, NEVER_SIMILAR), similarity)
    return Measures(
        duplicate=np.array([pair.duplicate for pair in pairs], bool),
        distance=np.where(exact & ~verified, NEVER_BITS, distance),
        similarity=np.where(held_back, NEVER_SIMILAR, similarity),
        reach=np.where(near, np.where(by_bands, 0, distance), NEVER_BITS),
        by_blocks=np.array([one.found_by_blocks for one in as_is], bool),
        by_bands=by_bands,
        flagged=np.array([one.near for one in as_is], bool),
    )


def _first_id(pair: LabelledPair) -> str:
    return pair.a


def _is_exact(a: Stored, b: Stored) -> bool:
    """Whether only equal texts are duplicates, one of these being too short for anything else."""
    return a.record.kind != TextKind.LONG or b.record.kind != TextKind.LONG


def found_counts(measures: Measures) -> tuple[FoundCount, ...]:
    """Count the pairs by lane, label and what the judge says of them; all are counted once."""
    names: tuple[FoundBy, ...] = ("both lanes", "blocks", "bands", "neither")
    lane = np.select(
        [measures.by_blocks & measures.by_bands, measures.by_blocks, measures.by_bands], [0, 1, 2], default=3
    )
    cell = lane * 4 + ~measures.duplicate * 2 + ~measures.flagged
    counts = np.bincount(cell, minlength=16).reshape(4, 4).tolist()
    return tuple(FoundCount(name, *row) for name, row in zip(names, counts, strict=True))


def curve(setting: Setting, thresholds: Sequence[float], values: Bits | Shares, duplicate: Flags) -> Curve:
    """Precision, recall and F1 at each threshold: of values at most as large, for ``similarity_min`` at least."""
    sign = -1 if setting == "similarity_min" else 1
    cuts = sign * np.asarray(thresholds, np.float64)
    right, wrong = (
        np.searchsorted(np.sort(sign * values[chosen]), cuts, side="right") for chosen in (duplicate, ~duplicate)
    )
    figures = _figures(right, wrong, int(np.count_nonzero(duplicate)))
    points = zip(figures, thresholds, strict=True)
    return Curve(
        setting,
        tuple(Point(one.right, one.wrong, one.precision, one.recall, one.f1, threshold) for one, threshold in points),
    )


def _figures(right: npt.NDArray[np.int64], wrong: npt.NDArray[np.int64], duplicates: int) -> list[Figures]:
    precisions = _rates(right, right + wrong)
    recalls = _rates(right, np.full_like(right, duplicates))
    counts = zip(right.tolist(), wrong.tolist(), strict=True)
    return [
        Figures(hits, misses, precision, recall, _f1(hits, misses, duplicates))
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
    """Score intervals for shares of ``trials`` (Wilson, "Probable inference", JASA 22, 1927); without trials 0 to 1."""
    asked = np.maximum(trials, 1)
    share = hits / asked
    z2 = NORMAL_QUANTILE**2
    centre = share + z2 / (2 * asked)
    reach = NORMAL_QUANTILE * np.sqrt(share * (1 - share) / asked + z2 / (4 * asked**2))
    scale = 1 + z2 / asked
    # At the ends the formula gives 0 and 1 but for rounding, which must not exclude the share itself.
    low = np.where(hits == 0, 0.0, (centre - reach) / scale)
    high = np.where(hits == trials, 1.0, (centre + reach) / scale)
    return Wilson(low, high)


def best_f1(curve: Curve, now: float) -> Choice | None:
    """The threshold with the greatest F1, of those the one with the fewest wrong; None where none flags a duplicate.

    ``now`` is what is configured: it stays where it does as well as any.
    """
    useful = [point for point in curve.points if point.right]
    return _choice(curve.setting, now, useful, lambda point: (point.f1 or 0.0, -point.wrong))


def reaching(curve: Curve, now: float, precision_min: float) -> Choice | None:
    """The threshold of greatest recall among those whose precision is at least this; None where there is none.

    It is the measured precision that counts. With few pairs the interval below it is wide.
    """
    useful = [point for point in curve.points if point.right and (point.precision.value or 0.0) >= precision_min]
    return _choice(curve.setting, now, useful, lambda point: (point.right, -point.wrong))


def _choice(
    setting: Setting, now: float, points: Sequence[Point], worth: Callable[[Point], tuple[float, int]]
) -> Choice | None:
    """Choose among the best: what is configured, or the fewest bits, or the similarity in the middle.

    The best all flag the same labelled pairs. So none lies between them: fewer bits cost less to look up and lose
    nothing, and in the middle a similarity is as far from wrong flags as from misses.
    """
    if not points:
        return None
    most = max(map(worth, points))
    ties = {point.threshold: point for point in points if worth(point) == most}
    thresholds = tuple(ties)
    taken = thresholds[len(ties) // 2 if setting == "similarity_min" else 0]
    return Choice(ties.get(now, ties[taken]), thresholds)


def recommend(evaluation: Evaluation, settings: JudgeSettings, precision_min: float) -> tuple[Recommendation, ...]:
    """For each curve what to set, among what can be set: distances that the plan finds, a reach not below them."""
    limits = {
        "max_distance": (0.0, float(found_max(settings))),
        "reach": (float(settings.max_distance), DISTANCES[-1]),
    }
    recommendations = []
    for one in evaluation.curves:
        part = one.within(*limits.get(one.setting, (0.0, 1.0)))
        now = float(getattr(settings, one.setting))
        recommendations.append(Recommendation(one.setting, now, best_f1(part, now), reaching(part, now, precision_min)))
    return tuple(recommendations)


def found_max(settings: JudgeSettings) -> int:
    """The greatest distance, of those on the curve, up to which the plan finds every pair."""
    return max((int(bits) for bits in DISTANCES if _is_found(settings, int(bits))), default=0)


def _is_found(settings: JudgeSettings, distance: int) -> bool:
    try:
        settings.plan.radius_for(distance)
    except ValueError:
        return False
    return True
