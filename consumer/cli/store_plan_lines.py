"""The plan of a store as lines of text: for a terminal, and for comments in the script that creates the tables."""

from collections.abc import Iterator, Sequence
from typing import Final

from consumer.store_tools.store_plan import StorePlan
from storage.hbase.schema import REGIONS, Schema
from storage.hbase.sizes import REGION_BYTES, TableBytes

_CUTS_SHOWN_MAX: Final = 16
_DAY_S: Final = 86_400
_HOUR_S: Final = 3_600
_GB: Final = 1_000_000_000


def plan_lines(plan: StorePlan) -> Iterator[str]:
    """Yield the plan, why, and what an article costs with it."""
    yield f"For {plan.articles:,} articles in the window of {_duration(plan.window_s)}:"
    yield f"  plan      {plan.plan.name}: {plan.reason}"
    yield (
        f"  look-up   an article reads {plan.rows} rows with about {plan.cost}, and writes {plan.postings} postings if"
        " it is kept"
    )


def table_lines(plan: StorePlan, sizes: TableBytes, schema: Schema) -> Iterator[str]:
    """Yield the size of the tables, and where they are split."""
    postings, articles = schema.postings.splits, schema.articles.splits
    yield (
        f"  size      {plan.kept:,} articles with the slack: postings {_gigabytes(sizes.postings)}, articles"
        f" {_gigabytes(sizes.articles)} (texts of 2,000 characters), before HDFS replicates them"
    )
    yield (
        f"  regions   postings {len(postings) + 1}, articles {len(articles) + 1}: by default one for each"
        f" {REGION_BYTES // _GB} GB, at least {REGIONS}"
    )
    yield f"  cuts      postings: {_cuts(postings)}"
    yield f"            articles: {_cuts(articles)}"


def closing_lines(plan: StorePlan) -> Iterator[str]:
    """Yield what consumers have to be configured with, and what the figures are worth."""
    if plan.configured != plan.plan.name:
        yield f"  settings  consumers without judge.plan take {plan.plan.name}; those with another are refused"
    yield "The limits were measured on one machine (docs/sizing.md)."


def _cuts(splits: Sequence[bytes]) -> str:
    shown = " ".join(split.hex() for split in splits[:_CUTS_SHOWN_MAX])
    more = len(splits) - _CUTS_SHOWN_MAX
    return (shown or "none") + (f" and {more} more" if more > 0 else "")


def _duration(seconds: int) -> str:
    if seconds % _DAY_S == 0:
        return f"{seconds // _DAY_S} days"
    return f"{seconds / _HOUR_S:,.1f} hours"


def _gigabytes(size_bytes: int) -> str:
    return f"{size_bytes / _GB:,.1f} GB"
