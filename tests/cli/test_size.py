"""``dupwatch size``: what it answers, where figures come from, and which values it refuses."""

import json
from pathlib import Path

import pytest

from tests.cli.command import SAMPLE, Command

ASKED = ("size", "--articles-a-day", "5000000", "--chars", "3000", "--window", "7d", "--copies", "0.2")


def test_a_feed_on_hbase(dupwatch: Command) -> None:
    """Every part of a deployment, in 80 columns, each with its source, and the commands that make it."""
    ended = dupwatch(*ASKED, "--store", "hbase", COLUMNS="80")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.decode().splitlines()
    assert max(map(len, lines[: lines.index("Assumptions")])) <= 80
    shown = " ".join(ended.out.decode().split())
    assert "articles a day 5,000,000 given" in shown
    assert "copies among them 20 % given" in shown
    assert "8,700 bytes (2.90 a" in shown
    assert "16x28: with 4x16 an article" in shown
    assert "consumers 2, including one spare computed" in shown
    assert "region servers 3, of 8 cores computed" in shown
    assert "Measured for the docs: " in shown
    assert "unique" in shown
    assert "only with kafka.unique = true" in " ".join(word for word in shown.split() if word != "computed")
    assert "dupwatch store init \\ --store hbase://HOST:PORT/NAMESPACE \\ --articles 28000000 \\ --regions" in shown
    assert "--partitions 6 \\ --replication 3" in shown


def test_the_same_for_programs(dupwatch: Command) -> None:
    """Figures are numbers; the commands that follow are accepted, and plan the same."""
    told = json.loads(dupwatch(*ASKED, "--store", "hbase://h1:9090/feed", "--json").out)
    figures = {name: figure["value"] for name, figure in told["figures"].items()}
    assert told["store"] == "hbase"
    assert figures["articles_a_day"] == 5_000_000
    assert figures["plan"] == "16x28"
    assert figures["consumers"] == 2
    assert figures["store_bytes"] > 200e9
    assert {figure["source"] for figure in told["figures"].values()} >= {"given", "computed", "assumed"}
    init = told["commands"][0]
    assert init.startswith("dupwatch store init --store hbase://h1:9090/feed --articles 28000000 --regions ")
    planned = dupwatch(*init.split()[1:-1]).out.decode()
    assert "  plan      16x28: " in planned
    assert f"regions   postings {figures['regions']}, articles {figures['regions']}:" in planned


def test_an_embedded_store(dupwatch: Command) -> None:
    """It is the default. A warning names the setting that it outgrows, or the other kind where the peak is too high."""
    told = json.loads(dupwatch(*ASKED, "--json").out)
    assert told["store"] == "lmdb"
    assert not {"gateways", "region_servers", "regions"} & set(told["figures"])
    (outgrown,) = told["warnings"]
    map_bytes = int(outgrown.partition("set store.map_bytes_max = ")[2].removesuffix("."))
    assert map_bytes == pytest.approx(told["figures"]["store_bytes"]["value"] / 0.8, abs=1e9)
    busy = json.loads(dupwatch("size", "--articles-a-day", "50000000", "--json").out)
    assert any("use --store hbase" in warning for warning in busy["warnings"])
    few = json.loads(dupwatch("size", "--articles-a-day", "1000", "--json").out)
    assert few["warnings"] == []


def test_settings_count_and_are_passed_on(dupwatch: Command, tmp_path: Path) -> None:
    """Those of a file and of --set; commands name what decides how a store is made, and another window."""
    config = tmp_path / "dupwatch.toml"
    config.write_text('[sink]\nemit = "all"\n[kafka]\nunique = true\n[store]\nkeep_bodies = false\n')
    asked = ("size", "--articles-a-day", "100000", "--store", "hbase", "--window", "12h", "--config", config)
    ended = dupwatch(*asked, "--set", "judge.profile=posts", "--set", "log.level=error", "--json")
    told = json.loads(ended.out)
    assert told["figures"]["postings_written"]["value"] == 18
    init, topics = told["commands"]
    for command in (init, topics):
        assert f"--config {config} --set judge.profile=posts --set judge.window_s=43200" in command
        assert "log.level" not in command
    shown = dupwatch(*asked).out.decode()
    assert "only with" not in shown
    assert "not kept (store.keep_bodies)" in shown


def test_a_sample_replaces_assumptions(dupwatch: Command) -> None:
    """Lengths, bytes and records are then those of its articles."""
    told = json.loads(dupwatch("size", "--articles-a-day", "100000", "--sample", SAMPLE, "--json").out)
    chars = told["figures"]["chars"]
    assert 300 < chars["value"] < 600
    assert chars["source"] == "measured: sample"
    assert told["assumptions"][0].startswith(f"The sample: 225 articles of {SAMPLE}, 20")
    assert told["figures"]["text_bytes"]["value"] > 2 * chars["value"]
    assert told["figures"]["fingerprint_us"]["source"] == "measured for the docs"


def test_calibrating_replaces_speeds(dupwatch: Command) -> None:
    """On an embedded store the throughput of whole runs, on HBase that of fingerprints."""
    asked = ("size", "--articles-a-day", "100000", "--chars", "200", "--calibrate", "--calibrate-seconds", "0.01")
    ended = dupwatch(*asked, "--json")
    told = json.loads(ended.out)
    assert ended.err == "Judging articles in a temporary store, for up to 0.01 seconds …\n"
    assert told["figures"]["consumer_a_s"]["source"] == "measured here"
    assert told["assumptions"][0].startswith("Measured here: ")
    assert told["figures"]["chars"]["source"] == "given"
    figures = json.loads(dupwatch(*asked, "--store", "hbase", "--json").out)["figures"]
    assert figures["fingerprint_us"]["source"] == "measured here"
    assert figures["judge_us"] == {"value": 1_592, "source": "measured for the docs"}
    us = figures["fingerprint_us"]["value"] + 1_592
    assert figures["consumer_a_s"]["value"] == pytest.approx(1e6 / us)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--articles-a-day", "0"), "--articles-a-day 0: write how many articles arrive in a day, at least 1"),
        (("--articles-a-day", "-5"), "--articles-a-day -5: write how many articles arrive in a day"),
        (("--articles-a-day", "999999999999"), "or a shorter --window"),
        (("--chars", "0"), "--chars 0: write how many characters an article has on average"),
        (("--chars", "1000001"), "longer articles than 1,000,000 characters are refused"),
        (("--copies", "20"), "--copies 20: write a share, not per cent: 0.2"),
        (("--copies", "1"), "--copies 1: write a share from 0 to 0.99"),
        (("--copies", "-0.1"), "--copies -0.1: write a share from 0 to 0.99"),
        (("--copies", "nan"), "--copies nan: write a share from 0 to 0.99"),
        (("--window", "week"), "--window: 'week' is not a duration; write it as 30m, 12h or 90d"),
        (("--window", "0d"), "--window is 0; write how far back copies are found, such as 7d"),
        (("--window", "99999d", "--store", "hbase"), "HBase keeps cells up to 2,147,483,647; write at most 24854d"),
        (("--peak", "0.5"), "--peak 0.5: write how many times the average the busiest minute is, from 1 to 1,000"),
        (("--lang", "fr"), "--lang fr: write zh for Chinese, Japanese and Korean, en for languages in Latin letters"),
        (("--store", "memory:"), "--store memory:: a store in memory ends with its run; write lmdb or hbase"),
        (("--store", "mongodb"), "--store mongodb: write lmdb or hbase, or the URL of a store"),
        (("--sample", "kafka://h:1/topic"), "this is not a file; name a file of articles"),
        (("--sample", "nowhere.jsonl"), "--sample nowhere.jsonl: this is not a file"),
        (("--calibrate", "--calibrate-seconds", "0"), "write a time above 0, and at most 3,600 seconds"),
        (("--set", "judge.max_distance=8"), "no plan for 64 bits supports more"),
    ],
)
def test_values_that_cannot_be(dupwatch: Command, arguments: tuple[str, ...], says: str) -> None:
    """Each is refused in a sentence that says what to write, with the exit code of a wrong option."""
    given = arguments if "--articles-a-day" in arguments else ("--articles-a-day", "1000", *arguments)
    ended = dupwatch("size", *given)
    assert ended.code == 2
    assert says in " ".join(ended.err.split())
