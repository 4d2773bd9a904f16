"""The load tool for measurements writes what a store with this many articles has."""

import numpy as np
import pytest

from benchmarks.hbase import load, look_up
from benchmarks.speed.codes import CodeModel
from benchmarks.speed.preload import draw_entries, key_columns
from consumer.fingerprint import BlockPlan
from storage.clock import MS_PER_DAY, now_ms
from storage.postings import POSTING_DTYPE
from tests.hbase import packed_rows

pytestmark = pytest.mark.servers


@pytest.mark.parametrize("days", [0, 2])
def test_filled_store(hbase_address: str, hbase_namespace: str, days: int) -> None:
    """Hot and packed, every row has its postings; packed, full rows have a set a day."""
    url = f"hbase://{hbase_address}/{hbase_namespace}"
    plan = BlockPlan.named("4x16")
    rng = np.random.default_rng(3)
    # Few classes of fixed bits: rows as full as those of a large store.
    shares = np.where(rng.random((4, 64)) < 0.5, np.float32(0.02), np.float32(0.98))
    entries = draw_entries(CodeModel(np.full(4, 0.25), shares), 400, rng, bands=1)
    progress = list(load.fill(url, plan, entries, days))
    assert progress[-1] == (400 * 5, 400 * 5)
    columns = list(key_columns(plan, entries))
    keys = [key.tobytes() for column in columns for key in column.keys]
    store = packed_rows.opened(url)
    found = packed_rows.found(store, keys)
    lived = [
        (column, load.as_lived(column.postings, days or load.DAYS, now_ms() // MS_PER_DAY * MS_PER_DAY))
        for column in columns
    ]
    for column, postings in lived:
        for number, key in enumerate(column.keys):
            row = postings[column.starts[number] : column.starts[number + 1]]
            assert found[key.tobytes()] == {posting.tobytes() for posting in row}
    sets = packed_rows.family(store, b"s:")
    assert len(sets) == len(set(sets))
    assert (len(sets) > days) == bool(days)
    queries = look_up.queries_of(plan, entries)
    assert look_up.look_up(store, queries, 128) == look_up.look_up(store, queries, 400)
    store.close()


def test_postings_as_lived() -> None:
    """Codes and numbers stay; no two references are alike; arrivals lie within the days, each on its own."""
    postings = np.zeros(1_000, POSTING_DTYPE)
    postings["code"] = postings["sequence"] = np.arange(1_000)
    lived = load.as_lived(postings, 4, 10 * MS_PER_DAY)
    assert (lived["code"] == postings["code"]).all()
    assert (lived["sequence"] == postings["sequence"]).all()
    assert (
        len({posting.tobytes()[place : place + 8] for posting in lived["reference"] for place in range(0, 32, 8)})
        == 4_000
    )
    assert (lived["time_ms"] // MS_PER_DAY == 9 - postings["sequence"] % 4).all()
