"""Recommends thresholds from curves. Pure functions."""

from collections.abc import Callable, Sequence

import msgspec

from consumer.evaluation.curves import DISTANCES, Curve, Evaluation, Point, Setting
from consumer.judge.settings import JudgeSettings


class Choice(msgspec.Struct, frozen=True):
    """A recommended threshold. ``ties`` are all equally good thresholds, ascending, including the recommended one."""

    point: Point
    ties: tuple[float, ...]


class Recommendation(msgspec.Struct, frozen=True):
    """The thresholds for the best F1 (``best_f1``) and for the required precision (``reaching``).

    ``now`` is the configured threshold. Only thresholds from ``lowest`` to ``highest`` can be set: see ``recommend``.
    """

    setting: Setting
    now: float
    best_f1: Choice | None
    reaching: Choice | None
    lowest: float
    highest: float

    def can_be_set(self, threshold: float) -> bool:
        """Return whether a configuration may have this threshold."""
        return self.lowest <= threshold <= self.highest


def best_f1(curve: Curve, current: float) -> Choice | None:
    """Return the threshold with the greatest F1; among equals, the threshold with the fewest wrong flags.

    Return None if no threshold flags a labelled duplicate, and the ``current`` threshold if none is better.
    """
    useful = [point for point in curve.points if point.right]
    return _choice(curve.setting, current, useful, lambda point: (point.f1 or 0.0, -point.wrong))


def at_precision(curve: Curve, current: float, precision_min: float) -> Choice | None:
    """Return the threshold with the greatest recall among those with at least this precision.

    Return None if no such threshold flags a labelled duplicate. The measured precision decides; its interval is wide if
    there are few pairs.
    """
    useful = [point for point in curve.points if point.right and (point.precision.value or 0.0) >= precision_min]
    return _choice(curve.setting, current, useful, lambda point: (point.right, -point.wrong))


def _choice(
    setting: Setting, current: float, points: Sequence[Point], worth: Callable[[Point], tuple[float, int]]
) -> Choice | None:
    """Choose one of the best thresholds: the current one, or else the fewest bits or the middle similarity.

    The best thresholds all flag the same labelled pairs. Fewer bits cost less to look up and lose nothing. The middle
    similarity is equally far from wrong flags and from misses.
    """
    if not points:
        return None
    most = max(map(worth, points))
    ties = {point.threshold: point for point in points if worth(point) == most}
    thresholds = tuple(ties)
    index = thresholds[len(ties) // 2 if setting == "similarity_min" else 0]
    return Choice(ties.get(current, ties[index]), thresholds)


def recommend(evaluation: Evaluation, settings: JudgeSettings, precision_min: float) -> tuple[Recommendation, ...]:
    """Recommend thresholds for each curve, among those that can be set.

    ``max_distance`` must be within the distances that the plan finds, and the reach must be at least ``max_distance``.
    """
    limits = {
        "max_distance": (0.0, float(_found_max(settings))),
        "reach": (float(settings.max_distance), DISTANCES[-1]),
    }
    recommendations = []
    for whole in evaluation.curves:
        lowest, highest = limits.get(whole.setting, (0.0, 1.0))
        part = whole.within(lowest, highest)
        now = float(getattr(settings, part.setting))
        found = (best_f1(part, now), at_precision(part, now, precision_min))
        recommendations.append(Recommendation(part.setting, now, *found, lowest, highest))
    return tuple(recommendations)


def _found_max(settings: JudgeSettings) -> int:
    """Return the greatest distance on the curve at which the plan finds every pair, or 0 if there is none."""
    return max((int(bits) for bits in DISTANCES if _is_found(settings, int(bits))), default=0)


def _is_found(settings: JudgeSettings, distance: int) -> bool:
    try:
        settings.plan.radius_for(distance)
    except ValueError:
        return False
    return True
