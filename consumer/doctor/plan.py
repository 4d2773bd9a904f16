"""Findings on the size of the window: whether the store's plan still fits."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import SystemRandom
from typing import Final

from consumer.config.config import Config
from consumer.doctor.finding import Finding, ok, unchecked, warning
from consumer.judge.plan_choice import LookUpSettings, look_up_cost, outgrown_articles, plan_to_move_to, rounded
from consumer.judge.settings import JudgeSettings
from consumer.store_tools.store_plan import WindowSize, described_size, window_size
from consumer.wiring import stores
from consumer.wiring.feeds import source_side
from storage.errors import StoreUnavailable
from storage.records import Planned

_GROWN: Final = 2
"""A window of more than this many times the articles that were expected is worth a look at the disks."""
_SEEDS: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class FoundWindow:
    """The size of the window of a store, what the store is made for, and the settings of its consumers."""

    size: WindowSize
    planned: Planned | None
    settings: JudgeSettings
    remote: bool

    @property
    def larger_plan(self) -> str | None:
        """The plan to move to, None if the store has not outgrown its own.

        Up to the number of articles that the store is made for, its plan was chosen knowingly.
        """
        if self.size.error is None or (self.planned is not None and self.size.low <= self.planned.articles):
            return None
        looked_up = LookUpSettings.of(self.settings)
        return plan_to_move_to(self.settings.plan, self.size.low, looked_up, remote=self.remote)


def check_size(config: Config, settings: Callable[[], JudgeSettings]) -> Iterator[Finding]:
    """Check whether the window has outgrown the plan of the store, by a sample of its postings."""
    try:
        with stores.opened_store(config, readonly=True) as store:
            if store.settings() is None:
                yield ok("Nothing has been judged into the store yet.")
                return
            used = settings()
            size = window_size(store, used.plan, used.window_ms, SystemRandom().randrange(_SEEDS))
            found = FoundWindow(size, store.planned(), used, stores.is_remote(config))
    except StoreUnavailable as error:
        yield unchecked(f"The store does not answer: {error}", "Fix that first.")
        return
    yield size_finding(found, config)


def size_finding(found: FoundWindow, config: Config) -> Finding:
    """Return what the size of a window means for the plan of its store."""
    plan, planned = found.settings.plan.name, found.planned
    expected = f", of {planned.articles:,} expected" if planned is not None else ""
    says = f"The window has {described_size(found.size)}{expected}"
    larger = found.larger_plan
    if larger is not None:
        looked_up = LookUpSettings.of(found.settings)
        limit = rounded(outgrown_articles(found.settings.plan, looked_up, remote=found.remote))
        cost = look_up_cost(found.settings.plan, found.size.articles, looked_up)
        return warning(
            f"{says}, and has outgrown the plan {plan}: an article reads about {cost}, and from {limit:,} articles on"
            f" judging takes twice as long as with {larger}.",
            _move(config, found.size.articles, larger),
        )
    if planned is not None and found.size.low > _GROWN * planned.articles:
        return warning(
            f"{says}. The plan {plan} still fits.",
            "Check the space on disks. What a store of this size needs: dupwatch store init --articles"
            f" {found.size.articles} --store {config.store.url}.",
        )
    return ok(f"{says}; the plan {plan} fits.")


def _move(config: Config, articles: int, larger: str) -> str:
    """Return the commands that move to a larger plan."""
    new = f'a copy of the configuration with judge.plan = "{larger}" and a store.url of its own'
    if not source_side(config).is_shared:
        return f"Judge the window again into a new store: dupwatch backfill FILE --config NEW, where NEW is {new}."
    return (
        f"Run dupwatch store init --config NEW --articles {articles} --apply, then dupwatch migrate --config NEW"
        f" --from-group {config.kafka.group} --from-store {config.store.url}, where NEW is {new}, and a kafka.group of"
        " its own (docs/migration.md)."
    )
