"""Which profile a threshold belongs to, and which one a move of the threshold reaches."""

from dataclasses import replace

import pytest

from consumer.config.profiles import settings_by_profile
from consumer.evaluation.profile_thresholds import profile_at, profile_thresholds, reached_profile
from consumer.fingerprint import BlockPlan, Scheme
from consumer.judge.settings import JudgeSettings

SETTINGS = JudgeSettings(BlockPlan.named("4x16"), "")
STORES = settings_by_profile(SETTINGS)


def test_profiles_are_those_of_the_scheme() -> None:
    """Each says whether the store has its keys; a scheme without profiles has none."""
    assert [(each.name, each.has_same_keys) for each in profile_thresholds(STORES["posts"])] == [
        ("news", False), ("posts", True),
    ]  # fmt: skip
    assert profile_thresholds(replace(SETTINGS, scheme=Scheme("jieba-tfidf/2"))) == ()
    assert profile_thresholds(replace(SETTINGS, verify=False, lane1=False)) == ()


@pytest.mark.parametrize(("threshold", "name"), [(0.73, "news"), (0.34, "posts"), (0.35, None), (0.0, None)])
def test_a_threshold_has_the_name_of_its_profile(threshold: float, name: str | None) -> None:
    """Whatever the keys are."""
    assert profile_at(profile_thresholds(STORES["news"]), threshold) == name


@pytest.mark.parametrize(
    ("store", "now", "threshold", "name"),
    [
        ("news", 0.73, 0.35, None),
        ("news", 0.73, 0.34, "posts"),
        ("news", 0.73, 0.1, "posts"),
        ("news", 0.34, 0.1, None),
        ("news", 0.6, 0.8, None),
        ("posts", 0.34, 0.72, None),
        ("posts", 0.34, 0.73, "news"),
        ("posts", 0.34, 0.99, "news"),
        ("posts", 0.73, 0.99, None),
        ("posts", 0.73, 0.2, None),
    ],
)
def test_a_profile_is_reached_from_one_side(store: str, now: float, threshold: float, name: str | None) -> None:
    """At its threshold or beyond; never one with the keys that the store has."""
    reached = reached_profile(profile_thresholds(STORES[store]), now, threshold)
    assert (reached and reached.name) == name


def test_of_two_profiles_the_nearest_is_reached() -> None:
    """A store with keys of its own may pass both."""
    scheme = Scheme(sketch=replace(Scheme().sketch, bands=10))
    profiles = profile_thresholds(replace(SETTINGS, scheme=scheme))
    reached = [reached_profile(profiles, *move) for move in ((0.9, 0.3), (0.2, 0.8))]
    assert [each and each.name for each in reached] == ["posts", "news"]
