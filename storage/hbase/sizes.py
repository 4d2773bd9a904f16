"""How many bytes the articles of a store take in HBase's tables, and into how many regions to split these.

The bytes were measured with texts of 2,000 characters; ``deploy.kubernetes.sizing`` has the same figures. Nothing here
does I/O.
"""

from typing import Final, NamedTuple

from storage.hbase.schema import REGIONS, REGIONS_MAX

RECORD_BYTES: Final = 1_210
EVENT_BYTES: Final = 540
BODY_BYTES: Final = 2_960
CELL_BYTES: Final = 60
"""Bytes that HBase stores for a cell in addition to its value: row, family, qualifier, time and lengths."""
POSTING_BYTES: Final = 80
REGION_BYTES: Final = 5_000_000_000
"""The size of a region to aim for: half of that at which HBase splits one."""


class TableBytes(NamedTuple):
    """The bytes of the two tables that grow, before HDFS replicates them."""

    postings: int
    articles: int


def table_bytes(articles: int, postings_each: int, *, keep_bodies: bool) -> TableBytes:
    """Return the bytes of this many articles, each with this many postings in cells of their own."""
    version = RECORD_BYTES + EVENT_BYTES + CELL_BYTES
    body = BODY_BYTES + CELL_BYTES if keep_bodies else 0
    return TableBytes(articles * postings_each * POSTING_BYTES, articles * (version + body))


def regions_for(size_bytes: int, servers: int = 1) -> int:
    """Return how many regions a table of this size starts with.

    At least ``REGIONS``, since a gateway does not say how many servers there are, and one for each of ``servers``.
    """
    return min(max(REGIONS, servers, -(-size_bytes // REGION_BYTES)), REGIONS_MAX)
