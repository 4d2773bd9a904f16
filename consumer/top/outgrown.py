"""Tells from the metrics of consumers which block plans their windows have outgrown. Pure functions."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple

from consumer.judge.plan_choice import outgrown_postings
from consumer.top.scrapes import Interval

_BUILD: Final = "dupwatch_build_info"
_POSTINGS: Final = "dupwatch_postings_read_total"
_ARTICLES: Final = "dupwatch_articles_total"
_CONNECTIONS: Final = "dupwatch_store_connections_total"
_ARTICLES_MIN: Final = 50
"""With fewer articles in an interval the mean since the start counts: rows differ."""


class Outgrown(NamedTuple):
    """A plan, the postings that articles read with it on average, the most that fit it, and the plan to move to."""

    plan: str
    read: float
    postings_max: int
    larger: str


def outgrown_plans(intervals: Sequence[Interval]) -> Iterator[Outgrown]:
    """Yield each plan that the window of some of these consumers has outgrown.

    Consumers with the same plan share a window. Their store is taken for a remote one if any of them has opened
    connections to one. A plan without a larger one that finds the same pairs is not outgrown.
    """
    by_plan: dict[tuple[str, str], list[Interval]] = {}
    for interval in intervals:
        build = interval.after
        for plan, larger in product(build.values_of(_BUILD, "plan"), build.values_of(_BUILD, "larger_plan")):
            by_plan.setdefault((plan, larger), []).append(interval)
    for (plan, larger), consumers in by_plan.items():
        read = _postings_an_article(consumers)
        remote = any(consumer.after.total(_CONNECTIONS) for consumer in consumers)
        most = outgrown_postings(remote=remote)
        if larger and read > most:
            yield Outgrown(plan, read, most, larger)


def _postings_an_article(intervals: Sequence[Interval]) -> float:
    if _grown(intervals, _ARTICLES) < _ARTICLES_MIN:
        intervals = [Interval(None, interval.after) for interval in intervals]
    articles = _grown(intervals, _ARTICLES)
    return _grown(intervals, _POSTINGS) / articles if articles else 0.0


def _grown(intervals: Sequence[Interval], name: str) -> float:
    return sum(grown for interval in intervals for _, grown in interval.increases(name))
