"""Chooses the plan of a store for a number of articles, and counts or estimates the articles in its window."""

from array import array
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.config.config import Config
from consumer.fingerprint import ANCHORS_LOOKED_UP, ANCHORS_POSTED, BlockPlan, Scheme
from consumer.judge.plan_choice import LookUpCost, LookUpSettings, PlanChoice, choose_plan, look_up_cost
from consumer.model.verdict import outcome_of
from consumer.text.counts import counted
from storage.interface import PostingStore, StoreUpkeep
from storage.records import CapacityPlan, StoredVersion

ARTICLES_MAX: Final = 10**12
"""The maximum number of articles to plan a store for."""
_ROWS: Final = {16: 256}
"""The number of rows to read, by the bits of a key. If rows are wide, few are enough."""
_ROWS_OF_LONG_KEYS: Final = 2_048
_POSTINGS_MIN: Final = 16
"""With fewer postings in the sample, only an upper bound is given."""
_WORDS: Final = 64
_TWO_ERRORS: Final = 2.0
"""The estimate is within two standard errors in 19 of 20 samples."""


@dataclass(frozen=True, slots=True)
class StorePlan:
    """A plan for a window of ``window_s`` seconds with this many ``articles``, and why it was chosen.

    ``kept`` is the number of kept articles in the store, over window and slack. A look-up reads this many ``rows``,
    at the average ``cost``. A kept article writes this many ``postings``. ``configured`` is the plan that consumers
    with this configuration use.
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
    def planned(self) -> CapacityPlan:
        """The capacity to create the store for."""
        return CapacityPlan(self.articles, self.plan.name)


def store_plan(config: Config, scheme: Scheme, articles: int, *, remote: bool) -> StorePlan:
    """Choose the plan of a store. A plan in the configuration takes precedence.

    Raises ``ValueError`` for a plan that does not exist, or cannot find all pairs within ``judge.max_distance``.
    """
    judge = config.judge
    bands = scheme.sketch.bands if judge.lane1 else 0
    settings = LookUpSettings(judge.max_distance, bands, judge.one_bits_distance_max)
    choice = choose_plan(articles, scheme.bits, settings, remote=remote)
    if "plan" in judge.model_fields_set:
        choice = _configured_choice(BlockPlan.named(judge.plan, scheme.bits), choice)
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


def _configured_choice(plan: BlockPlan, choice: PlanChoice) -> PlanChoice:
    """Return the configured plan, and mention the plan that would be chosen without it."""
    if plan.name == choice.plan.name:
        return choice
    return PlanChoice(plan, f"judge.plan names it; the articles suggest {choice.plan.name}: {choice.reason}")


class WindowSize(NamedTuple):
    """The number of kept articles in a window, and its relative error in both directions.

    ``error`` is 0 if articles were counted. It is None if so few postings were found that ``articles`` is an upper
    bound. ``at_least`` says that rows were wider than the store's cap, so there are more articles.
    """

    articles: int
    error: float | None
    at_least: bool = False

    @property
    def low(self) -> float:
        """The lower bound of a 95 % confidence interval, or 0 if ``articles`` is an upper bound."""
        return 0.0 if self.error is None else self.articles * max(1 - self.error, 0.0)


def window_size(store: PostingStore, plan: BlockPlan, window_ms: int, seed: int) -> WindowSize:
    """Estimate the number of kept articles in the window that ends at the newest posting of the sample.

    Every kept article has one posting for each block of the plan or, in a plan with parts, for each pair of a block
    and a part. So the number of articles is the mean width of random rows times the number of values of a key. Reading
    the whole store would take hours.
    """
    rows = store.look_up(_random_keys(plan, seed))
    times = [row.postings["time_ms"].astype(np.int64) for row in rows]
    newest_ms = max((int(of_row.max()) for of_row in times if len(of_row)), default=0)
    widths = np.array([np.count_nonzero(of_row >= newest_ms - window_ms) for of_row in times])
    return _estimate(widths, plan, at_least=any(row.truncated for row in rows))


def counted_window(store: StoreUpkeep, window_ms: int, read_max: int) -> WindowSize | None:
    """Count the kept articles in force that arrived within the window before the newest version of the store.

    Reads every version and retraction, and returns None if there are more than ``read_max`` of them. Raises the store's
    errors.
    """
    newest_ms = 0
    kept_ms = array("q")
    for place, entry in enumerate(store.scan()):
        if place >= read_max:
            return None
        if not isinstance(entry, StoredVersion):
            continue
        newest_ms = max(newest_ms, entry.record.time_ms)
        if entry.ends_at is None and entry.verdict is not None and outcome_of(entry.verdict) == "unique":
            kept_ms.append(entry.record.time_ms)
    return WindowSize(int(np.count_nonzero(np.array(kept_ms) >= newest_ms - window_ms)), 0.0)


def described_size(size: WindowSize) -> str:
    """Return the size as a phrase."""
    if size.error == 0:
        return counted(size.articles, "kept article")
    if size.error is None:
        return f"at most about {size.articles:,} kept articles"
    least = "at least " if size.at_least else ""
    return f"{least}about {size.articles:,} kept articles (± {size.error:.0%})"


def _estimate(widths: npt.NDArray[np.int64], plan: BlockPlan, *, at_least: bool) -> WindowSize:
    keys, found = 1 << plan.key_bits, int(widths.sum())
    if found < _POSTINGS_MIN:
        # A likely upper bound of a count whose standard error is its square root.
        most = found + _TWO_ERRORS * (found + 1) ** 0.5 + 1
        return WindowSize(_rounded(most / len(widths) * keys), None, at_least)
    mean = float(widths.mean())
    error = _TWO_ERRORS * float(widths.std(ddof=1)) / len(widths) ** 0.5 / mean
    return WindowSize(_rounded(mean * keys), error, at_least)


def _random_keys(plan: BlockPlan, seed: int) -> list[bytes]:
    rows = _ROWS.get(plan.key_bits, _ROWS_OF_LONG_KEYS)
    words = plan.bits // _WORDS
    random = np.random.default_rng(seed)
    codes = random.integers(0, 1 << _WORDS, (rows // plan.probes(0), words), np.uint64, endpoint=False)
    keys = plan.keys(codes).reshape(-1, plan.key_bytes)
    # Keys of a look-up must differ. Two random keys are rarely equal.
    return list(dict.fromkeys(key.tobytes() for key in keys))


def _rounded(articles: float) -> int:
    """Round to three digits, because the others are chance."""
    return int(float(f"{articles:.2e}"))
