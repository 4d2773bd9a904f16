"""``dupwatch demo``: Kafka without a server, and so without Java."""

import gzip
import json
import signal
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

import consumer
from consumer.cli.runs.demo import PREFIX, TOPIC
from consumer.model.errors import ConfigError
from consumer.text.sample_feed import sample_feed
from deploy.local.ports import free_ports
from tests.cli.command import (
    FAST,
    ONE_SECRET,
    SAMPLE,
    TIMEOUT_S,
    json_lines,
    run_process,
    start,
    text,
    wait_for,
    write_lines,
)
from tests.kafka.topics import ordered_producer
from tests.unit.console.serving import Browser


def shown(err: str, name: str) -> int:
    """Return a figure of the summary, 0 if it does not have one of that name."""
    lines = [line.split() for line in err.splitlines()]
    return next((int(line[-1]) for line in lines if " ".join(line[:-1]) == name), 0)


def line_of(process: "subprocess.Popen[bytes]", found: Callable[[str], bool]) -> str:
    """Return the first matching line of its standard error."""
    assert process.stderr is not None
    for line in process.stderr:
        if found(line.decode()):
            return line.decode()
    raise AssertionError("it never said so")


def test_the_sample_feed_goes_through_kafka_and_is_judged_as_from_a_file(judged_sample: Path) -> None:
    """It ends by itself with exit code 0, shows each flag, and has the counts of ``dupwatch run``."""
    verdicts = json_lines((judged_sample / "verdicts.jsonl").read_bytes())
    outcomes = Counter(verdict["outcome"] for verdict in verdicts)
    ended = run_process("demo", "--rate", "10000", *FAST)
    assert ended.code == 0, ended.err
    assert ended.out == b""
    assert ended.err.count("≈ ") == shown(ended.err, "duplicates") == outcomes["duplicate"]
    assert shown(ended.err, "unique") == outcomes["unique"]
    assert shown(ended.err, "retractions") == outcomes["retracted"]
    assert shown(ended.err, "dead letters") == 0
    assert "/readyz" in ended.err
    # At 10,000 articles a second batches are large, and at least one had many flags.
    assert ended.err.count("no sign-in needed") >= 2


def test_a_feed_and_a_store_of_ones_own(tmp_path: Path) -> None:
    """A gzip feed with an invalid line, which becomes a dead letter; the store is kept.

    The configuration may be that of a real feed in another format.
    """
    config = tmp_path / "real.toml"
    config.write_text('kafka.value_format = "avro"\nregistry.url = "http://127.0.0.1:1"\n')
    feed = tmp_path / "feed.jsonl.gz"
    lines = write_lines(tmp_path / "feed", [{"id": "a", "body": text(1)}, b"{", {"id": "b", "body": text(1)}])
    feed.write_bytes(gzip.compress(lines.read_bytes()))
    store = f"lmdb:{tmp_path / 'store'}"
    ended = run_process("demo", "--feed", feed, "--store", store, "--rate", "1000", "--config", config)
    assert ended.code == 0, ended.err
    assert (shown(ended.err, "duplicates"), shown(ended.err, "dead letters")) == (1, 1)
    looked = run_process("show", "b", "--store", store, "--json", *FAST)
    assert json.loads(looked.out)[0]["verdict"]["duplicate_of"] == "a", looked


def test_the_rate_is_kept_to(tmp_path: Path) -> None:
    """Ten articles at ten per second take a second at least."""
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": f"a{number}", "body": text(number)} for number in range(11)])
    ended = run_process("demo", "--feed", feed, "--rate", "10")
    assert ended.code == 0, ended.err
    assert 0 < shown(ended.err, "articles per second") <= 11


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_the_middle(number: signal.Signals) -> None:
    """It prints a summary of what was judged so far, and ends with exit code 0."""
    process = start("demo", "--rate", "10", stderr=subprocess.PIPE)
    line_of(process, lambda line: line.startswith("≈ "))
    process.send_signal(number)
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    assert 0 < shown(err.decode(), "articles") < 226


def test_a_signal_ends_it_before_it_has_begun() -> None:
    """While it waits for an unreachable store, it also ends with exit code 0."""
    (nobody,) = free_ports(1)
    store = ("--store", f"hbase://127.0.0.1:{nobody}/feed", "--set", "store.hbase.deadline_s=1")
    process = start("demo", *store, stderr=subprocess.PIPE)
    line_of(process, lambda line: "is out of reach" in line)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err


def test_it_stays_for_articles_of_others(tmp_path: Path) -> None:
    """With --forever it prints the addresses of its brokers, and judges what other clients send after the feed.

    Where the console is stands below what was printed last.
    """
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": "a", "body": text(1)}])
    process = start("demo", "--forever", "--feed", feed, stderr=subprocess.PIPE)
    address = line_of(process, lambda line: line.startswith("Kafka")).split()[4]
    pages = line_of(process, lambda line: line.startswith("Health")).split()
    console = line_of(process, lambda line: "no sign-in needed" in line)
    line_of(process, lambda line: line.startswith("The feed has ended"))
    assert line_of(process, lambda line: "no sign-in needed" in line) == console
    wait_ready(pages[3])
    producer = ordered_producer(address)
    for name in ("b", "c"):
        producer.produce(TOPIC, json.dumps({"id": name, "body": text(1)}).encode(), name.encode())
    assert producer.flush(TIMEOUT_S) == 0
    del producer
    line_of(process, lambda line: line.startswith("≈ "))
    line_of(process, lambda line: line.startswith("≈ "))
    assert line_of(process, lambda line: "no sign-in needed" in line) == console
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0


def wait_ready(page: str) -> None:
    """Wait until the page reports ready."""

    def is_ready() -> bool:
        try:
            with urllib.request.urlopen(page, timeout=TIMEOUT_S):
                return True
        except OSError:
            return False

    wait_for(is_ready)


def test_its_console_shows_what_was_flagged_and_takes_decisions(tmp_path: Path) -> None:
    """Nobody signs in: a flag comes, *wrong* releases it, and the article is in the clean feed."""
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": name, "body": text(1)} for name in ("a", "b")])
    undo = ("--set", "console.undo_s=0")
    process = start("demo", "--forever", "--feed", feed, "--rate", "100", *undo, stderr=subprocess.PIPE)
    address = line_of(process, lambda line: line.startswith("Kafka")).split()[4]
    browser = Browser(line_of(process, lambda line: "no sign-in needed" in line).split()[-1].rstrip("/"))
    wait_for(lambda: "/flags/1" in browser.get("/").text)
    assert text(1)[:40] in browser.get("/flags/1").shown
    added = browser.send("/flags/1/bank", "/flags/1", bank="spam", side="article").header("location")
    assert "Text added to the bank spam." in browser.get(added).shown
    assert "1 item" in browser.get("/banks/spam").shown
    assert browser.send("/flags/1/decide", "/flags/1", decision="wrong", note="no").status == 303
    wait_for(lambda: 'dupwatch_console_releases_total{outcome="sent"} 1.0' in browser.get("/metrics").text)
    topic = f"{PREFIX}.unique"
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "auto.offset.reset": "earliest"})
    partitions = consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    clean: list[bytes | None] = []
    until_s = time.monotonic() + TIMEOUT_S
    while len(clean) < 2:
        assert time.monotonic() < until_s, clean
        clean += [message.value() for message in consumer.consume(9, 0.1) if message.key() == b"b"]
    consumer.close()
    assert clean[0] is None
    assert json.loads(clean[1] or b"")["id"] == "b"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0


def test_its_console_shows_near_misses(tmp_path: Path) -> None:
    """Pairs just under the threshold, to be judged like flags; what is said releases nothing."""
    words = text(4, 200).split()
    bodies = {"a": words, "b": words[:150] + text(5, 50).split()}
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": name, "body": " ".join(body)} for name, body in bodies.items()])
    process = start("demo", "--forever", "--feed", feed, "--rate", "100", *ONE_SECRET, stderr=subprocess.PIPE)
    browser = Browser(line_of(process, lambda line: "no sign-in needed" in line).split()[-1].rstrip("/"))
    wait_for(lambda: "/flags/1" in browser.get("/?kind=near_miss").text, TIMEOUT_S)
    assert "This pair was not flagged." in browser.get("/flags/1").shown
    assert browser.send("/flags/1/decide", "/flags/1", decision="wrong", note="").status == 303
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0


def test_plain_simhash_has_no_near_misses(tmp_path: Path) -> None:
    """The demo asks for none then."""
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": name, "body": text(1)} for name in ("a", "b")])
    plain = ("--set", "judge.verify=false", "--set", "judge.lane1=false")
    ended = run_process("demo", "--feed", feed, "--rate", "100", *plain)
    assert ended.code == 0, ended.err
    assert shown(ended.err, "duplicates") == 1


def test_a_feed_that_is_not_there() -> None:
    """The message names it, with the exit code of an unreadable input."""
    ended = run_process("demo", "--feed", "nowhere.jsonl")
    assert ended.code == 3
    assert "nowhere.jsonl" in ended.err


def test_the_sample_is_found_installed_and_in_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found in an installed package or in a checkout; otherwise a path is required."""
    assert sample_feed() == SAMPLE
    monkeypatch.setattr(consumer, "__file__", str(tmp_path / "consumer" / "__init__.py"))
    with pytest.raises(ConfigError, match="--feed"):
        sample_feed()
    installed = tmp_path / "consumer" / "sample" / "feed.jsonl"
    installed.parent.mkdir(parents=True)
    installed.touch()
    assert sample_feed() == installed
