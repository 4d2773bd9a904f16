"""Computes the size of a deployment for a feed, with pure functions for ``dupwatch size`` and the docs.

docs/operate/sizing.md compares the results with measurements. Sizes of articles come from ``text_sizes``, the plan from
``store_plan``, and the time per article from ``speeds``.
"""

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

from consumer.fingerprint import ANCHORS_POSTED
from consumer.store_tools.speeds import Speed
from consumer.store_tools.store_plan import StorePlan
from consumer.store_tools.text_sizes import PAGE_BYTES, PART_RECORD_BYTES, Language, TextSizes, entry_page_bytes
from storage.hbase.schema import regions_for

DAY_S: Final = 86_400
GB: Final = 1_000_000_000
CHARS: Final = 2_000
COPIES: Final = 0.2
"""The default length of an article in characters, and the default share of copies."""
PEAK: Final = 5.0
"""The busiest minute as a multiple of the average."""
RESERVE: Final = 0.5
"""The planned share of a measured throughput: the rest is for bursts, outages and slower machines."""
BUSY_MAX: Final = 0.6
"""The planned share of the servers' processors at the peak."""
DISK_MAX: Final = 0.7
"""The planned share of disk space in use."""
REPLICAS: Final = 3
HEADROOM: Final = 1.3
"""Disk space as a multiple of the data, because compactions write a region again next to the old files."""
SINK_DAYS: Final = 30
"""How long the topics of a sink keep messages if ``dupwatch topics init`` creates them."""
PARTITIONS_MIN: Final = 6
PARTITIONS_A_CONSUMER: Final = 2
CONSUMER_MB: Final = 768
GATEWAY_MB: Final = 1_024
SERVER_CORES: Final = 8
SERVER_GB: Final = 32
SERVER_DISK_GB: Final = 4_000
BROKER_GB: Final = 8
REGIONS_A_SERVER: Final = 200
SET_POSTINGS_MIN: Final = 8
"""How many postings of the same day a row must have for ``store pack`` to pay off."""
_VERSION_SHARES: Final[dict[Language, float]] = {"zh": 0.67, "mixed": 0.6, "en": 0.54}
"""The share of a record and its verdict that HBase's compression leaves: English keywords compress better."""
CELL_BYTES: Final = 20
"""Bytes of a cell on HBase's disks in addition to its value. Texts are already compressed."""
POSTING_BYTES: Final = 55
NEAR_POSTING_BYTES: Final = 29
"""Bytes of a posting in HBase: in general, and with long keys if postings with the same block value are adjacent."""
_NEAR_ARTICLES: Final = 64 << 16
"""The number of kept articles up to which such postings are adjacent: 64 per block value fit a block of HBase."""
_LMDB_POSTING_BYTES: Final = ((0.05, 112.0), (4.0, 130.0), (math.inf, 110.0))
"""Upper bounds of the mean postings in a row, each with the bytes of a posting in LMDB.

A second posting in a row reserves room.
"""
_KEY_BYTES: Final = 2
"""MessagePack's header of a key in a record."""
_TIMELINE: Final = ((48, 1), (33, 8))
"""Bytes of the keys and values in LMDB's timeline for a version: its arrival and its place."""
_EXPIRY: Final = (40, 1)
"""Bytes of a key and its value in LMDB's list of expiring entries."""
_BATCH: Final = 256
_GENERATIONS: Final = 1.25
"""LMDB never changes a page in place, and reuses replaced pages only after a transaction or two."""


class Feed(NamedTuple):
    """A feed: its articles, the window, and how long articles are stored. ``copies`` is the share of flags."""

    articles_a_day: int
    copies: float
    window_s: int
    lifetime_s: int
    peak: float = PEAK

    @property
    def in_window(self) -> int:
        """The number of kept articles in the window."""
        return max(round(self.articles_a_day * (1 - self.copies) * self.window_s / DAY_S), 1)

    @property
    def peak_a_s(self) -> float:
        """Articles a second in the busiest minute."""
        return self.articles_a_day / DAY_S * self.peak


class TableBytes(NamedTuple):
    """The sizes of HBase's two growing tables, before replication by HDFS."""

    postings: int
    articles: int


@dataclass(frozen=True, slots=True)
class TopicSize:
    """A topic and the size of its messages, without replicas. ``setting`` enables it; "" means always on."""

    name: str
    days: float
    size_bytes: float
    setting: str = ""
    is_on: bool = True


@dataclass(frozen=True, slots=True)
class Sizing:
    """The needs of a feed, with articles of these sizes, this plan and this speed. A ``remote`` store is on HBase."""

    feed: Feed
    texts: TextSizes
    plan: StorePlan
    speed: Speed
    remote: bool
    keep_bodies: bool = True
    parts: bool = False

    @property
    def stored_versions(self) -> float:
        """Versions in the store, including flagged versions, over window and slack."""
        return self.feed.articles_a_day * self.feed.lifetime_s / DAY_S

    @property
    def kept_versions(self) -> float:
        """Kept versions in the store, which have postings."""
        return self.stored_versions * (1 - self.feed.copies)

    @property
    def record_bytes(self) -> float:
        """Bytes of a record with its keys."""
        return stored_record_bytes(self.texts, self.plan, parts=self.parts)

    @property
    def verdict_bytes(self) -> float:
        """Mean bytes of a verdict event, which is longer for a flag."""
        return _verdict_bytes(self.texts, self.feed.copies)

    @property
    def tables(self) -> TableBytes:
        """Bytes of HBase's tables."""
        return table_bytes(
            self.stored_versions,
            self.texts,
            self.plan,
            self.feed.copies,
            keep_bodies=self.keep_bodies,
            parts=self.parts,
        )

    @property
    def store_bytes(self) -> float:
        """Bytes of the store, without replicas."""
        return float(sum(self.tables)) if self.remote else self._lmdb_bytes

    @property
    def postings_bytes(self) -> float:
        """Bytes of the store's postings, which look-ups read."""
        return (
            self.tables.postings if self.remote else self.kept_versions * self.plan.postings * self._lmdb_posting_bytes
        )

    @property
    def disk_bytes(self) -> float:
        """Bytes of the store on all disks."""
        return self.store_bytes * REPLICAS * HEADROOM if self.remote else self.store_bytes / DISK_MAX

    @property
    def regions(self) -> int:
        """Regions of each large table."""
        return max(map(regions_for, self.tables))

    @property
    def consumers(self) -> int:
        """Consumers for the peak, and one spare."""
        return math.ceil(self.feed.peak_a_s / (self.speed.consumer_a_s * RESERVE)) + 1

    @property
    def partitions(self) -> int:
        """Partitions of a topic, with room to grow: partitions cannot be removed, and adding some moves ids."""
        return max(PARTITIONS_MIN, self.consumers * PARTITIONS_A_CONSUMER)

    @property
    def gateways(self) -> int:
        """Thrift gateways, of one core each; at least two."""
        return max(2, math.ceil(self.feed.peak_a_s * self.speed.gateway_us / 1e6 / BUSY_MAX))

    @property
    def region_servers(self) -> int:
        """Region servers, by processors, disks and regions; at least three."""
        by_cores = self.feed.peak_a_s * self.speed.server_us / 1e6 / (SERVER_CORES * BUSY_MAX)
        by_disks = self.disk_bytes / (SERVER_DISK_GB * GB * DISK_MAX)
        by_regions = 2 * self.regions / REGIONS_A_SERVER
        return max(REPLICAS, math.ceil(max(by_cores, by_disks, by_regions)))

    @property
    def cores_at_peak(self) -> float:
        """Busy processor cores at the peak, in all components."""
        return self.feed.peak_a_s * self.speed.busy_us / 1e6

    @property
    def store_a_s(self) -> float:
        """Articles a second that one LMDB store accepts, since only one process writes at a time."""
        return 1e6 / self.speed.judge_us * RESERVE

    @property
    def memory_mb(self) -> float:
        """Memory of an LMDB store's machine: for the consumers, and for its postings in the page cache."""
        return self.consumers * CONSUMER_MB + self.postings_bytes / 1e6

    @property
    def brokers(self) -> int:
        """Brokers, by their disks; at least as many as replicas."""
        return max(REPLICAS, math.ceil(self.topic_disk_bytes / (SERVER_DISK_GB * GB * DISK_MAX)))

    @property
    def postings_a_row_and_day(self) -> float:
        """How many postings of the same day a row has; ``store pack`` can merge them."""
        each = self.feed.articles_a_day * (1 - self.feed.copies)
        return each / (1 << self.plan.plan.key_bits)

    @property
    def pays_to_pack(self) -> bool:
        """Whether a row of an HBase store has enough postings of one day for a posting set."""
        return self.remote and self.postings_a_row_and_day >= SET_POSTINGS_MIN

    def topics(self, *, verdicts: bool = False, unique: bool = False) -> tuple[TopicSize, ...]:
        """Return the topics that grow with the feed.

        ``verdicts`` and ``unique`` say whether the last two are configured.
        """
        a_day, texts, days = self.feed.articles_a_day, self.texts, self.feed.lifetime_s / DAY_S
        flags, kept = a_day * self.feed.copies, a_day * (1 - self.feed.copies)
        all_verdicts = flags * texts.flag_bytes + kept * texts.verdict_bytes
        return (
            TopicSize("articles", days, a_day * days * texts.message_bytes),
            TopicSize("duplicates", SINK_DAYS, flags * SINK_DAYS * texts.flag_bytes),
            TopicSize("verdicts", SINK_DAYS, SINK_DAYS * all_verdicts, 'sink.emit = "all"', verdicts),
            TopicSize("unique", SINK_DAYS, kept * SINK_DAYS * texts.message_bytes, "kafka.unique = true", unique),
        )

    @property
    def topic_disk_bytes(self) -> float:
        """Bytes of the topics that every feed has, with replicas."""
        return REPLICAS * sum(topic.size_bytes for topic in self.topics() if topic.is_on)

    @property
    def _lmdb_posting_bytes(self) -> float:
        a_row = self.kept_versions / (1 << self.plan.plan.key_bits)
        return next(each_bytes for most, each_bytes in _LMDB_POSTING_BYTES if a_row <= most)

    @property
    def _lmdb_bytes(self) -> float:
        """Bytes of the pages in use, and of replaced pages that cannot be reused yet."""
        appended = [entry_page_bytes(self.record_bytes), entry_page_bytes(self.verdict_bytes), _list_bytes(*_EXPIRY)]
        timeline = self.stored_versions * sum(_list_bytes(*entry) for entry in _TIMELINE)
        # A batch appends its records, verdicts and bodies, and changes old pages of timelines and postings only.
        changed = _changed_bytes(timeline, _BATCH)
        changed += _changed_bytes(self.postings_bytes, _BATCH * (1 - self.feed.copies) * self.plan.postings)
        bodies = self.stored_versions * self.texts.page_bytes if self.keep_bodies else 0
        versions = self.stored_versions * sum(appended) + timeline + bodies
        return versions + self.postings_bytes + _GENERATIONS * changed


def _list_bytes(key_bytes: int, value_bytes: int) -> float:
    return entry_page_bytes(value_bytes, key_bytes)


def _changed_bytes(size_bytes: float, touches: float) -> float:
    """Return the size of the pages that a batch changes at random places of a database of this size."""
    pages = max(size_bytes / PAGE_BYTES, 1)
    return pages * -math.expm1(-touches / pages) * PAGE_BYTES


def table_bytes(
    stored: float, texts: TextSizes, plan: StorePlan, copies: float = 0.0, *, keep_bodies: bool, parts: bool
) -> TableBytes:
    """Return the sizes of HBase's tables with this many versions. The share ``copies`` of them has no postings."""
    body = texts.packed_bytes + CELL_BYTES if keep_bodies else 0
    version = stored_record_bytes(texts, plan, parts=parts) + _verdict_bytes(texts, copies)
    kept = stored * (1 - copies)
    each = NEAR_POSTING_BYTES if plan.plan.parts and kept <= _NEAR_ARTICLES else POSTING_BYTES
    articles = stored * (version * _VERSION_SHARES[texts.language] + CELL_BYTES + body)
    return TableBytes(round(kept * plan.postings * each), round(articles))


def stored_record_bytes(texts: TextSizes, plan: StorePlan, *, parts: bool) -> float:
    """Return the bytes of a record with its keys, and if ``parts`` with its anchors and a sample."""
    keys = plan.postings - (ANCHORS_POSTED if parts else 0)
    assumed_parts = PART_RECORD_BYTES if parts and not texts.sample else 0
    return texts.record_bytes + keys * (plan.plan.key_bytes + _KEY_BYTES) + assumed_parts


def _verdict_bytes(texts: TextSizes, copies: float) -> float:
    return texts.verdict_bytes * (1 - copies) + texts.flag_bytes * copies
