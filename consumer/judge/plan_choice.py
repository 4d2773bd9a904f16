"""Chooses the block plan for a window, and tells when the window has outgrown it. Pure functions.

A look-up reads whole rows, which grow with the window. A larger plan has longer keys and so shorter rows, but more
rows, and more postings to write. The limits are the sizes at which two plans were equally fast on one machine
(docs/decisions/0043-plan-and-size.md); on other machines they are a rule of thumb.

Rows of lane 1 hold texts that share a band, and texts whose keys are equal by chance. The latter become candidates if
their one-bit minima happen to be near enough: one in 26,000 with ``one_bits_distance_max`` 16, one in five with 28. A
longer key keeps them out of the row. Texts that share a band are in it with every plan, so they do not count.
"""

from math import comb
from typing import Final, NamedTuple, Self

from consumer.fingerprint import BlockPlan
from consumer.judge.settings import JudgeSettings

_SKEW: Final = 2.5
"""Postings read in lane 0 for a typical feed, as a multiple of those for evenly spread fingerprints."""
_ONE_BITS: Final = 64
_SMALL: Final = {64: "4x16", 128: "8x16"}
"""The plan of small windows, by the width of fingerprints in bits."""
_LARGER: Final = {"4x16": "16x28", "8x16": "4x32"}
_START_ARTICLES: Final = {True: 1_000_000, False: 6_000_000}
"""The measured number of articles from which a larger plan than ``4x16`` is faster with the default settings. The key
says whether the store is remote."""
_SHOWN_FROM: Final = 0.05
_OUTGROWN_POSTINGS: Final = {True: 500, False: 4_000}
"""With this many postings per article, judging (if remote) or look-ups and writes (if not) take twice as long as with a
larger plan. The limit is higher than for new stores, because a migration costs more than a choice."""


class LookUpSettings(NamedTuple):
    """The settings that determine the reads of a look-up; ``bands`` is 0 without lane 1."""

    max_distance: int
    bands: int
    one_bits_distance_max: int

    @classmethod
    def of(cls, settings: JudgeSettings) -> Self:
        """Return the look-up settings of a judge."""
        bands = settings.scheme.sketch.bands if settings.lane1 else 0
        return cls(settings.max_distance, bands, settings.one_bits_distance_max)


_DEFAULTS: Final = LookUpSettings.of(JudgeSettings(BlockPlan.named(_SMALL[64]), ""))
"""The settings with which the limits were measured."""


class LookUpCost(NamedTuple):
    """The average postings read per article, and how many of them become candidates by chance."""

    postings: float
    candidates: float

    def __str__(self) -> str:
        """Return both as a phrase, without candidates if there are hardly any."""
        candidates = f" and {counted(self.candidates)} candidates" if self.candidates >= _SHOWN_FROM else ""
        return f"{counted(self.postings)} postings{candidates}"


class PlanChoice(NamedTuple):
    """A plan for a window, and the reason, as a phrase that follows the plan's name."""

    plan: BlockPlan
    reason: str


def larger_plan(plan: BlockPlan, max_distance: int) -> str | None:
    """Return the plan to move to when a window outgrows this one.

    Returns None if no larger plan finds pairs that differ in ``max_distance`` bits.
    """
    name = _LARGER.get(plan.name)
    return name if name is not None and _finds_all(BlockPlan.named(name, plan.bits), max_distance) else None


def look_up_cost(plan: BlockPlan, articles: float, settings: LookUpSettings) -> LookUpCost:
    """Return the average look-up cost of an article with this many articles in the window.

    Raises ``ValueError`` if the plan does not find pairs that differ in ``max_distance`` bits.
    """
    row_postings = articles / (1 << plan.key_bits)
    by_bands = settings.bands * row_postings
    by_blocks = _rows(plan, settings.max_distance) * _SKEW * row_postings
    return LookUpCost(by_blocks + by_bands, by_bands * _chance_of_candidate(settings.one_bits_distance_max))


def choose_plan(articles: int, bits: int, settings: LookUpSettings, *, remote: bool) -> PlanChoice:
    """Return the plan for a new store with this many articles expected in the window.

    Raises ``ValueError`` if no plan finds pairs that differ in ``max_distance`` bits.
    """
    small = BlockPlan.named(_SMALL[bits], bits)
    large = BlockPlan.named(_LARGER[small.name], bits)
    max_distance = settings.max_distance
    cost = look_up_cost(small, articles, settings)
    if not _finds_all(large, max_distance):
        far = large.exact_to[BlockPlan.RADIUS_MAX]
        reason = f"{large.name} finds pairs up to {far} bits apart, not {max_distance} (judge.max_distance)"
        return PlanChoice(small, f"{reason}; an article will read about {cost}")
    if _rows(large, max_distance) <= _rows(small, max_distance):
        return PlanChoice(large, f"it reads fewer rows and postings than {small.name} with any number of articles")
    start = start_articles(small, settings, remote=remote)
    faster = f"{large.name} is faster from {rounded(start):,} articles on"
    if articles < start:
        return PlanChoice(small, f"an article will read about {cost}; {faster}")
    return PlanChoice(large, f"with {small.name} an article would read about {cost}; {faster}")


def start_articles(plan: BlockPlan, settings: LookUpSettings, *, remote: bool) -> float:
    """Return the number of articles in the window at which a new store gets a larger plan than this one."""
    small = BlockPlan.named(_SMALL[64])
    limit = _START_ARTICLES[remote] * _price(small, _DEFAULTS, remote=remote)
    return limit / _price(plan, settings, remote=remote)


def outgrown_articles(plan: BlockPlan, settings: LookUpSettings, *, remote: bool) -> float:
    """Return the number of articles at which a window has outgrown a plan that has a larger one."""
    return _OUTGROWN_POSTINGS[remote] / _price(plan, settings, remote=remote)


def outgrown_postings(*, remote: bool) -> int:
    """Return the postings per article at which a window has outgrown a plan that has a larger one.

    This applies to feeds with few candidates by chance.
    """
    return _OUTGROWN_POSTINGS[remote]


def plan_to_move_to(plan: BlockPlan, articles: float, settings: LookUpSettings, *, remote: bool) -> str | None:
    """Return the larger plan that a window of this size should move to, or None if it has not outgrown this one."""
    larger = larger_plan(plan, settings.max_distance)
    if larger is None:
        return None
    return larger if articles > outgrown_articles(plan, settings, remote=remote) else None


def rounded(articles: float) -> int:
    """Return a limit rounded to three digits, because it is no more exact than that."""
    return int(float(f"{articles:.2e}"))


def counted(number: float) -> str:
    """Return a number as text, with one decimal if it is below 10."""
    return f"{number:,.1f}" if number < 10 else f"{number:,.0f}"  # noqa: PLR2004  # two digits in any case


def _price(plan: BlockPlan, settings: LookUpSettings, *, remote: bool) -> float:
    """Return the cost of one look-up per article in the window, in postings read.

    A candidate costs as much as a row, because its record is found by key too.
    """
    cost = look_up_cost(plan, 1, settings)
    return cost.postings + cost.candidates * _postings_of_a_row(remote=remote)


def _postings_of_a_row(*, remote: bool) -> float:
    """Return how many postings cost as much as a row.

    At the size where two plans cost the same, one reads more postings and the other more rows.
    """
    small = BlockPlan.named(_SMALL[64])
    large = BlockPlan.named(_LARGER[small.name])
    more_rows = _rows(large, _DEFAULTS.max_distance) - _rows(small, _DEFAULTS.max_distance)
    return look_up_cost(small, _START_ARTICLES[remote], _DEFAULTS).postings / more_rows


def _chance_of_candidate(one_bits_distance_max: int) -> float:
    """Return the chance that the one-bit minima of unrelated texts differ in at most this many bits."""
    near = sum(comb(_ONE_BITS, distance) for distance in range(one_bits_distance_max + 1))
    return near / (1 << _ONE_BITS)


def _rows(plan: BlockPlan, max_distance: int) -> int:
    return plan.probes(plan.radius_for(max_distance))


def _finds_all(plan: BlockPlan, max_distance: int) -> bool:
    """Return whether a plan finds every pair that differs in ``max_distance`` bits."""
    return max_distance <= plan.exact_to[BlockPlan.RADIUS_MAX]
