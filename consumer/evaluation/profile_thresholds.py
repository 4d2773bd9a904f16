"""Matches thresholds with profiles: the current profile, and the profile that another threshold reaches.

Pure functions.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from consumer.config.profiles import settings_by_profile
from consumer.judge.settings import JudgeSettings

EQUALITY_TOLERANCE: Final = 1e-6
"""Thresholds that differ by less than this are equal except for rounding."""


class ProfileThreshold(NamedTuple):
    """A profile, its threshold, and whether its keys are the same as those of the store."""

    name: str
    similarity_min: float
    has_same_keys: bool


def profile_thresholds(settings: JudgeSettings) -> tuple[ProfileThreshold, ...]:
    """Return the threshold of each profile that a store with these settings may use; see ``settings_by_profile``."""
    return tuple(
        ProfileThreshold(name, profile.similarity_min, profile.scheme.sketch == settings.scheme.sketch)
        for name, profile in settings_by_profile(settings).items()
    )


def profile_at(profiles: Sequence[ProfileThreshold], threshold: float) -> str | None:
    """Return the name of the profile with this threshold, or None if there is none."""
    return next(
        (name for name, similarity_min, _ in profiles if abs(similarity_min - threshold) < EQUALITY_TOLERANCE), None
    )


def reached_profile(profiles: Sequence[ProfileThreshold], current: float, threshold: float) -> ProfileThreshold | None:
    """Return the profile that a move of the threshold from ``current`` to ``threshold`` reaches or passes, or None.

    Profiles with the same keys as the store do not count. If several are passed, return the one nearest to
    ``threshold``.
    """
    reached = [
        profile
        for profile in profiles
        if not profile.has_same_keys
        and (
            threshold - EQUALITY_TOLERANCE < profile.similarity_min < current - EQUALITY_TOLERANCE
            or current + EQUALITY_TOLERANCE < profile.similarity_min < threshold + EQUALITY_TOLERANCE
        )
    ]
    return min(reached, key=lambda profile: abs(profile.similarity_min - threshold), default=None)
