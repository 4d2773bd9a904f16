"""``dupwatch stress`` over a real broker, with a consumer on LMDB."""

import json
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, TopicPartition

from consumer.model.verdict import decode_verdict
from consumer.text.timestamps import parse_moment
from tests.cli.command import start
from tests.kafka.running import running
from tests.kafka.topics import Topics, make_topics

pytestmark = pytest.mark.servers
AGREEMENT = 0.1
END_S = 400
WARM_UP_S = 10


@pytest.fixture
def topics(kafka_address: str) -> Topics:
    """Topics of the test's own."""
    return make_topics(kafka_address)


def stress(topics: Topics, *more: str) -> dict[str, Any]:
    """Run the command, and return what it found."""
    given = ("--source", topics.url(), "--sink", topics.sink_url(), "--json", *more)
    process = start("stress", *given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=END_S)
    assert process.returncode == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_every_article_gets_its_verdict_and_runs_do_not_mix(topics: Topics, tmp_path: Path) -> None:
    """Copies are flagged, and runs at the same time count each other's verdicts. An earlier seed gives flags only."""
    options = ("--rate", "40", "--seconds", "2", "--chars", "600", "--language", "zh", "--language", "en")
    found: list[dict[str, Any]] = []
    with running(topics, f"lmdb:{tmp_path / 'store'}", tmp_path) as consumer:
        consumer.wait_ready()
        both = [
            threading.Thread(target=lambda seed=seed: found.append(stress(topics, *options, "--seed", seed)))
            for seed in ("1", "2")
        ]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        found.append(stress(topics, *options, "--seed", "1"))
        assert consumer.stop() == 0, consumer.log.read_text()
    assert [run["latency"]["articles"] for run in found] == [80, 80, 80]
    assert sum(run["verdicts_of_others"] for run in found[:2]) > 0
    for run in found[:2]:
        # A copy that overtakes its original is unique, and its original is flagged instead.
        assert 0.8 * run["copies"] <= run["copies_flagged"] + run["others_flagged"] <= run["copies"]
        assert run["copies"] >= 8
    assert found[2]["copies_flagged"] + found[2]["others_flagged"] == 80


@pytest.mark.load
@pytest.mark.parametrize("rate", [100, 500])
def test_it_agrees_with_another_reader_of_the_topic(topics: Topics, tmp_path: Path, rate: int) -> None:
    """Percentiles are within a tenth of those of a reader that knows only the rate and the producer's timestamps.

    The article that was sent with the least delay says when the first one was due.
    """
    ended = threading.Event()
    times: dict[int, tuple[float, float]] = {}
    reader = threading.Thread(target=read_times, args=(topics, times, ended))
    with running(topics, f"lmdb:{tmp_path / 'store'}", tmp_path) as consumer:
        consumer.wait_ready()
        reader.start()
        try:
            found = stress(topics, "--rate", str(rate), "--seconds", "40", "--warm-up", str(WARM_UP_S))
        finally:
            ended.set()
            reader.join()
    began_s = min(sent_s - number / rate for number, (sent_s, _) in times.items())
    counted = [
        read_s - (began_s + number / rate) for number, (_, read_s) in times.items() if number >= WARM_UP_S * rate
    ]
    assert found["latency"]["articles"] == len(counted) == 30 * rate
    for name, percent in (("p50_ms", 50), ("p90_ms", 90), ("p99_ms", 99)):
        expected_ms = 1_000 * float(np.percentile(counted, percent))
        # Timestamps are in whole milliseconds.
        assert found["latency"][name] == pytest.approx(expected_ms, rel=AGREEMENT, abs=2.0), name


def read_times(topics: Topics, times: dict[int, tuple[float, float]], ended: threading.Event) -> None:
    """Read the verdicts of all articles but the first, and note when each article was sent and its verdict was read."""
    reader = Consumer({"bootstrap.servers": topics.address, "group.id": "other", "isolation.level": "read_committed"})
    reader.assign([TopicPartition(topics.sink("verdicts"), number, 0) for number in range(topics.partitions)])
    while not ended.is_set():
        message = reader.poll(0.1)
        if message is None or message.error() is not None:
            continue
        now_s = time.time()
        verdict = decode_verdict(message.value() or b"")
        if "-first-" not in verdict.id:
            times[int(verdict.id.rpartition("-")[2])] = parse_moment(verdict.arrived_at).timestamp(), now_s
    reader.close()
