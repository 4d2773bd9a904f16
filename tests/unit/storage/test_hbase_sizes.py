"""How many regions a table of a size starts with."""

import pytest

from storage.hbase.schema import regions_for

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
