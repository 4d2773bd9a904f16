"""What reviews say of the threshold: precision and recall of each one, the best, and what would change. Pure.

Plain values, which a command prints and a page draws.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from math import ceil
from typing import Final

import msgspec
import numpy as np

from consumer.evaluation.curves import Rate
from consumer.evaluation.drawn_line import Line, drawn_line
from consumer.evaluation.reviewed_pair import ReviewedPair
from consumer.evaluation.weighted_pairs import WeightedPairs, weighted
from consumer.evaluation.weighted_rates import SidedCounts, rates
from consumer.judge.settings import DAY_MS

PERCENTS: Final = range(100)
SOURCE_REVIEWS_MIN: Final = 50
"""Reviews of a source from which on it has figures of its own."""
SOURCES_MAX: Final = 50
"""Sources that have figures of their own, those with the most reviews first."""
_DIGITS: Final = 1e-9


class Change(msgspec.Struct, frozen=True):
    """What another threshold would change, in pairs: flags that would go and flags that would come, right and wrong."""

    right_gone: float
    wrong_gone: float
    right_come: float
    wrong_come: float

    @property
    def gone(self) -> float:
        """All flags that would go."""
        return self.right_gone + self.wrong_gone

    @property
    def come(self) -> float:
        """All flags that would come."""
        return self.right_come + self.wrong_come


class ReviewPoint(msgspec.Struct, frozen=True):
    """One threshold; ``flags`` is how many pairs it flags. ``recall`` is None where it is unknown, and so is ``f1``."""

    threshold: float
    flags: float
    precision: Rate
    recall: Rate | None
    f1: float | None
    change: Change


class ReviewCounts(msgspec.Struct, frozen=True):
    """How many pairs were reviewed, and how many were not; near misses as they were sampled."""

    flags_right: int
    flags_wrong: int
    near_misses_right: int
    near_misses_wrong: int
    open: int


class ReviewFigures(msgspec.Struct, frozen=True):
    """All figures for one source, or for all where ``source`` is None.

    ``now`` is the configured threshold, ``judged_from`` the lowest that can be judged. ``days`` is over how many days
    the pairs came, None where that is not known. ``best_f1`` and ``reaching``, the one with the greatest recall among
    those of the wanted precision, are None where there is none.
    """

    source: str | None
    counts: ReviewCounts
    now: float
    judged_from: float
    days: float | None
    line: Line
    points: tuple[ReviewPoint, ...]
    best_f1: ReviewPoint | None
    reaching: ReviewPoint | None

    @property
    def recall_known(self) -> bool:
        """Whether any near miss was reviewed."""
        return self.counts.near_misses_right + self.counts.near_misses_wrong > 0


class ReviewEvaluation(msgspec.Struct, frozen=True):
    """The figures of all reviews, and of sources; ``sources_left_out`` have too few, or are beyond ``SOURCES_MAX``."""

    overall: ReviewFigures
    sources: tuple[ReviewFigures, ...]
    sources_left_out: int


def evaluate_reviews(
    pairs: Sequence[ReviewedPair], now: Callable[[str | None], float], precision_min: float
) -> ReviewEvaluation:
    """Return what reviews say. ``now`` gives the configured threshold of a source, None for all."""
    reviews = Counter(pair.source for pair in pairs if pair.right is not None)
    enough = [source for source, count in reviews.most_common(SOURCES_MAX) if count >= SOURCE_REVIEWS_MIN]
    # One source has nothing to say beside the whole.
    named = [source for source in enough if source] if len(reviews) > 1 else []
    return ReviewEvaluation(
        figures(None, pairs, now(None), precision_min),
        tuple(
            figures(source, [pair for pair in pairs if pair.source == source], now(source), precision_min)
            for source in named
        ),
        len(reviews.keys() - {""}) - len(named) if len(reviews) > 1 else 0,
    )


def figures(source: str | None, pairs: Sequence[ReviewedPair], now: float, precision_min: float) -> ReviewFigures:
    """Return the figures of these pairs, at least one of which is reviewed."""
    known = weighted(pairs)
    misses = known.similarity[~known.flagged]
    judged_from = min(float(misses.min()), now) if len(misses) else now
    thresholds = _thresholds(judged_from, now)
    points = _points(known, thresholds, now, recall_known=bool(len(misses)))
    useful = [point for point in points if point.precision.value is not None and point.flags]
    reaching = [point for point in useful if (point.precision.value or 0.0) >= precision_min]
    return ReviewFigures(
        source=source,
        counts=_counts(pairs),
        now=now,
        judged_from=thresholds[0],
        days=_days(pairs),
        line=drawn_line(known.similarity.tolist(), known.right.tolist(), known.weight.tolist()),
        points=points,
        best_f1=_best(useful, now, lambda point: point.f1 or 0.0) if len(misses) else None,
        # The lowest flags the most, so its recall is the greatest, known or not.
        reaching=min(reaching, key=lambda point: point.threshold, default=None),
    )


def _thresholds(judged_from: float, now: float) -> list[float]:
    """Return the percents that can be judged, and the configured threshold among them."""
    percents = {percent / 100 for percent in PERCENTS if percent >= ceil(100 * judged_from - _DIGITS)}
    return sorted(percents | {now})


def _points(
    known: WeightedPairs, thresholds: Sequence[float], now: float, *, recall_known: bool
) -> tuple[ReviewPoint, ...]:
    weights = known.group_weights
    of_group = known.group[:, np.newaxis] == np.arange(len(weights))
    above = known.similarity >= np.asarray(thresholds)[:, np.newaxis] - _DIGITS
    # At the threshold that decided it, a pair is on the side that it was on, whatever its four digits say.
    above = np.where(np.asarray(thresholds)[:, np.newaxis] == now, known.flagged, above)
    right, wrong = of_group & known.right[:, np.newaxis], of_group & ~known.right[:, np.newaxis]
    counts = SidedCounts(
        *(side.astype(np.float64) @ chosen.astype(np.float64) for side in (above, ~above) for chosen in (right, wrong))
    )
    weighed_right, weighed_wrong = known.weight * known.right, known.weight * ~known.right
    changes = zip(
        (~above & known.flagged) @ weighed_right,
        (~above & known.flagged) @ weighed_wrong,
        (above & ~known.flagged) @ weighed_right,
        (above & ~known.flagged) @ weighed_wrong,
        strict=True,
    )
    found = zip(thresholds, above @ known.weight, rates(counts, weights), changes, strict=True)
    return tuple(
        ReviewPoint(
            threshold=threshold,
            flags=float(flags),
            precision=rate.precision,
            recall=rate.recall if recall_known else None,
            f1=_f1(rate.precision, rate.recall) if recall_known else None,
            change=Change(*map(float, change)),
        )
        for threshold, flags, rate, change in found
    )


def _f1(precision: Rate, recall: Rate) -> float | None:
    if precision.value is None or recall.value is None:
        return None
    total = precision.value + recall.value
    return 2 * precision.value * recall.value / total if total else 0.0


def _best(points: Sequence[ReviewPoint], now: float, worth: Callable[[ReviewPoint], float]) -> ReviewPoint | None:
    """Return one of the best: the configured one if it is among them, else the one in the middle."""
    most = max(map(worth, points), default=0.0)
    best = [point for point in points if worth(point) >= most - _DIGITS]
    if not best or not most:
        return None
    return next((point for point in best if point.threshold == now), best[len(best) // 2])


def _counts(pairs: Sequence[ReviewedPair]) -> ReviewCounts:
    counted = Counter((pair.kind, pair.right) for pair in pairs)
    return ReviewCounts(
        counted["flag", True],
        counted["flag", False],
        counted["near_miss", True],
        counted["near_miss", False],
        counted["flag", None] + counted["near_miss", None],
    )


def _days(pairs: Sequence[ReviewedPair]) -> float | None:
    """Return over how many days the pairs came, None where they do not say, or came within less than a day.

    When they were reviewed says that too, where people keep up; not where some were never reviewed.
    """
    arrived = [pair.arrived_ms for pair in pairs if pair.arrived_ms is not None]
    reviewed = [pair.at_ms for pair in pairs if pair.at_ms is not None]
    times = next((times for times in (arrived, reviewed) if len(times) == len(pairs)), [])
    days = (max(times) - min(times)) / DAY_MS if times else 0.0
    return days if days >= 1 else None
