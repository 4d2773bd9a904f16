"""The plan and the size of a store, from the configuration and the number of articles expected in the window."""

from dataclasses import dataclass
from typing import Final

from consumer.config.config import Config
from consumer.fingerprint import ANCHORS_LOOKED_UP, ANCHORS_POSTED, BlockPlan, Scheme
from consumer.judge.plan_choice import LookUpCost, LookUpSettings, PlanChoice, choose_plan, look_up_cost
from storage.records import Planned

ARTICLES_MAX: Final = 10**12


@dataclass(frozen=True, slots=True)
class StorePlan:
    """A plan for a window of ``window_s`` seconds with this many ``articles``, and why it was chosen.

    ``kept`` are the articles in the store, over window and slack. Each has ``rows`` that it reads, ``postings`` that it
    writes if it is kept, and ``cost``, what it finds in its rows on average. ``configured`` is the plan that consumers
    with this configuration have.
    """

    articles: int
    window_s: int
    kept: int
    plan: BlockPlan
    reason: str
    rows: int
    postings: int
    cost: LookUpCost
    configured: str

    @property
    def planned(self) -> Planned:
        """What the store is to be made for."""
        return Planned(self.articles, self.plan.name)


def store_plan(config: Config, scheme: Scheme, articles: int, *, remote: bool) -> StorePlan:
    """Choose the plan of a store; a plan that the configuration names is taken as it is.

    Raises ``ValueError`` for a plan that does not exist, or does not find pairs within ``judge.max_distance``.
    """
    judge = config.judge
    bands = scheme.sketch.bands if judge.lane1 else 0
    settings = LookUpSettings(judge.max_distance, bands, judge.one_bits_distance_max)
    choice = choose_plan(articles, scheme.bits, settings, remote=remote)
    if "plan" in judge.model_fields_set:
        choice = _named(BlockPlan.named(judge.plan, scheme.bits), choice)
    plan = choice.plan
    return StorePlan(
        articles=articles,
        window_s=judge.window_s,
        kept=-(-articles * config.lifetime_s // judge.window_s),
        plan=plan,
        reason=choice.reason,
        rows=plan.probes(plan.radius_for(judge.max_distance)) + bands + (ANCHORS_LOOKED_UP if judge.parts else 0),
        postings=plan.probes(0) + bands + (ANCHORS_POSTED if judge.parts else 0),
        cost=look_up_cost(plan, articles, settings),
        configured=judge.plan,
    )


def _named(plan: BlockPlan, choice: PlanChoice) -> PlanChoice:
    """Return a plan that the configuration names, with what would be chosen without it."""
    if plan.name == choice.plan.name:
        return choice
    return PlanChoice(plan, f"judge.plan names it; the articles suggest {choice.plan.name}: {choice.reason}")
