"""The command line on an HBase store: a run judges as with LMDB, and every command that looks into a store works."""

import json
from pathlib import Path

import pytest

from tests.cli.command import FAST, SAMPLE, json_lines, run_process

pytestmark = pytest.mark.servers


def untimed(path: Path) -> list[dict[str, object]]:
    """The verdicts of a run without the fields that say when they were reached."""
    events = json_lines(path.read_bytes())
    return [{name: value for name, value in event.items() if not name.endswith(("_at", "_ms"))} for event in events]


def test_a_run_judges_as_with_lmdb_and_can_be_looked_into(
    hbase_address: str, hbase_namespace: str, tmp_path: Path
) -> None:
    """The same verdicts but for times; a second run has nothing to do; what looks in works, and so does a release."""
    hbase = ("--store", f"hbase://{hbase_address}/{hbase_namespace}", *FAST)
    lmdb = ("--store", f"lmdb:{tmp_path / 'store'}", *FAST)
    for store, sink in ((hbase, "hbase.jsonl"), (lmdb, "lmdb.jsonl")):
        ended = run_process("run", "--source", SAMPLE, "--sink", tmp_path / sink, "--emit", "all", *store)
        assert ended.code == 0, ended.err
    verdicts = untimed(tmp_path / "hbase.jsonl")
    assert verdicts == untimed(tmp_path / "lmdb.jsonl")
    before = (tmp_path / "hbase.jsonl").read_bytes()
    again = run_process("run", "--source", SAMPLE, "--sink", tmp_path / "hbase.jsonl", "--emit", "all", *hbase)
    assert (again.code, (tmp_path / "hbase.jsonl").read_bytes()) == (0, before)
    flag = next(verdict for verdict in verdicts if verdict.get("duplicate_of"))
    report = {
        "show": run_process("show", str(flag["id"]), "--json", *hbase),
        "explain": run_process("explain", str(flag["id"]), str(flag["duplicate_of"]), *hbase),
        "query": run_process("query", SAMPLE, *hbase),
        "release": run_process("release", str(flag["id"]), "--yes", "--json", *hbase),
        "stats": run_process("store", "stats", "--json", *hbase),
        "verify": run_process("store", "verify", "--json", *hbase),
    }
    assert {name: ended.code for name, ended in report.items()} == dict.fromkeys(report, 0), report
    assert json.loads(report["release"].out)["released"]["duplicate_of"] == flag["duplicate_of"]
    assert json.loads(report["stats"].out)["versions"] == json.loads(report["verify"].out)["versions"] > 200
    assert json.loads(report["verify"].out)["wrong"] == []


def test_a_namespace_without_tables_is_refused_with_what_makes_them(hbase_address: str) -> None:
    """Neither a run nor a look writes anything there."""
    ended = run_process("store", "stats", "--store", f"hbase://{hbase_address}/nowhere")
    assert ended.code == 4
    assert "There is no table nowhere:postings, nowhere:articles or nowhere:meta" in ended.err
    assert f"dupwatch store init --apply --store hbase://{hbase_address}/nowhere" in ended.err


def test_a_window_that_outlives_the_cells_is_refused(hbase_address: str, hbase_namespace: str, tmp_path: Path) -> None:
    """Cells would expire while they still count."""
    store = ("--store", f"hbase://{hbase_address}/{hbase_namespace}")
    ended = run_process(
        "run", "--source", SAMPLE, "--sink", tmp_path / "out.jsonl", *store, "--set", "judge.window_s=99999999"
    )
    assert ended.code == 4
    assert f"{hbase_namespace}:articles, family a: TTL" in ended.err
