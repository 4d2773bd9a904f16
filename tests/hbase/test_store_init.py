"""``dupwatch store init --articles`` on a real HBase: the plan it records is the only one that consumers may have."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import happybase
import msgspec
import pytest

from consumer.config.loading import load_config
from consumer.doctor.stores import check_size
from consumer.fingerprint import BlockPlan
from consumer.judge import plan_choice
from consumer.judge.settings import JudgeSettings
from deploy.local.hbase import Hbase, ThriftGateway
from deploy.local.shell import make_tables
from storage.hbase import HbaseOptions, parse_place
from storage.hbase.calls import Gateways
from storage.hbase.connection import CellChange
from storage.hbase.schema import PLAN_ROW, schema_of
from storage.hbase.store import HbaseStore
from storage.hbase.table_script import render_script
from storage.records import CapacityPlan, encode_planned
from tests.builders import make_record
from tests.cli.command import FAST, ROOT, SAMPLE, Outcome, environment, run_process

pytestmark = pytest.mark.servers

_QUICK_SHELL = """
import subprocess, sys
from pathlib import Path
from deploy.local.shell import make_tables
try:
    print(make_tables(Path(sys.argv[1]), sys.stdin.read()))
except subprocess.CalledProcessError as error:
    print(error.stdout)
    sys.exit(1)
"""


class Tables:
    """A namespace of this worker's own, and the commands on it."""

    def __init__(self, hbase: Hbase, gateway: ThriftGateway) -> None:
        self.namespace = f"planned_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
        self.url = f"hbase://{gateway.address}/{self.namespace}"
        self._gateway = gateway
        program = shlex.quote(sys.executable)
        self.shell = f"{program} -m deploy.local.shell --conf {hbase.conf}"
        self.quick_shell = f"{program} -c {shlex.quote(_QUICK_SHELL)} {hbase.conf}"

    def init(self, articles: int, shell: str | None = None) -> Outcome:
        """Run ``store init --apply`` for so many articles; with half of the shell, but for the first time."""
        options = ("--articles", str(articles), "--apply", "--regions", "2", "--shell", shell or self.quick_shell)
        return run_process("store", "init", "--store", self.url, *options, env=environment(PYTHONPATH=str(ROOT)))

    def run(self, sink: Path, *options: str) -> Outcome:
        """Judge the sample feed into the store."""
        return run_process("run", "--source", SAMPLE, "--sink", sink, "--store", self.url, *options, *FAST)

    def made_for(self) -> tuple[CapacityPlan | None, bytes | None]:
        """What the store is made for, and what it is bound to."""
        store = HbaseStore.open(parse_place(self.url))
        try:
            return store.planned(), store.settings()
        finally:
            store.close()

    def regions(self, table: str) -> list[bytes]:
        """Where the regions of a table begin."""
        connection = happybase.Connection("127.0.0.1", self._gateway.port)
        try:
            return [
                region.startKey for region in connection.client.getTableRegions(f"{self.namespace}:{table}".encode())
            ]
        finally:
            connection.close()


def test_a_store_is_made_for_a_plan(hbase_servers: tuple[Hbase, ThriftGateway], tmp_path: Path) -> None:
    """Recorded by the script, kept, and its consumers take it; another plan is refused before and after."""
    tables = Tables(*hbase_servers)
    made = tables.init(2_000_000, tables.shell)
    assert made.code == 0, made.err
    assert f"recording the plan 16x28 for 2000000 articles in {tables.namespace}:meta" in made.err
    assert tables.made_for() == (CapacityPlan(2_000_000, "16x28"), None)
    assert tables.regions("postings") == [b"", bytes.fromhex("028000")]
    again = tables.init(3_000_000)
    assert again.code == 0, again.err
    assert "creating" not in again.err
    assert tables.made_for() == (CapacityPlan(3_000_000, "16x28"), None)
    other = tables.init(1_000)
    assert (other.code, tables.made_for()) == (4, (CapacityPlan(3_000_000, "16x28"), None)), other.err
    assert "the store is made for the plan 16x28, not 4x16, and nothing was changed" in other.err

    refused = tables.run(tmp_path / "refused.jsonl", "--set", "judge.plan=4x16")
    assert refused.code == 4
    assert 'judge.plan is 4x16. Set judge.plan to "16x28", or name another store' in refused.err
    assert tables.made_for() == (CapacityPlan(3_000_000, "16x28"), None)
    judged = tables.run(tmp_path / "judged.jsonl")
    assert judged.code == 0, judged.err
    doctor = run_process("doctor", "--source", SAMPLE, "--store", tables.url)
    assert doctor.code == 0, doctor.err
    assert "of 3,000,000 expected; the plan 16x28 fits." in doctor.out.decode()

    bound = tables.init(1_000)
    assert bound.code == 4
    assert "the store is bound to the plan 16x28, not 4x16, and nothing was changed." in bound.err
    assert tables.made_for()[0] == CapacityPlan(3_000_000, "16x28")

    gateways = Gateways(parse_place(tables.url), HbaseOptions())
    gateways.calls().change(f"{tables.namespace}:meta".encode(), [CellChange(PLAN_ROW, b"m:v", b"16x28")])
    gateways.close()
    damaged = run_process("doctor", "--source", SAMPLE, "--store", tables.url)
    assert damaged.code == 4
    assert "The row plan of meta is damaged" in damaged.out.decode()


def test_of_two_that_say_what_a_store_is_made_for_one_is_refused(
    hbase_servers: tuple[Hbase, ThriftGateway], hbase_address: str, hbase_namespace: str
) -> None:
    """The script writes by compare-and-set: what another has written since it looked stays."""
    theirs, ours = CapacityPlan(9, "4x16"), CapacityPlan(3_000_000, "16x28")
    script = render_script(schema_of(hbase_namespace, 365 * 86_400), ours)
    looked = "before = stored.call('plan')\n"
    assert looked in script
    meanwhile = (
        "theirs = Java::OrgApacheHadoopHbaseClient::Put.new('plan'.to_java_bytes)\n"
        f"connection.getTable(plans).put(theirs.addColumn(*cell, '{encode_planned(theirs).decode()}'.to_java_bytes))\n"
    )
    with pytest.raises(subprocess.CalledProcessError) as failed:
        make_tables(hbase_servers[0].conf, script.replace(looked, looked + meanwhile))
    assert "another plan was recorded at the same time; run this again" in failed.value.stdout
    store = HbaseStore.open(parse_place(f"hbase://{hbase_address}/{hbase_namespace}"))
    assert store.planned() == theirs
    store.close()


def test_an_outgrown_window_is_found_by_a_sample(
    hbase_address: str, hbase_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The doctor names the larger plan and the commands that move to it."""
    url = f"hbase://{hbase_address}/{hbase_namespace}"
    given = {"store": {"url": url}, "source": {"url": "kafka://broker:9092/articles"}}
    config, settings = load_config(None, given), JudgeSettings(BlockPlan.named("4x16"), "")
    store = HbaseStore.open(parse_place(url))
    store.agree(settings.encode())
    records = [make_record(str(number), str(number).encode()) for number in range(20_000)]
    # A sample reads lane 0 only.
    store.add([msgspec.structs.replace(record, keys=record.keys[:4]) for record in records])
    store.close()
    (fits,) = check_size(config, lambda: settings)
    assert fits.status == "ok"
    assert "the plan 4x16 fits" in fits.found
    # 20,000 articles read four postings each: far from one, whatever rows the sample draws.
    monkeypatch.setattr(plan_choice, "_OUTGROWN_POSTINGS", {True: 1})
    (grown,) = check_size(config, lambda: settings)
    assert grown.status == "warning"
    assert "has outgrown the plan 4x16" in grown.found
    assert f"dupwatch migrate --config NEW --from-group dupwatch --from-store {url}" in (grown.remedy or "")
