"""Compute how large a cluster must be: ``python -m deploy.kubernetes.sizing [ARTICLES_A_DAY...]`` prints a table.

docs/sizing.md explains the formulas. The constants were measured with articles of 2,000 characters.
Every article is assumed to be kept; real feeds contain duplicates, so the sizes are on the safe side.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

FEEDS: Final = (100_000, 1_000_000, 5_000_000, 20_000_000)
"""The columns of the table in docs/sizing.md, in articles a day."""
WINDOW_DAYS: Final = 7
SLACK_DAYS: Final = 1
SKEW: Final = 2.5
"""Postings read by a look-up in lane 0, relative to evenly spread fingerprints (docs/benchmarks.md)."""
PEAK: Final = 5
"""The busiest minute as a multiple of the average. Adjust it to your feed."""
RECORD_BYTES: Final = 1_210
EVENT_BYTES: Final = 540
BODY_BYTES: Final = 2_960
MESSAGE_BYTES: Final = 6_160
CELL_BYTES: Final = 60
"""Bytes that HBase stores for a cell in addition to its value: row, family, qualifier, time and lengths."""
POSTING_BYTES: Final = 80
SET_POSTING_BYTES: Final = 47
"""Bytes of a posting in a cell of its own, and in a set (decision 17)."""
SET_POSTINGS_MIN: Final = 8
REPLICAS: Final = 3
HEADROOM: Final = 1.3
"""Free space for compactions, which write a region again next to the old files."""
REGION_BYTES: Final = 5_000_000_000
"""Half of the size at which HBase splits a region."""
REGIONS_MIN: Final = 16
CONSUMER_A_S: Final = 400
"""Planned throughput of a consumer: half of the measured one (docs/benchmarks.md)."""
FINGERPRINT_US: Final = 750
SPLIT_AT: Final = 1_000_000
"""With this many articles in the window or more, 16x28 was faster on HBase."""
_DAY_S: Final = 86_400
_MONTH_DAYS: Final = 30
_MILLION: Final = 1_000_000


class Plan(NamedTuple):
    """A block plan: keys of both lanes, value bits of a key, and processor time of each part of an article in µs."""

    name: str
    lane_0: int
    lane_1: int
    bits: int
    judge_us: int
    gateway_us: int
    server_us: int

    @property
    def keys(self) -> int:
        """Rows read, and postings written, per article."""
        return self.lane_0 + self.lane_1

    def postings_read(self, articles: int) -> float:
        """Return the postings that a look-up reads with this many articles in the window."""
        return (self.lane_0 * SKEW + self.lane_1) * articles / (1 << self.bits)


SHORT: Final = Plan("4x16", 4, 4, 16, judge_us=678, gateway_us=430, server_us=1_240)
LONG: Final = Plan("16x28", 16, 4, 28, judge_us=589, gateway_us=293, server_us=928)


@dataclass(frozen=True, slots=True)
class Feed:
    """The requirements of a feed with this many articles a day."""

    articles_a_day: int

    @property
    def in_window(self) -> int:
        """The number of articles that each one is compared with."""
        return self.articles_a_day * WINDOW_DAYS

    @property
    def articles_kept(self) -> int:
        """Articles in the store, over window and slack."""
        return self.articles_a_day * (WINDOW_DAYS + SLACK_DAYS)

    @property
    def plan(self) -> Plan:
        """The plan that needs less processor time."""
        return SHORT if self.in_window < SPLIT_AT else LONG

    @property
    def peak_a_s(self) -> float:
        """Articles per second in the busiest minute."""
        return self.articles_a_day / _DAY_S * PEAK

    @property
    def postings_a_row_and_day(self) -> float:
        """Postings of one day in a row, which ``store pack`` can merge."""
        return self.articles_a_day / (1 << self.plan.bits)

    @property
    def pays_to_pack(self) -> bool:
        """Whether a row has enough postings of one day for a posting set."""
        return self.postings_a_row_and_day >= SET_POSTINGS_MIN

    @property
    def article_row_bytes(self) -> int:
        """Bytes of an article in the table ``articles``."""
        return RECORD_BYTES + EVENT_BYTES + BODY_BYTES + 2 * CELL_BYTES

    @property
    def posting_bytes(self) -> int:
        """Bytes of an article in the table ``postings``, as cells."""
        return self.plan.keys * POSTING_BYTES

    @property
    def store_bytes(self) -> int:
        """Bytes of the whole store, without replicas."""
        return self.articles_kept * (self.article_row_bytes + self.posting_bytes)

    @property
    def disk_bytes(self) -> float:
        """Bytes of the store on disks, with replicas."""
        return self.store_bytes * REPLICAS * HEADROOM

    @property
    def regions(self) -> int:
        """The number of regions that a new table is split into."""
        larger = max(self.article_row_bytes, self.posting_bytes) * self.articles_kept
        return max(REGIONS_MIN, math.ceil(larger / REGION_BYTES))

    @property
    def topic_bytes(self) -> int:
        """Bytes on Kafka's disks of the articles of window and slack."""
        return self.articles_kept * MESSAGE_BYTES * REPLICAS

    @property
    def consumers(self) -> int:
        """The number that the peak needs, plus a spare."""
        return math.ceil(self.peak_a_s / CONSUMER_A_S) + 1

    @property
    def article_us(self) -> int:
        """Total processor time per article, in all processes."""
        return FINGERPRINT_US + self.plan.judge_us + self.plan.gateway_us + self.plan.server_us

    @property
    def cores_at_peak(self) -> float:
        """Busy cores at the peak."""
        return self.peak_a_s * self.article_us / _MILLION

    @property
    def core_hours_a_million(self) -> float:
        """Processor time per million articles."""
        return self.article_us / 3_600

    @property
    def gigabyte_months_a_million(self) -> float:
        """Disk space of a million articles, in store and topic, for as long as they are kept."""
        share = _MILLION / self.articles_kept * (WINDOW_DAYS + SLACK_DAYS) / _MONTH_DAYS
        return (self.disk_bytes + self.topic_bytes) * share / 1e9


def table(feeds: Sequence[Feed]) -> str:
    """Return the table of docs/sizing.md, in Markdown, with a column for each feed."""
    rows = [
        ("articles in the window (7 days)", [f"{feed.in_window:,}" for feed in feeds]),
        (
            "articles per second, average / peak",
            [f"{each.peak_a_s / PEAK:,.1f} / {each.peak_a_s:,.0f}" for each in feeds],
        ),
        ("plan", [f"`{feed.plan.name}`" for feed in feeds]),
        ("postings read per article", [f"{feed.plan.postings_read(feed.in_window):,.1f}" for feed in feeds]),
        ("the same with `4x16`", [f"{SHORT.postings_read(feed.in_window):,.0f}" for feed in feeds]),
        ("rows read per second, peak", [f"{feed.plan.keys * feed.peak_a_s:,.0f}" for feed in feeds]),
        ("postings per row and day", [f"{feed.postings_a_row_and_day:,.3f}" for feed in feeds]),
        ("`store pack`", ["daily" if feed.pays_to_pack else "no" for feed in feeds]),
        ("store, GB", [f"{feed.store_bytes / 1e9:,.1f}" for feed in feeds]),
        ("store on disks, GB", [f"{feed.disk_bytes / 1e9:,.0f}" for feed in feeds]),
        ("`--regions`", [str(feed.regions) for feed in feeds]),
        ("topic on disks, GB", [f"{feed.topic_bytes / 1e9:,.0f}" for feed in feeds]),
        ("consumers", [str(feed.consumers) for feed in feeds]),
        ("cores busy at the peak, all parts", [f"{feed.cores_at_peak:,.2f}" for feed in feeds]),
        ("core hours per million articles", [f"{feed.core_hours_a_million:.2f}" for feed in feeds]),
        ("GB-months per million articles", [f"{feed.gigabyte_months_a_million:.1f}" for feed in feeds]),
    ]
    head = ["articles per day", *(f"{feed.articles_a_day:,}" for feed in feeds)]
    lines = [head, ["---"] * len(head), *([name, *values] for name, values in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(description="Say how large a cluster is needed.")
    parser.add_argument("articles_a_day", type=int, nargs="*", default=list(FEEDS))
    sys.stdout.write(table([Feed(articles) for articles in parser.parse_args().articles_a_day]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
