"""``dupwatch store pack`` and ``unpack`` on a real HBase."""

import json
from datetime import UTC, datetime

import pytest

from tests.cli.command import run_process
from tests.hbase import packed_rows
from tests.hbase.packed_rows import KEYS, records, wanted

pytestmark = pytest.mark.servers


def test_pack_and_unpack(hbase_address: str, hbase_namespace: str) -> None:
    """The commands say in figures what they did; what is found stays the same."""
    url = f"hbase://{hbase_address}/{hbase_namespace}"
    store = packed_rows.opened(url)
    live = records(40)
    store.add(live)
    packed_rows.wait_until_old(1000)
    now = datetime.now(UTC).isoformat()
    ended = run_process("store", "pack", "--store", url, "--bucket-s", "1", "--before", now, "--json")
    assert ended.code == 0, ended.err
    tally = json.loads(ended.out)
    assert (tally["rows"], tally["postings"]) == (len(KEYS), 40 * len(KEYS))
    assert tally["bytes_after"] < tally["bytes_before"]
    assert packed_rows.found(store) == wanted(live)
    refused = run_process("store", "pack", "--store", url)
    assert refused.code == 4
    assert "buckets of 1 seconds, not 86400" in refused.err
    ended = run_process("store", "unpack", "--store", url)
    assert ended.code == 0, ended.err
    assert f"{40 * len(KEYS)}" in ended.out.decode()
    assert packed_rows.found(store) == wanted(live)
    assert packed_rows.family(store, b"s:") == []
    store.close()
