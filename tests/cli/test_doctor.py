"""``dupwatch doctor`` without servers: the configuration, an embedded store, and the report."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from consumer.kafka.mock_cluster import mock_cluster
from tests.cli.command import SAMPLE, Command, json_lines, write_lines


def findings(out: bytes) -> list[dict[str, Any]]:
    """Return the findings that --json printed."""
    found: list[dict[str, Any]] = json.loads(out)["findings"]
    return found


def test_a_file_and_an_embedded_store(dupwatch: Command, judged_sample: Path) -> None:
    """Everything is fine, as text and as JSON; the store is not changed."""
    store = ("--source", SAMPLE, "--store", f"lmdb:{judged_sample / 'store'}")
    data = judged_sample / "store" / "data.mdb"
    before = data.read_bytes()
    ended = dupwatch("doctor", *store)
    assert ended.code == 0, ended.out
    assert "✓ The store is bound to these settings" in ended.out.decode()
    verdicts = json_lines((judged_sample / "verdicts.jsonl").read_bytes())
    versions = {verdict["id"]: verdict["outcome"] for verdict in verdicts}
    kept = list(versions.values()).count("unique")
    assert f"✓ The window has {kept} kept articles; the plan 4x16 fits." in " ".join(ended.out.decode().split())
    assert "0 wrong, 0 warnings, 0 unchecked" in ended.out.decode()
    found = findings(dupwatch("doctor", *store, "--json").out)
    assert {finding["status"] for finding in found} == {"ok"}
    assert {finding["remedy"] for finding in found} == {None}
    assert data.read_bytes() == before


def test_a_store_of_other_settings(dupwatch: Command, judged_sample: Path) -> None:
    """The finding has both values, the remedy, and the exit code that a run would have."""
    ended = dupwatch(
        "doctor", "--source", SAMPLE, "--store", f"lmdb:{judged_sample / 'store'}", "--set", "judge.max_distance=2"
    )
    assert ended.code == 4
    assert "✗ wrong: The store is bound to settings that differ from" in ended.out.decode()
    assert "max_distance is 3 in the store and 2 here" in ended.out.decode()
    assert "→ Use the settings of the store" in ended.out.decode()


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (("--set", "judge.nope=1"), 2, "Unknown setting judge.nope; dupwatch config show lists all settings."),
        (("--set", "judge.max_distance=9"), 2, "4x16"),
        (("--set", "fingerprint.idf=nowhere.txt"), 2, "nowhere.txt"),
        (("--source", "nowhere.jsonl"), 3, "The source nowhere.jsonl is not a file."),
        (("--source", str(SAMPLE), "--sink", "kafka://h:1/p"), 2, "the sink is a topic"),
        (("--source", str(SAMPLE), "--sink", "nowhere:"), 2, "nowhere: is only for dupwatch serve"),
        (("--set", "service.tokens=/nowhere.json"), 2, "The token file /nowhere.json cannot be read"),
        (("--set", "service.listen=0.0.0.0:0"), 2, "service.tokens is not set"),
        (("--set", "service.audit=/nowhere/audit.jsonl"), 6, "The directory /nowhere of the audit log"),
        (("--source", str(SAMPLE), "--sink", "/nowhere/o.jsonl"), 6, "The directory /nowhere of the sink"),
        (("--source", str(SAMPLE), "--sink", "/proc/self"), 6, "/proc/self is not a regular file"),
        (("--source", "kafka://127.0.0.1:1/a", "--sink", "out.jsonl"), 2, "kafka://HOST:PORT/PREFIX"),
        (("--source", "kafka://127.0.0.1:1/a", "--set", "kafka.delivery=exactly-once"), 2, "transactions"),
        (("--source", "kafka://127.0.0.1:1/a", "--set", "kafka.revoke_s=300"), 2, "revoke_s is 300"),
        (("--source", "kafka://127.0.0.1:1/a", "--set", 'kafka.client={"no.such"=1}'), 2, "no.such"),
        (("--source", "kafka://127.0.0.1:1/a", "--set", 'kafka.client={"acks"=1}'), 2, "acks"),
        (
            ("--source", "kafka://127.0.0.1:1/a", "--set", 'kafka.secret_files={"sasl.password"="/nowhere"}'),
            2,
            "/nowhere",
        ),
    ],
)
def test_what_is_wrong_with_a_configuration(
    dupwatch: Command, arguments: tuple[str, ...], code: int, named: str
) -> None:
    """It is reported under its own check, with a run's exit code; all other checks are made too."""
    ended = dupwatch("doctor", *arguments, "--json")
    assert ended.code == code
    found = findings(ended.out)
    assert [
        finding for finding in found if finding["status"] == "wrong" and named in finding["found"] and finding["remedy"]
    ], found
    assert len({finding["check"] for finding in found}) > 1


def test_a_sink_that_this_user_may_not_write(
    dupwatch: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the file nor its folder; if both are writable nothing is wrong, and nothing is created."""
    sink = tmp_path / "o.jsonl"
    asked = ("doctor", "--source", SAMPLE, "--sink", sink, "--json")
    assert dupwatch(*asked).code == 0
    assert not sink.exists()
    sink.touch()
    assert dupwatch(*asked).code == 0
    for closed, message in (
        (sink, f"No permission to write to the sink {sink}"),
        (tmp_path, f"No permission to write in {tmp_path}"),
    ):
        # The tests may run as root, to whom no mode denies anything.
        monkeypatch.setattr(os, "access", lambda path, _, closed=closed: Path(path) != closed)
        ended = dupwatch(*asked)
        assert ended.code == 6
        assert [finding for finding in findings(ended.out) if message in finding["found"]]


def test_an_empty_secret(dupwatch: Command, tmp_path: Path) -> None:
    """An empty password file is reported by name; its value is never shown."""
    secret = write_lines(tmp_path / "secret", [])
    client = 'kafka.client={"security.protocol"="SASL_PLAINTEXT","sasl.mechanism"="PLAIN","sasl.username"="u"}'
    file = f'kafka.secret_files={{"sasl.password"="{secret}"}}'
    kafka = ("--source", "kafka://127.0.0.1:1/a", "--set", client, "--set", file, "--json")
    ended = dupwatch("doctor", *kafka)
    assert [finding for finding in findings(ended.out) if "for sasl.password is empty" in finding["found"]]
    secret.write_text("geheim\n")
    ended = dupwatch("doctor", *kafka)
    assert not [finding for finding in findings(ended.out) if "is empty" in finding["found"]]
    assert b"geheim" not in ended.out + ended.err.encode()


def test_the_brokers_of_the_demo_are_not_taken_for_broken_ones(dupwatch: Command, judged_sample: Path) -> None:
    """They answer one question; the others are not asked, which would take five seconds each and then be wrong."""
    with mock_cluster(["articles"]) as address:
        topics = ("--source", f"kafka://{address}/articles", "--sink", f"kafka://{address}/dupwatch")
        ended = dupwatch("doctor", *topics, "--store", f"lmdb:{judged_sample / 'store'}", "--json")
    assert ended.code == 0, ended.out
    found = {finding["check"]: finding for finding in findings(ended.out)}
    assert "dupwatch demo" in found["brokers"]["found"]
    assert "no controller" in found["brokers"]["found"]
    of_kafka = ("brokers", "topics of articles", "group", "clocks", "topics of verdicts")
    assert [found[name]["status"] for name in of_kafka] == ["unchecked"] * len(of_kafka)
