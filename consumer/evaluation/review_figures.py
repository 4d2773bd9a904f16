"""Evaluates thresholds on reviews: precision and recall of each, the best ones, and the effect of a change.

Pure functions. Their results are plain values, which a command prints and a page draws.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Final, NamedTuple

import msgspec

from consumer.evaluation.curves import Rate
from consumer.evaluation.reviewed_pairs import ROUNDING_TOLERANCE, Kind, ReviewedPair
from consumer.evaluation.reviewer_line import ReviewerLine, fit_reviewer_line
from consumer.evaluation.weighted_rates import (
    DecisionCounts,
    Flags,
    SplitCounts,
    WeightedPairs,
    rates,
    split_counts,
    weighted_pairs,
)
from storage.clock import MS_PER_DAY

PERCENTS: Final = range(100)
REVIEWS_MIN: Final = 50
"""The number of reviews that a source needs for figures of its own, and that the console needs to show any figures."""
SOURCES_MAX: Final = 50
"""The maximum number of sources with figures of their own, those with the most reviews first."""


class ThresholdEffect(msgspec.Struct, frozen=True):
    """The effect of another threshold, in pairs: right and wrong flags that would disappear or be added."""

    right_gone: float
    wrong_gone: float
    right_come: float
    wrong_come: float

    @property
    def gone(self) -> float:
        """All flags that would disappear."""
        return self.right_gone + self.wrong_gone

    @property
    def come(self) -> float:
        """All flags that would be added."""
        return self.right_come + self.wrong_come


class ReviewPoint(msgspec.Struct, frozen=True):
    """The figures of one threshold.

    ``flags`` is the number of pairs that it flags, ``change`` its effect compared with the configured threshold.
    ``recall`` and ``f1`` are None if they are unknown.
    """

    threshold: float
    flags: float
    precision: Rate
    recall: Rate | None
    f1: float | None
    change: ThresholdEffect


class ReviewCounts(msgspec.Struct, frozen=True):
    """The numbers of reviewed and open pairs. A near miss counts as one pair, however many it represents."""

    flags_right: int
    flags_wrong: int
    near_misses_right: int
    near_misses_wrong: int
    open: int

    @property
    def reviews(self) -> int:
        """The number of reviewed pairs."""
        return self.flags_right + self.flags_wrong + self.near_misses_right + self.near_misses_wrong


class ReviewFigures(msgspec.Struct, frozen=True):
    """All figures for one source, or for all sources if ``source`` is None.

    ``now`` is the configured threshold, and ``judged_from`` the lowest threshold that can be evaluated. ``days`` is the
    period over which the pairs arrived, None if unknown or less than a day. ``best_f1`` has the greatest F1, None if it
    is unknown or 0. ``reaching`` has the greatest recall among the thresholds with the required precision, None if
    there are none.
    """

    source: str | None
    counts: ReviewCounts
    now: float
    judged_from: float
    days: float | None
    line: ReviewerLine
    points: tuple[ReviewPoint, ...]
    best_f1: ReviewPoint | None
    reaching: ReviewPoint | None

    @property
    def at_now(self) -> ReviewPoint:
        """The figures of the configured threshold."""
        return next(point for point in self.points if point.threshold == self.now)

    @property
    def recall_known(self) -> bool:
        """Whether any near miss was reviewed."""
        return self.counts.near_misses_right + self.counts.near_misses_wrong > 0


class ReviewEvaluation(msgspec.Struct, frozen=True):
    """The figures of all reviews, and by source. ``sources_left_out`` is ``left_out`` of ``ChosenSources``."""

    overall: ReviewFigures
    sources: tuple[ReviewFigures, ...]
    sources_left_out: int


def evaluate_reviews(
    pairs: Sequence[ReviewedPair], threshold_of: Callable[[str | None], float], precision_min: float
) -> ReviewEvaluation:
    """Return the figures of all reviews, and by source. At least one pair must be reviewed.

    ``threshold_of`` returns the configured threshold of a source; for None, the threshold of sources without a rule.
    """
    reviews: Counter[str] = Counter()
    for pair in pairs:
        reviews[pair.source] += pair.pairs if pair.right is not None else 0
    chosen = sources_chosen(reviews)
    return ReviewEvaluation(
        figures(None, pairs, threshold_of(None), precision_min),
        tuple(
            figures(source, [pair for pair in pairs if pair.source == source], threshold_of(source), precision_min)
            for source in chosen.names
        ),
        chosen.left_out,
    )


class ChosenSources(NamedTuple):
    """The sources with figures of their own, those with the most reviews first.

    ``left_out`` is the number of other sources with reviews: those with fewer than ``REVIEWS_MIN``, or beyond
    ``SOURCES_MAX``.
    """

    names: tuple[str, ...]
    left_out: int


def sources_chosen(reviews: Mapping[str, int]) -> ChosenSources:
    """Choose sources by their numbers of reviews. "" means no source, and is never chosen.

    If all reviews are of the same source, it is neither chosen nor counted as left out.
    """
    reviewed = Counter({source: count for source, count in reviews.items() if count})
    # The figures of a single source would repeat those of the whole.
    if len(reviewed) <= 1:
        return ChosenSources((), 0)
    del reviewed[""]
    enough = [source for source, count in reviewed.most_common(SOURCES_MAX) if count >= REVIEWS_MIN]
    return ChosenSources(tuple(enough), len(reviewed) - len(enough))


def greatest_recall(points: Sequence[ReviewPoint], precision_min: float) -> ReviewPoint | None:
    """Return the threshold with the greatest recall among those with at least this precision, or None."""
    reaching = [point for point in _useful(points) if (point.precision.value or 0.0) >= precision_min]
    # The lowest threshold flags the most, so its recall is the greatest, even if it is unknown.
    return min(reaching, key=lambda point: point.threshold, default=None)


def whole_count(count: float) -> int:
    """Round an estimate of a count to a whole number, which is 0 only if the estimate is 0."""
    return max(round(count), 1) if count else 0


def figures(source: str | None, pairs: Sequence[ReviewedPair], now: float, precision_min: float) -> ReviewFigures:
    """Return the figures of these pairs with the configured threshold ``now``. At least one pair must be reviewed."""
    known = weighted_pairs(pairs)
    misses = known.similarity[~known.flagged]
    judged_from = min(float(misses.min()), now) if len(misses) else now
    thresholds = _thresholds(judged_from, now)
    points = _points(known, thresholds, now, recall_known=bool(len(misses)))
    return ReviewFigures(
        source=source,
        counts=_counts(pairs),
        now=now,
        judged_from=thresholds[0],
        days=_days(pairs),
        line=fit_reviewer_line(known.similarity, known.right, known.weight),
        points=points,
        best_f1=_best(_useful(points), now, lambda point: point.f1 or 0.0) if len(misses) else None,
        reaching=greatest_recall(points, precision_min),
    )


def _useful(points: Sequence[ReviewPoint]) -> list[ReviewPoint]:
    return [point for point in points if point.precision.value is not None and point.flags]


def _thresholds(judged_from: float, now: float) -> list[float]:
    """Return all whole percentages that can be evaluated, as fractions, and the configured threshold."""
    percents = {percent / 100 for percent in PERCENTS if percent >= ceil(100 * judged_from - ROUNDING_TOLERANCE)}
    return sorted(percents | {now})


def _points(
    known: WeightedPairs, thresholds: Sequence[float], now: float, *, recall_known: bool
) -> tuple[ReviewPoint, ...]:
    weights = known.group_weights

    def counts_of(chosen: Flags) -> SplitCounts:
        return split_counts(known, thresholds, now, chosen)

    right, wrong = counts_of(known.right), counts_of(~known.right)
    changes = zip(
        counts_of(known.flagged & known.right).below @ weights,
        counts_of(known.flagged & ~known.right).below @ weights,
        counts_of(~known.flagged & known.right).above @ weights,
        counts_of(~known.flagged & ~known.right).above @ weights,
        strict=True,
    )
    counts = DecisionCounts(right.above, wrong.above, right.below, wrong.below)
    flags = (right.above + wrong.above) @ weights
    found = zip(thresholds, flags, rates(counts, weights), changes, strict=True)
    return tuple(
        ReviewPoint(
            threshold=threshold,
            flags=float(flagged),
            precision=rate.precision,
            recall=rate.recall if recall_known else None,
            f1=_f1(rate.precision, rate.recall) if recall_known else None,
            change=ThresholdEffect(*map(float, change)),
        )
        for threshold, flagged, rate, change in found
    )


def _f1(precision: Rate, recall: Rate) -> float | None:
    if precision.value is None or recall.value is None:
        return None
    total = precision.value + recall.value
    return 2 * precision.value * recall.value / total if total else 0.0


def _best(points: Sequence[ReviewPoint], now: float, score: Callable[[ReviewPoint], float]) -> ReviewPoint | None:
    """Return one of the best points: the configured one or else the middle one. None if all scores are 0."""
    highest = max(map(score, points), default=0.0)
    best = [point for point in points if score(point) >= highest - ROUNDING_TOLERANCE]
    if not best or not highest:
        return None
    return next((point for point in best if point.threshold == now), best[len(best) // 2])


def _counts(pairs: Sequence[ReviewedPair]) -> ReviewCounts:
    counted: Counter[tuple[Kind, bool | None]] = Counter()
    for pair in pairs:
        counted[pair.kind, pair.right] += pair.pairs
    return ReviewCounts(
        counted["flag", True],
        counted["flag", False],
        counted["near_miss", True],
        counted["near_miss", False],
        counted["flag", None] + counted["near_miss", None],
    )


def _days(pairs: Sequence[ReviewedPair]) -> float | None:
    """Return the number of days over which the pairs arrived, None if unknown or less than a day.

    If a time of arrival is missing, the times of reviews are used, provided that every pair was reviewed.
    """
    arrived = [pair.arrived_ms for pair in pairs if pair.arrived_ms is not None]
    reviewed = [pair.at_ms for pair in pairs if pair.at_ms is not None]
    times = next((times for times in (arrived, reviewed) if len(times) == len(pairs)), [])
    last = [pair.last_ms for pair in pairs if pair.last_ms is not None]
    days = (max(times + last) - min(times)) / MS_PER_DAY if times else 0.0
    return days if days >= 1 else None
