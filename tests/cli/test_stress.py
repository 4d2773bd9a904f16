"""``dupwatch stress`` with a mock cluster and with the service, and what it refuses."""

import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, Producer

from consumer.kafka.client_settings import KafkaOptions, PrefixAddress, TopicsAddress
from consumer.kafka.mock_cluster import mock_cluster
from consumer.stress.kafka_load import KafkaLoad
from consumer.stress.trial import Trial
from tests.cli.command import FAST, TIMEOUT_S, run_process, start
from tests.cli.serve.service import serving

TOPICS = ("articles", "judged.verdicts")
QUICK = ("--rate", "100", "--seconds", "0.5", "--chars", "100", "--language", "en")


@pytest.fixture
def address() -> Iterator[str]:
    """Brokers without a server."""
    with mock_cluster(TOPICS) as found:
        yield found


def topics(address: str) -> list[str]:
    """Return the options that name the topics."""
    return ["--source", f"kafka://{address}/articles", "--sink", f"kafka://{address}/judged"]


@contextmanager
def judging(address: str, *, loses: int = 0, forges: bytes = b"") -> Iterator[None]:
    """A stand-in for a consumer. It finds all articles unique, leaves out those whose number is divisible by ``loses``.

    ``forges`` is sent once to the topic of verdicts, before the second article.
    """
    ended = threading.Event()
    reader = Consumer({"bootstrap.servers": address, "group.id": "judge", "auto.offset.reset": "earliest"})
    reader.subscribe(["articles"])
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})

    def judge() -> None:
        count = 0
        while not ended.is_set():
            message = reader.poll(0.05)
            if message is None or message.error() is not None:
                continue
            count += 1
            article_id = json.loads(message.value() or b"")["id"]
            assert message.key() == article_id.encode()
            if count == 2 and forges:
                producer.produce("judged.verdicts", forges)
            number = int(article_id.rpartition("-")[2])
            if "first" in article_id or not loses or number % loses:
                producer.produce("judged.verdicts", json.dumps({"id": article_id, "outcome": "unique"}))
            producer.poll(0)
        producer.flush(TIMEOUT_S)
        reader.close()

    thread = threading.Thread(target=judge)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_all_articles_get_a_verdict(address: str, tmp_path: Path) -> None:
    """Percentiles as text, with the counts, and a plot. Verdicts on other articles are counted."""
    other = json.dumps({"id": "stress-00000000-3", "outcome": "unique"}).encode()
    with judging(address, forges=other):
        ended = run_process("stress", *topics(address), *QUICK, "--seed", "7", "--plot", tmp_path / "plot.svg")
    assert ended.code == 0, ended.err
    lines = [line.split() for line in ended.out.decode().splitlines()]
    assert lines[1] == ["articles", "p50", "p90", "p99", "p99.9", "max"]
    assert lines[2][:2] == ["all", "50"]
    assert ["articles", "sent", "50"] in lines
    assert ["without", "a", "verdict", "0"] in lines
    assert ["verdicts", "on", "other", "articles", "1"] in lines
    assert b"<svg" in (tmp_path / "plot.svg").read_bytes()


def test_articles_without_a_verdict_are_named_and_make_the_command_fail(address: str) -> None:
    """The results are there all the same."""
    with judging(address, loses=10):
        ended = run_process("stress", *topics(address), *QUICK, "--wait", "10", "--json")
    assert ended.code == 1, ended.err
    found: dict[str, Any] = json.loads(ended.out)
    assert found["without_verdict"] == [f"{found['run']}-{number}" for number in range(0, 50, 10)]
    assert found["latency"]["articles"] == 45
    assert 0 < found["latency"]["p50_ms"] <= found["latency"]["max_ms"] < 10_000
    assert f"5 articles got no verdict: {found['run']}-0, {found['run']}-10, " in ended.err


def test_verdicts_that_came_before_the_run_are_skipped(address: str) -> None:
    """While articles are generated, a busy topic gets many, which would delay the reading of the first ones."""
    load = KafkaLoad(TopicsAddress(address, ("articles",)), PrefixAddress(address, "judged"), KafkaOptions(), 30.0)
    trial = Trial("run-1", np.array([0.0, 0.01]))
    other = json.dumps({"id": "a", "outcome": "unique"}).encode()
    with closing(load), judging(address):
        load.try_out("first-0", b'{"id":"first-0"}')
        producer = Producer({"bootstrap.servers": address})
        producer.produce("judged.verdicts", other)
        assert producer.flush(TIMEOUT_S) == 0
        load.run(iter([b'{"id":"run-1-0"}', b'{"id":"run-1-1"}']), trial, lambda: False)
    report = trial.report()
    assert (report.foreign, report.waits.articles, report.missing) == (0, 2, ())


def test_without_a_consumer_the_first_article_says_so(address: str) -> None:
    """Nothing more is sent."""
    ended = run_process("stress", *topics(address), *QUICK, "--wait", "1")
    assert ended.code == 3, ended.err
    assert "Check that a consumer of articles runs with --emit all" in ended.err
    assert ended.out == b""


def test_a_signal_ends_it_with_what_there_is(address: str) -> None:
    """The exit code is that of the signal, and the report says how many articles were not sent."""
    with judging(address):
        process = start(
            "stress", *topics(address), "--rate", "20", "--seconds", "60", "--chars", "100", "--json",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith(b"Sending"):
                break
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 128 + signal.SIGTERM, err
    found = json.loads(out)
    assert 0 < found["sent"] < found["planned"] == 1_200


def test_a_topic_with_other_messages_ends_it(address: str) -> None:
    """The message names the topic."""
    with judging(address, forges=b"<xml>"):
        ended = run_process("stress", *topics(address), *QUICK)
    assert ended.code == 3, ended.err
    assert "a message of the topic judged.verdicts is not a verdict" in ended.err


def test_the_service_is_asked(tmp_path: Path) -> None:
    """Articles are stored; with --check they are not, and so no copy is flagged."""
    store = f"lmdb:{tmp_path / 'store'}"
    sink = ("--sink", str(tmp_path / "verdicts.jsonl"), "--set", "sink.emit=all", *FAST)
    with serving(store, tmp_path, *sink) as service:
        service.wait_ready()
        given = ("--service", service.url, "--rate", "40", "--seconds", "1.5", "--chars", "500", "--json")
        found = []
        for more in ((), ("--check",)):
            ended = run_process("stress", *given, "--copies", "0.5", *more)
            assert ended.code == 0, ended.err
            found.append(json.loads(ended.out))
    stored, checked = found
    verdicts = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_bytes().splitlines()]
    assert [verdict["id"] for verdict in verdicts[:1]] == [f"{stored['run']}-first-0"]
    assert sorted(verdict["id"] for verdict in verdicts[1:]) == sorted(f"{stored['run']}-{n}" for n in range(60))
    # A copy that overtakes its original is unique, and its original is flagged instead.
    flagged = stored["copies_flagged"] + stored["others_flagged"]
    assert 0.8 * stored["copies"] <= flagged <= stored["copies"]
    assert (checked["latency"]["articles"], checked["copies_flagged"]) == (60, 0)


def test_missing_topics_and_other_formats_are_told(address: str) -> None:
    """A topic that would have to be created is not created by asking for it."""
    brokers, avro = f"kafka://{address}", ("kafka.value_format=avro", "registry.url=http://127.0.0.1:1")
    for source, sink, more, code, expected in (
        ("nowhere", "judged", (), 3, "there is no topic nowhere"),
        ("articles", "other", (), 3, "there is no topic other.verdicts"),
        ("articles", "judged", avro, 2, "kafka.value_format is avro"),
    ):
        settings = [word for setting in more for word in ("--set", setting)]
        ended = run_process("stress", "--source", f"{brokers}/{source}", "--sink", f"{brokers}/{sink}", *settings)
        assert (ended.code, expected in ended.err) == (code, True), ended.err
