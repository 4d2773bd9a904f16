"""How many regions a table of a size starts with, and that the bytes are those of the table in the documentation."""

import pytest

from deploy.kubernetes import sizing
from storage.hbase import schema
from storage.hbase.schema import regions_for, table_bytes

GB = 1_000_000_000


@pytest.mark.parametrize(
    ("size_bytes", "servers", "regions"),
    [
        (0, 1, 16),
        (80 * GB, 1, 16),
        (80 * GB + 1, 1, 17),
        (1_000 * GB, 3, 200),
        (0, 40, 40),
        (1_000 * GB, 300, 300),
        (100_000 * GB, 1, 4096),
    ],
)
def test_regions(size_bytes: int, servers: int, regions: int) -> None:
    """One for each 5 GB and for each server, but not fewer than by default, nor more than a table may have."""
    assert regions_for(size_bytes, servers) == regions


@pytest.mark.parametrize("articles_a_day", sizing.FEEDS)
def test_the_table_of_sizes_has_the_same_bytes(articles_a_day: int) -> None:
    """docs/sizing.md is computed by a module that may not import this one."""
    feed = sizing.Feed(articles_a_day)
    found = table_bytes(feed.articles_kept, feed.plan.keys, keep_bodies=True)
    assert sum(found) == feed.store_bytes
    assert max(map(regions_for, found)) == feed.regions
    assert schema.REGION_BYTES == sizing.REGION_BYTES


def test_texts_take_most() -> None:
    """Without them an article has a version only."""
    assert table_bytes(10, 20, keep_bodies=False) == (16_000, 18_100)
