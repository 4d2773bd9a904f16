"""Which plan a window gets, when it has outgrown it, and that the figures are those of the documentation."""

import pytest

from consumer.fingerprint import BlockPlan
from consumer.judge.plan_choice import (
    choose_plan,
    counted,
    larger_plan,
    outgrown_postings,
    plan_to_move_to,
    postings_read,
    start_postings,
)
from deploy.kubernetes.sizing import FEEDS, SHORT, SPLIT_AT, Feed

SHORT_KEYS = BlockPlan.named("4x16")


@pytest.mark.parametrize(
    ("window", "name", "why"),
    [
        ((1, 64, 3, 4, True), "4x16", "about 0.0 postings; 16x28 is faster from 214 on"),
        ((999_999, 64, 3, 4, True), "4x16", "will read about 214 postings"),
        ((1_000_000, 64, 3, 4, True), "16x28", "with 4x16 an article would read about 214 postings"),
        ((3_000_000, 64, 3, 4, True), "16x28", "would read about 641 postings; 16x28 is faster from 214 on"),
        ((10**12, 64, 3, 4, True), "16x28", "postings"),
        # A key less to read for each band that is missing, so a larger window fits.
        ((1_300_000, 64, 3, 0, True), "4x16", "198 postings"),
        ((1_400_000, 64, 3, 0, True), "16x28", "214 postings"),
        # Radius 1 reads the neighbours of each key, 68 rows instead of 4.
        ((80_000, 64, 4, 4, True), "4x16", "212 postings"),
        ((81_000, 64, 4, 4, True), "16x28", "215 postings"),
        # 16x28 finds pairs up to 4 bits apart.
        ((10**9, 64, 5, 4, True), "4x16", "16x28 finds pairs up to 4 bits apart, not 5 (judge.max_distance)"),
        # Rows of an embedded store cost less, and postings even less.
        ((5_999_999, 64, 3, 4, False), "4x16", "16x28 is faster from 1,282 on"),
        ((6_000_000, 64, 3, 4, False), "16x28", "16x28 is faster from 1,282 on"),
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
    *sizes, remote = window
    choice = choose_plan(*sizes, remote=remote)
    assert choice.plan.name == name
    assert why in choice.reason


@pytest.mark.parametrize(("bits", "max_distance"), [(64, 8), (128, 16)])
def test_a_distance_that_no_plan_finds_is_refused(bits: int, max_distance: int) -> None:
    """With the sentence that a run would have."""
    with pytest.raises(ValueError, match=f"no plan for {bits} bits supports more"):
        choose_plan(1, bits, max_distance, 4, remote=True)


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
    assert plan_to_move_to(plan, articles, 4, max_distance, remote=remote) == larger


@pytest.mark.parametrize("remote", [True, False])
def test_a_new_store_is_not_outgrown(*, remote: bool) -> None:
    """A plan that was chosen for a window fits more than twice as many articles."""
    assert outgrown_postings(remote=remote) > 2 * start_postings(remote=remote)


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


def test_the_table_of_sizes_chooses_the_same() -> None:
    """docs/sizing.md is computed by a module that may not import this one."""
    for feed in map(Feed, (*FEEDS, SPLIT_AT // 7, SPLIT_AT // 7 + 1)):
        assert choose_plan(feed.in_window, 64, 3, 4, remote=True).plan.name == feed.plan.name
        assert postings_read(SHORT_KEYS, feed.in_window, 4, 3) == pytest.approx(SHORT.postings_read(feed.in_window))


@pytest.mark.parametrize(("number", "text"), [(0.04, "0.0"), (9.94, "9.9"), (10.4, "10"), (21_364.2, "21,364")])
def test_numbers_have_two_digits_at_least(number: float, text: str) -> None:
    """Small ones after the point."""
    assert counted(number) == text
