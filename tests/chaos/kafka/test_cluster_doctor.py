"""What ``dupwatch doctor`` and the metrics behind the alerts show of a cluster of which a part is away."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from deploy.local.cluster import Cluster
from deploy.local.process import wait_until
from deploy.local.regions import Regions
from tests.chaos.kafka.stage import STORE_CALL_S
from tests.chaos.kafka.test_kafka_chaos import NAMESPACE
from tests.cli.command import run_process, text
from tests.kafka.running import Running, running
from tests.kafka.topics import Topics, make_topics, send

pytestmark = [pytest.mark.servers, pytest.mark.chaos, pytest.mark.timeout(1_200)]

_WAIT_S: Final = 120.0
_BRIEF: Final = ("--set", f"store.hbase.call_s={STORE_CALL_S}", "--set", "store.hbase.deadline_s=10")


def _doctor(topics: Topics, store: str) -> tuple[int, list[str]]:
    """The exit code, and "status check: sentence" of all that is not ok, but for what the topics are made without."""
    sink = ("--sink", topics.sink_url(), "--set", "http.listen=", "--set", f"kafka.group={topics.prefix}")
    ended = run_process("doctor", "--json", "--source", topics.url(), *sink, "--store", store)
    findings = json.loads(ended.out)["findings"]
    return ended.code, [
        f"{finding['status']} {finding['check']}: {finding['found']}"
        for finding in findings
        if finding["status"] != "ok" or "regions" in finding["found"]
    ]


def _named(found: list[str], words: str) -> list[str]:
    return [finding for finding in found if words in finding]


def _feed(topics: Topics, consumer: Running, number: int) -> None:
    """Have something to judge, so that calls are made."""
    send(topics, [(f"a{number}-{place}", {"body": text(number * 10 + place)}) for place in range(10)])
    assert consumer.process.poll() is None


def test_what_is_seen_of_a_broker_and_a_region_server_that_are_away(
    own_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    """A broker that others stand in for is a warning, one that nobody can is wrong; regions that hang are named."""
    cluster = own_cluster(NAMESPACE)
    settings = {
        "min.insync.replicas": "2",
        "retention.ms": "-1",
        "message.timestamp.type": "LogAppendTime",
        "max.message.bytes": str(16 << 20),
    }
    topics = make_topics(cluster.address, 6, settings, settings, replicas=3)
    store = f"hbase://{cluster.gateway.address}/{NAMESPACE}"
    logs = tmp_path / "consumers"
    logs.mkdir()
    with (
        Regions(cluster.master.conf, tmp_path / "regions.log") as regions,
        running(topics, store, logs, *_BRIEF) as consumer,
    ):
        consumer.wait_ready(seconds=_WAIT_S)
        _feed(topics, consumer, 0)
        _, found = _doctor(topics, store)
        assert not _named(found, "in sync")
        assert _named(found, "ok gateways and tables: All 9 regions answer, on 2 region servers.")

        _broker_away(cluster, topics, store)
        _region_server_hangs(cluster, topics, store, regions, consumer)


def _broker_away(cluster: Cluster, topics: Topics, store: str) -> None:
    first, second, _ = cluster.brokers
    first.kill9()
    assert wait_until(lambda: bool(_named(_doctor(topics, store)[1], "warning topics of articles")), _WAIT_S)
    _, found = _doctor(topics, store)
    (warned,) = _named(found, "warning topics of articles")
    assert "6 of 6 partitions with a replica that is not in sync, on broker 1." in warned
    # With a second one the controllers have no majority: nobody takes replicas out of those in sync any more.
    second.kill9()
    code, found = _doctor(topics, store)
    assert code == 3, found
    assert _named(found, "The brokers do not answer in time: ")
    second.start()
    first.start()
    assert wait_until(lambda: not _named(_doctor(topics, store)[1], "in sync"), _WAIT_S)


def _region_server_hangs(cluster: Cluster, topics: Topics, store: str, regions: Regions, consumer: Running) -> None:
    """Until its regions have moved they are named with their server; consumers repeat calls, and go on."""
    before = {region.name: region.server for region in regions.list_regions(f"{NAMESPACE}:")}
    # Not the one with hbase:meta, whose silence would be all that can be seen.
    meta = next(region.server for region in regions.list_regions("-"))
    hung = next(server for server in cluster.region_servers if f",{server.port}," not in str(meta))
    repeats = consumer.metric("dupwatch_store_repeats_total")
    assert hung.process is not None
    os.kill(hung.process.pid, signal.SIGSTOP)
    try:
        _feed(topics, consumer, 1)
        code, found = _doctor(topics, store)
        assert code == 5, found
        assert _named(found, f"regions on localhost:{hung.port} do not answer"), found
        assert wait_until(lambda: consumer.metric("dupwatch_store_repeats_total") > repeats, _WAIT_S)
        moved = {server for server in before.values() if f",{hung.port}," not in str(server)}
        assert wait_until(
            lambda: {region.server for region in regions.list_regions(f"{NAMESPACE}:")} == moved, _WAIT_S, 0.5
        )
    finally:
        os.kill(hung.process.pid, signal.SIGCONT)
    assert wait_until(lambda: not hung.alive, _WAIT_S), hung.log_tail()
    until_s = time.monotonic() + _WAIT_S
    while not _named(_doctor(topics, store)[1], "All 9 regions answer, on 1 region servers"):
        assert time.monotonic() < until_s
    consumer.wait_ready(seconds=_WAIT_S)
