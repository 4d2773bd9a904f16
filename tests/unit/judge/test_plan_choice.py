"""Which plan a window gets, when it has outgrown it, and that the figures are those of the documentation."""

import numpy as np
import pytest

from consumer.config.profiles import settings_by_profile
from consumer.fingerprint import BlockPlan
from consumer.judge.plan_choice import (
    LookUpSettings,
    choose_plan,
    counted,
    larger_plan,
    look_up_cost,
    outgrown_articles,
    outgrown_postings,
    plan_to_move_to,
    start_articles,
)
from consumer.judge.settings import JudgeSettings

SHORT_KEYS = BlockPlan.named("4x16")
PROFILES = {
    name: LookUpSettings.of(settings)
    for name, settings in settings_by_profile(JudgeSettings(SHORT_KEYS, "", max_distance=3)).items()
}
NEWS = PROFILES["news"]


@pytest.mark.parametrize(
    ("window", "name", "why"),
    [
        ((1, 64, 3, 4, True), "4x16", "about 0.0 postings; 16x28 is faster from 1,000,000 articles on"),
        ((999_999, 64, 3, 4, True), "4x16", "will read about 214 postings"),
        ((1_000_000, 64, 3, 4, True), "16x28", "with 4x16 an article would read about 214 postings"),
        ((3_000_000, 64, 3, 4, True), "16x28", "read about 641 postings; 16x28 is faster from 1,000,000 articles on"),
        ((10**12, 64, 3, 4, True), "16x28", "postings"),
        # A key less to read for each band that is missing, so a larger window fits.
        ((1_300_000, 64, 3, 0, True), "4x16", "198 postings; 16x28 is faster from 1,400,000 articles on"),
        ((1_400_000, 64, 3, 0, True), "4x16", "214 postings"),
        ((1_401_000, 64, 3, 0, True), "16x28", "214 postings"),
        # Radius 1 reads the neighbours of each key, 68 rows instead of 4.
        ((80_000, 64, 4, 4, True), "4x16", "212 postings"),
        ((81_000, 64, 4, 4, True), "16x28", "215 postings"),
        # 16x28 finds pairs up to 4 bits apart.
        ((10**9, 64, 5, 4, True), "4x16", "16x28 finds pairs up to 4 bits apart, not 5 (judge.max_distance)"),
        # Rows of an embedded store cost less, and postings even less.
        ((5_999_999, 64, 3, 4, False), "4x16", "16x28 is faster from 6,000,000 articles on"),
        ((6_000_000, 64, 3, 4, False), "16x28", "16x28 is faster from 6,000,000 articles on"),
        ((1, 128, 3, 4, True), "4x32", "fewer rows and postings than 8x16 with any number of articles"),
        ((500_000, 128, 7, 4, True), "8x16", "183 postings; 4x32 is faster"),
        ((600_000, 128, 7, 4, True), "4x32", "with 8x16 an article would read about 220 postings"),
        ((10**9, 128, 15, 4, False), "8x16", "4x32 finds pairs up to 7 bits apart, not 15"),
    ],
)
def test_the_plan_follows_from_what_an_article_reads(
    window: tuple[int, int, int, int, bool], name: str, why: str
) -> None:
    """The small plan while it is faster or alone finds such pairs; the reason has the figure that decides.

    A window is its articles, the bits of fingerprints, the greatest distance, the bands, and whether it is remote.
    """
    articles, bits, max_distance, bands, remote = window
    choice = choose_plan(articles, bits, NEWS._replace(max_distance=max_distance, bands=bands), remote=remote)
    assert choice.plan.name == name
    assert why in choice.reason


@pytest.mark.parametrize(("bits", "max_distance"), [(64, 8), (128, 16)])
def test_a_distance_that_no_plan_finds_is_refused(bits: int, max_distance: int) -> None:
    """With the sentence that a run would have."""
    with pytest.raises(ValueError, match=f"no plan for {bits} bits supports more"):
        choose_plan(1, bits, NEWS._replace(max_distance=max_distance), remote=True)


@pytest.mark.parametrize(
    ("name", "articles", "max_distance", "remote", "larger"),
    [
        ("4x16", 2_300_000, 3, True, None),
        ("4x16", 2_400_000, 3, True, "16x28"),
        ("4x16", 18_700_000, 3, False, None),
        ("4x16", 18_800_000, 3, False, "16x28"),
        ("4x16", 10**9, 5, True, None),
        ("16x28", 10**12, 3, True, None),
        ("8x16", 2_000_000, 3, True, "4x32"),
        ("8x16", 10**9, 15, True, None),
    ],
)
def test_a_window_outgrows_its_plan(
    name: str,
    articles: int,
    max_distance: int,
    remote: bool,  # noqa: FBT001  # a parameter
    larger: str | None,
) -> None:
    """Later than a new store would get the larger plan, and never without a plan that finds the same pairs."""
    plan = BlockPlan.named(name, 128 if name in {"8x16", "4x32"} else 64)
    assert plan_to_move_to(plan, articles, NEWS._replace(max_distance=max_distance), remote=remote) == larger


@pytest.mark.parametrize(
    ("articles", "remote", "name", "why"),
    [
        (
            195_000,
            True,
            "4x16",
            "will read about 71 postings and 8.0 candidates; 16x28 is faster from 196,000 articles",
        ),
        (196_000, True, "16x28", "would read about 72 postings and 8.0 candidates"),
        (
            271_000,
            False,
            "4x16",
            "will read about 99 postings and 11 candidates; 16x28 is faster from 272,000 articles",
        ),
        (272_000, False, "16x28", "would read about 100 postings and 11 candidates"),
        (1_000_000, True, "16x28", "about 366 postings and 41 candidates"),
        (1_000_000, False, "16x28", "about 366 postings and 41 candidates"),
    ],
)
def test_candidates_by_chance_count(
    articles: int,
    remote: bool,  # noqa: FBT001  # a parameter
    name: str,
    why: str,
) -> None:
    """More bands and a greater one-bit distance bring candidates, each of which is read: posts need long keys early."""
    choice = choose_plan(articles, 64, PROFILES["posts"], remote=remote)
    assert choice.plan.name == name
    assert why in choice.reason


def test_each_setting_of_posts_counts() -> None:
    """The limit falls with more bands, and with a greater one-bit distance; minima of a band do not matter."""
    bands, one_bits = PROFILES["posts"].bands, PROFILES["posts"].one_bits_distance_max
    limits = [
        start_articles(SHORT_KEYS, settings, remote=False)
        for settings in (
            NEWS,
            NEWS._replace(bands=bands),
            NEWS._replace(one_bits_distance_max=one_bits),
            NEWS._replace(bands=bands, one_bits_distance_max=one_bits),
        )
    ]
    assert sorted(limits, reverse=True) == limits
    assert limits == pytest.approx([6e6, 3.5e6, 8.8e5, 2.7e5], rel=0.02)


def test_the_chance_of_a_candidate_is_that_of_random_one_bits() -> None:
    """A posting under an equal key is a candidate as often as 64 random bits are near 64 others."""
    bits = np.random.default_rng(1).integers(0, 1 << 64, (2, 200_000), np.uint64)
    distances = np.bitwise_count(bits[0] ^ bits[1])
    for near in (20, 28, 32, 64):
        cost = look_up_cost(SHORT_KEYS, 1 << 16, LookUpSettings(3, 1, near))
        assert cost.candidates == pytest.approx((distances <= near).mean(), abs=0.003)


@pytest.mark.parametrize("remote", [True, False])
@pytest.mark.parametrize("profile", PROFILES)
def test_a_new_store_is_not_outgrown(profile: str, *, remote: bool) -> None:
    """A plan that was chosen for a window fits more than twice as many articles."""
    outgrown = outgrown_articles(SHORT_KEYS, PROFILES[profile], remote=remote)
    assert outgrown > 2 * start_articles(SHORT_KEYS, PROFILES[profile], remote=remote)


@pytest.mark.parametrize("remote", [True, False])
def test_news_outgrow_their_plan_with_as_many_postings_as_top_warns_of(*, remote: bool) -> None:
    """A posting under an equal key is hardly ever a candidate with the default one-bit distance."""
    articles = outgrown_articles(SHORT_KEYS, NEWS, remote=remote)
    assert look_up_cost(SHORT_KEYS, articles, NEWS).postings == pytest.approx(
        outgrown_postings(remote=remote), rel=0.01
    )


def test_only_plans_with_short_keys_have_a_larger_one() -> None:
    """Nothing is larger than the plans with long keys."""
    plans = [BlockPlan.named(name, 128 if name in {"8x16", "4x32"} else 64) for name in BlockPlan.NAMES]
    assert {plan.name: larger_plan(plan, 3) for plan in plans} == {
        "4x16": "16x28", "16x28": None, "8x16": "4x32", "4x32": None,
    }  # fmt: skip


@pytest.mark.parametrize(("max_distance", "larger"), [(4, "16x28"), (5, None), (7, None)])
def test_a_larger_plan_finds_the_same_pairs(max_distance: int, larger: str | None) -> None:
    """16x28 finds pairs up to 4 bits apart, 4x16 up to 7."""
    assert larger_plan(BlockPlan.named("4x16"), max_distance) == larger


@pytest.mark.parametrize(("number", "text"), [(0.04, "0.0"), (9.94, "9.9"), (10.4, "10"), (21_364.2, "21,364")])
def test_numbers_have_two_digits_at_least(number: float, text: str) -> None:
    """Small ones after the point."""
    assert counted(number) == text
