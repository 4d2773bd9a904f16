"""The load tool for measurements: what it writes is what a store with so many articles would find."""

import numpy as np
import pytest

from benchmarks.hbase import load, look_up
from benchmarks.speed.codes import CodeModel
from benchmarks.speed.preload import draw_entries, key_columns, memory_store
from consumer.fingerprint import BlockPlan
from tests.hbase import packed_rows

pytestmark = pytest.mark.servers


@pytest.mark.parametrize("days", [0, 2])
def test_filled_store(hbase_address: str, hbase_namespace: str, days: int) -> None:
    """Hot and packed, every row has the postings that a store in memory has; packed, full rows have a set a day."""
    url = f"hbase://{hbase_address}/{hbase_namespace}"
    plan = BlockPlan.named("4x16")
    rng = np.random.default_rng(3)
    # Few classes of fixed bits: rows as full as those of a large store.
    shares = np.where(rng.random((4, 64)) < 0.5, np.float32(0.02), np.float32(0.98))
    entries = draw_entries(CodeModel(np.full(4, 0.25), shares), 400, rng, bands=1)
    progress = list(load.fill(url, plan, entries, days))
    assert progress[-1] == (400 * 5, 400 * 5)
    expected = memory_store(plan, entries)
    keys = [key.tobytes() for column in key_columns(plan, entries) for key in column.keys]
    store = packed_rows.opened(url)
    found = packed_rows.found(store, keys)
    for key, row in zip(keys, expected.look_up(keys), strict=True):
        width = row.layout.posting_bytes
        assert found[key] == {row.packed[place : place + width] for place in range(0, len(row.packed), width)}
    sets = packed_rows.family(store, b"s:")
    assert len(sets) == len(set(sets))
    assert (len(sets) > days) == bool(days)
    queries = look_up.queries_of(plan, entries)
    assert look_up.look_up(store, queries, 128) == look_up.look_up(store, queries, 400)
    store.close()
