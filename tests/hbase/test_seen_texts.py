"""Texts that come back, on a real HBase: the table is made where it is asked for, and remembers what a run has seen."""

import json
import os
from pathlib import Path

import happybase
import pytest

from deploy.local.hbase import Hbase, ThriftGateway
from deploy.local.shell import make_tables
from storage.errors import StoreDamaged
from storage.hbase import HbaseOptions, parse_place
from storage.hbase.schema import schema_of
from storage.hbase.store import HbaseStore
from storage.hbase.table_script import render_script
from storage.seen import SeenChange, SeenTimes
from tests.cli.command import FAST, SAMPLE, run_process

pytestmark = pytest.mark.servers

REMEMBERING = ("--set", "judge.seen_days=90")


@pytest.fixture
def without_texts(hbase_servers: tuple[Hbase, ThriftGateway]) -> str:
    """Return the URL of a store whose tables were made before texts were to be remembered."""
    hbase, gateway = hbase_servers
    namespace = f"unseen_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    make_tables(hbase.conf, render_script(schema_of(namespace, 90 * 86_400)))
    return f"hbase://{gateway.address}/{namespace}"


def test_a_store_gets_its_table_when_it_is_to_remember_texts(
    hbase_servers: tuple[Hbase, ThriftGateway], without_texts: str, tmp_path: Path
) -> None:
    """Until then a run that is to remember texts is refused, and others go on."""
    refused = run_process(
        "run", "--source", SAMPLE, "--sink", tmp_path / "a", "--store", without_texts, *REMEMBERING, *FAST
    )
    assert refused.code == 4
    assert "There is no table unseen_" in refused.err
    assert ":seen; run: dupwatch store init --apply" in refused.err
    plain = run_process("run", "--source", SAMPLE, "--sink", tmp_path / "b", "--store", without_texts, *FAST)
    assert plain.code == 0, plain.err
    stats = run_process("store", "stats", "--json", "--store", without_texts)
    assert json.loads(stats.out)["seen_texts"] == 0

    namespace = parse_place(without_texts).namespace
    make_tables(
        hbase_servers[0].conf, render_script(schema_of(namespace, 90 * 86_400, regions=2, seen_ttl_s=90 * 86_400))
    )
    connection = happybase.Connection("127.0.0.1", hbase_servers[1].port)
    try:
        described = connection.table(f"{namespace}:seen").families()
    finally:
        connection.close()
    assert described[b"t"]["time_to_live"] == 90 * 86_400
    judged = run_process(
        "run", "--source", SAMPLE, "--sink", tmp_path / "c", "--store", without_texts, *REMEMBERING, *FAST
    )
    assert judged.code == 0, judged.err
    shown = run_process("store", "stats", "--json", "--store", without_texts)
    assert shown.code == 0, shown.err
    assert json.loads(shown.out)["seen_texts"] > 0

    longer = run_process("doctor", "--source", SAMPLE, "--store", without_texts, "--set", "judge.seen_days=365")
    assert longer.code == 4
    assert "TTL is 7776000 seconds, but must be at least 31536000 seconds" in " ".join(longer.out.decode().split())


def test_a_damaged_entry_is_named(hbase_address: str, hbase_namespace: str) -> None:
    """By its row, and with what to do."""
    place = parse_place(f"hbase://{hbase_address}/{hbase_namespace}")
    store = HbaseStore.open(place, HbaseOptions(seen_ttl_s=1))
    digest = b"\1" * 16
    store.change_seen([SeenChange(digest, None, SeenTimes(1, 2, 3, 4))])
    host, port = hbase_address.split(":")
    connection = happybase.Connection(host, int(port))
    connection.table(f"{hbase_namespace}:seen").put(digest, {b"t:v": b"short"})
    connection.close()
    with pytest.raises(StoreDamaged, match=f"The row {digest.hex()} of seen is damaged: it has 5 bytes instead of 32"):
        store.seen([digest])
    store.close()
