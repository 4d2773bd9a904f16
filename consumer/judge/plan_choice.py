"""Which block plan a window needs, and when it has outgrown its plan. Pure functions.

A look-up reads whole rows, and only rows grow with the window: an article reads ``postings_read``. A larger plan has
longer keys, so shorter rows, but more of them, and more postings to write. The limits are where measurements on one
machine crossed (docs/decisions/0043-plan-and-size.md); on another they are a rule of thumb.
"""

from typing import Final, NamedTuple

from consumer.fingerprint import BlockPlan

_SKEW: Final = 2.5
"""Postings that a look-up reads in lane 0, as a multiple of those with evenly spread fingerprints: a usual feed."""
_BANDS: Final = 4
"""The default number of bands; a limit in articles is one for this many and radius 0."""
_SMALL: Final = {64: "4x16", 128: "8x16"}
"""The plan of small windows, by the width of fingerprints in bits."""
_LARGER: Final = {"4x16": "16x28", "8x16": "4x32"}
_START_ARTICLES: Final = {True: 1_000_000, False: 6_000_000}
"""With this many articles in ``4x16`` a larger plan is faster, as measured; by whether the store is remote."""
_OUTGROWN_POSTINGS: Final = {True: 500, False: 4_000}
"""With this many postings an article, judging (remote) or look-ups and writes take twice as long as with a larger
plan. It is more than a new store starts with, since a migration costs more than a choice."""


class PlanChoice(NamedTuple):
    """A plan for a window, and why, as a phrase that continues its name."""

    plan: BlockPlan
    reason: str


def larger_plan(plan: BlockPlan, max_distance: int) -> str | None:
    """Return the plan to move to when a window outgrows this one.

    None if there is none, or none that finds pairs that differ in ``max_distance`` bits.
    """
    name = _LARGER.get(plan.name)
    return name if name is not None and _holds(BlockPlan.named(name, plan.bits), max_distance) else None


def postings_read(plan: BlockPlan, articles: float, bands: int, max_distance: int) -> float:
    """Return how many postings an article reads on average with this many articles in the window.

    Raises ``ValueError`` if the plan does not find pairs that differ in ``max_distance`` bits.
    """
    return _per_article(plan, bands, max_distance) * articles


def choose_plan(articles: int, bits: int, max_distance: int, bands: int, *, remote: bool) -> PlanChoice:
    """Return the plan for a new store with this many articles expected in the window.

    ``bands`` is 0 without lane 1. Raises ``ValueError`` if no plan finds pairs that differ in ``max_distance`` bits.
    """
    small = BlockPlan.named(_SMALL[bits], bits)
    large = BlockPlan.named(_LARGER[small.name], bits)
    if not _holds(large, max_distance):
        read = postings_read(small, articles, bands, max_distance)
        far = large.exact_to[BlockPlan.RADIUS_MAX]
        reason = f"{large.name} finds pairs up to {far} bits apart, not {max_distance} (judge.max_distance)"
        return PlanChoice(small, f"{reason}; an article will read about {counted(read)} postings")
    if _rows(large, max_distance) <= _rows(small, max_distance):
        return PlanChoice(large, f"it reads fewer rows and postings than {small.name} with any number of articles")
    read, start = postings_read(small, articles, bands, max_distance), start_postings(remote=remote)
    if read < start:
        return PlanChoice(
            small, f"an article will read about {counted(read)} postings; {large.name} is faster from {start:,.0f} on"
        )
    return PlanChoice(
        large,
        f"with {small.name} an article would read about {counted(read)} postings; {large.name} is faster from"
        f" {start:,.0f} on",
    )


def start_postings(*, remote: bool) -> float:
    """Return the postings an article from which on a new store gets a larger plan."""
    small = BlockPlan.named(_SMALL[64])
    return postings_read(small, _START_ARTICLES[remote], _BANDS, small.exact_to[0])


def outgrown_postings(*, remote: bool) -> int:
    """Return the postings an article from which on a window has outgrown a plan that has a larger one."""
    return _OUTGROWN_POSTINGS[remote]


def plan_to_move_to(plan: BlockPlan, articles: float, bands: int, max_distance: int, *, remote: bool) -> str | None:
    """Return the larger plan that a window of this size should move to, None if it has not outgrown its own."""
    larger = larger_plan(plan, max_distance)
    if larger is None:
        return None
    outgrown = postings_read(plan, articles, bands, max_distance) > outgrown_postings(remote=remote)
    return larger if outgrown else None


def counted(number: float) -> str:
    """Return a number as text, with a digit after the point where it is small."""
    return f"{number:,.1f}" if number < 10 else f"{number:,.0f}"  # noqa: PLR2004  # two digits in any case


def _per_article(plan: BlockPlan, bands: int, max_distance: int) -> float:
    return (_rows(plan, max_distance) * _SKEW + bands) / (1 << plan.key_bits)


def _rows(plan: BlockPlan, max_distance: int) -> int:
    return plan.probes(plan.radius_for(max_distance))


def _holds(plan: BlockPlan, max_distance: int) -> bool:
    return max_distance <= plan.exact_to[BlockPlan.RADIUS_MAX]
