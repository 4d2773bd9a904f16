"""Prints the table of docs/operate/sizing.md: ``python -m deploy.kubernetes.sizing [ARTICLES_A_DAY...]``.

The figures are those of ``dupwatch size``, side by side for several feeds on HBase.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from consumer.config.loading import load_config
from consumer.store_tools.sizing import CHARS, COPIES, GB, Feed, Sizing
from consumer.store_tools.speeds import documented_speed
from consumer.store_tools.store_plan import store_plan
from consumer.store_tools.text_sizes import assumed_sizes
from consumer.wiring.components import scheme_of

FEEDS: Final = (100_000, 1_000_000, 5_000_000, 20_000_000)
"""The columns of the table in docs/operate/sizing.md, in articles a day."""


def sizing(articles_a_day: int) -> Sizing:
    """Return what a feed of Chinese articles needs on HBase, with the default settings. Environment variables apply."""
    config = load_config(None, {})
    feed = Feed(articles_a_day, COPIES, config.judge.window_s, config.lifetime_s)
    plan = store_plan(config, scheme_of(config), feed.in_window, remote=True)
    speed = documented_speed(CHARS, "zh", plan.plan.name, remote=True)
    return Sizing(feed, assumed_sizes(CHARS, "zh"), plan, speed, remote=True)


def table(found: Sequence[Sizing]) -> str:
    """Return the table of docs/operate/sizing.md, in Markdown, with a column for each feed."""
    rows = {
        "kept articles in the window (7 days)": [f"{each.feed.in_window:,}" for each in found],
        "articles per second, average / peak": [
            f"{each.feed.peak_a_s / each.feed.peak:,.1f} / {each.feed.peak_a_s:,.0f}" for each in found
        ],
        "plan": [f"`{each.plan.plan.name}`" for each in found],
        "store, GB": [f"{each.store_bytes / GB:,.1f}" for each in found],
        "store on disks, GB": [f"{each.disk_bytes / GB:,.0f}" for each in found],
        "`--regions`": [str(each.regions) for each in found],
        "consumers": [str(each.consumers) for each in found],
        "cores busy at the peak, all parts": [f"{each.cores_at_peak:,.2f}" for each in found],
    }
    head = ["articles per day", *(f"{each.feed.articles_a_day:,}" for each in found)]
    lines = [head, ["---"] * len(head), *([name, *values] for name, values in rows.items())]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(description="Print the size of the cluster that each feed needs.")
    parser.add_argument("articles_a_day", type=int, nargs="*", default=list(FEEDS))
    sys.stdout.write(table([sizing(articles) for articles in parser.parse_args().articles_a_day]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
