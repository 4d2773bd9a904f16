"""How large a cluster is needed: ``python -m deploy.kubernetes.sizing [ARTICLES_A_DAY...]`` prints a table.

Each formula stands in docs/sizing.md with its source; the constants are measured ones, of articles of 2,000
characters. Everything is counted as kept, which no feed is, so the sizes are on the safe side.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

FEEDS: Final = (100_000, 1_000_000, 5_000_000, 20_000_000)
"""Articles a day, of the table in the documentation."""
WINDOW_DAYS: Final = 7
SLACK_DAYS: Final = 1
SKEW: Final = 2.5
"""How many times the postings of even fingerprints a look-up meets in lane 0 (docs/benchmarks.md)."""
PEAK: Final = 5
"""The busiest minute against the average: set it by your own feed."""
RECORD_BYTES: Final = 1_210
EVENT_BYTES: Final = 540
BODY_BYTES: Final = 2_960
MESSAGE_BYTES: Final = 6_160
CELL_BYTES: Final = 60
"""What HBase keeps of a cell beside its value: row, family, qualifier, time and lengths."""
POSTING_BYTES: Final = 80
SET_POSTING_BYTES: Final = 47
"""A posting as a cell of its own, and in a set (decision 17)."""
SET_POSTINGS_MIN: Final = 8
REPLICAS: Final = 3
HEADROOM: Final = 1.3
"""Room for compactions: a region is written anew beside the old one."""
REGION_BYTES: Final = 5_000_000_000
"""Half of what HBase lets a region grow to before it cuts it."""
REGIONS_MIN: Final = 16
CONSUMER_A_S: Final = 400
"""What a consumer is counted on for, with half of what was measured in hand (docs/benchmarks.md)."""
FINGERPRINT_US: Final = 750
SPLIT_AT: Final = 1_000_000
"""Articles in the window from which 16x28 was faster on HBase."""
_DAY_S: Final = 86_400
_MONTH_DAYS: Final = 30
_MILLION: Final = 1_000_000


class Plan(NamedTuple):
    """A block plan: keys of both lanes, bits of a key's value, and processor time of an article's parts in µs."""

    name: str
    lane_0: int
    lane_1: int
    bits: int
    judge_us: int
    gateway_us: int
    server_us: int

    @property
    def keys(self) -> int:
        """Rows read, and postings written, an article."""
        return self.lane_0 + self.lane_1

    def postings_read(self, articles: int) -> float:
        """Postings that an article's look-up reads with so many in the window."""
        return (self.lane_0 * SKEW + self.lane_1) * articles / (1 << self.bits)


SHORT: Final = Plan("4x16", 4, 4, 16, judge_us=678, gateway_us=430, server_us=1_240)
LONG: Final = Plan("16x28", 16, 4, 28, judge_us=589, gateway_us=293, server_us=928)


@dataclass(frozen=True, slots=True)
class Feed:
    """What so many articles a day ask for."""

    articles_a_day: int

    @property
    def in_window(self) -> int:
        """Articles that one is compared with."""
        return self.articles_a_day * WINDOW_DAYS

    @property
    def held(self) -> int:
        """Articles in the store: window and slack."""
        return self.articles_a_day * (WINDOW_DAYS + SLACK_DAYS)

    @property
    def plan(self) -> Plan:
        """The plan that costs less processor time."""
        return SHORT if self.in_window < SPLIT_AT else LONG

    @property
    def peak_a_s(self) -> float:
        """Articles a second in the busiest minute."""
        return self.articles_a_day / _DAY_S * PEAK

    @property
    def postings_a_row_and_day(self) -> float:
        """What ``store pack`` finds in a row for a bucket of a day."""
        return self.articles_a_day / (1 << self.plan.bits)

    @property
    def pays_to_pack(self) -> bool:
        """Whether a row has as many of a day as a set is made of."""
        return self.postings_a_row_and_day >= SET_POSTINGS_MIN

    @property
    def article_row_bytes(self) -> int:
        """Of an article in the table ``articles``."""
        return RECORD_BYTES + EVENT_BYTES + BODY_BYTES + 2 * CELL_BYTES

    @property
    def posting_bytes(self) -> int:
        """Of an article in the table ``postings``, as cells."""
        return self.plan.keys * POSTING_BYTES

    @property
    def store_bytes(self) -> int:
        """All of it, once."""
        return self.held * (self.article_row_bytes + self.posting_bytes)

    @property
    def disk_bytes(self) -> float:
        """All of it on disks."""
        return self.store_bytes * REPLICAS * HEADROOM

    @property
    def regions(self) -> int:
        """Into how many regions a table is split when it is made."""
        larger = max(self.article_row_bytes, self.posting_bytes) * self.held
        return max(REGIONS_MIN, math.ceil(larger / REGION_BYTES))

    @property
    def topic_bytes(self) -> int:
        """The articles of window and slack in Kafka, on disks."""
        return self.held * MESSAGE_BYTES * REPLICAS

    @property
    def consumers(self) -> int:
        """As many as the peak needs, and one that may be away."""
        return math.ceil(self.peak_a_s / CONSUMER_A_S) + 1

    @property
    def article_us(self) -> int:
        """Processor time of an article, everywhere."""
        return FINGERPRINT_US + self.plan.judge_us + self.plan.gateway_us + self.plan.server_us

    @property
    def cores_at_peak(self) -> float:
        """Cores that are busy then."""
        return self.peak_a_s * self.article_us / _MILLION

    @property
    def core_hours_a_million(self) -> float:
        """Processor time of a million articles."""
        return self.article_us / 3_600

    @property
    def gigabyte_months_a_million(self) -> float:
        """Disk of a million articles, store and topic, for as long as they are held."""
        share = _MILLION / self.held * (WINDOW_DAYS + SLACK_DAYS) / _MONTH_DAYS
        return (self.disk_bytes + self.topic_bytes) * share / 1e9


def table(feeds: Sequence[Feed]) -> str:
    """The table of the documentation, in Markdown: a column a feed."""
    rows = [
        ("articles in the window (7 days)", [f"{one.in_window:,}" for one in feeds]),
        ("articles a second, average / peak", [f"{one.peak_a_s / PEAK:,.1f} / {one.peak_a_s:,.0f}" for one in feeds]),
        ("plan", [f"`{one.plan.name}`" for one in feeds]),
        ("postings read an article", [f"{one.plan.postings_read(one.in_window):,.1f}" for one in feeds]),
        ("the same with `4x16`", [f"{SHORT.postings_read(one.in_window):,.0f}" for one in feeds]),
        ("rows read a second, peak", [f"{one.plan.keys * one.peak_a_s:,.0f}" for one in feeds]),
        ("postings a row and day", [f"{one.postings_a_row_and_day:,.3f}" for one in feeds]),
        ("`store pack`", ["daily" if one.pays_to_pack else "no" for one in feeds]),
        ("store, GB", [f"{one.store_bytes / 1e9:,.1f}" for one in feeds]),
        ("store on disks, GB", [f"{one.disk_bytes / 1e9:,.0f}" for one in feeds]),
        ("`--regions`", [str(one.regions) for one in feeds]),
        ("topic on disks, GB", [f"{one.topic_bytes / 1e9:,.0f}" for one in feeds]),
        ("consumers", [str(one.consumers) for one in feeds]),
        ("cores busy at the peak, all parts", [f"{one.cores_at_peak:,.2f}" for one in feeds]),
        ("core hours a million articles", [f"{one.core_hours_a_million:.2f}" for one in feeds]),
        ("GB months a million articles", [f"{one.gigabyte_months_a_million:.1f}" for one in feeds]),
    ]
    head = ["articles a day", *(f"{one.articles_a_day:,}" for one in feeds)]
    lines = [head, ["---"] * len(head), *([name, *values] for name, values in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> int:
    """Print the table; the exit code."""
    parser = argparse.ArgumentParser(description="Say how large a cluster is needed.")
    parser.add_argument("articles_a_day", type=int, nargs="*", default=list(FEEDS))
    sys.stdout.write(table([Feed(articles) for articles in parser.parse_args().articles_a_day]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
