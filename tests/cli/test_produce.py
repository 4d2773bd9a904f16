"""``dupwatch produce`` sends a file of articles to a topic, here of a mock cluster."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from consumer.files.lines import Position
from consumer.kafka.feed_sender import FeedSender
from consumer.kafka.mock_cluster import mock_cluster
from consumer.model.article import Article
from consumer.model.errors import BadRecord, SinkError
from consumer.model.record import RawBatch, RawRecord
from tests.cli.command import SAMPLE, TIMEOUT_S, run_process, start, text, write_lines

TOPIC = "articles"
PARTITIONS = 4


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Brokers without a server; each test uses its own topic."""
    with mock_cluster([TOPIC, "as-they-stand", "spread", "sample", "stdin", "rate", "stopped", "small-queue"]) as found:
        yield found


def received(address: str, topic: str, count: int) -> list[Message]:
    """Return this many messages of a topic, from the beginning of all partitions, in order of arrival."""
    reader = Consumer({"bootstrap.servers": address, "group.id": "looks", "enable.auto.commit": False})
    try:
        partitions = reader.list_topics(topic, TIMEOUT_S).topics[topic].partitions
        reader.assign([TopicPartition(topic, number, 0) for number in partitions])
        found: list[Message] = []
        until_s = time.monotonic() + TIMEOUT_S
        while len(found) < count:
            assert time.monotonic() < until_s, f"{len(found)} of {count} came"
            found += [message for message in reader.consume(count, 0.2) if message.error() is None]
        return found
    finally:
        reader.close()


def place(address: str, topic: str) -> str:
    """Return the topic as an option names it."""
    return f"kafka://{address}/{topic}"


def test_records_come_as_they_stand_in_the_file_under_their_ids(address: str, tmp_path: Path) -> None:
    """An invalid line is sent too, without a key, so that a consumer makes it a dead letter."""
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": "a", "body": text(1)}, b"{", {"id": "a", "body": None}])
    ended = run_process("produce", feed, "--to", place(address, "as-they-stand"), "--rate", "1000", "--in-order")
    assert ended.code == 0, ended.err
    assert "3 records" in ended.err
    messages = received(address, "as-they-stand", 3)
    assert [message.value() for message in messages] == feed.read_bytes().splitlines()
    assert [message.key() for message in messages] == [b"a", None, b"a"]
    assert {message.partition() for message in messages} == {0}


def test_the_key_chooses_the_partition_as_in_java(address: str, tmp_path: Path) -> None:
    """All versions of an id are in one partition, the one that Kafka's own clients would choose."""
    ids = ["dupwatch", "zh-market-open", "a", "b", "c", "d", "e", "f"] * 2
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": name, "body": text(1)} for name in ids])
    ended = run_process("produce", feed, "--to", place(address, "spread"), "--rate", "1000")
    assert ended.code == 0, ended.err
    messages = received(address, "spread", len(ids))
    count = len({message.partition() for message in messages})
    assert count > 1
    for message in messages:
        assert message.partition() == murmur2(message.key() or b"") % PARTITIONS


def murmur2(data: bytes) -> int:
    """Return Kafka's hash of a key, made positive; written from its description, for ASCII keys."""
    mask, mixer = 0xFFFFFFFF, 0x5BD1E995
    state = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for begin in range(0, whole, 4):
        part = int.from_bytes(data[begin : begin + 4], "little") * mixer & mask
        part = (part ^ part >> 24) * mixer & mask
        state = state * mixer & mask ^ part
    if data[whole:]:
        state = (state ^ int.from_bytes(data[whole:], "little")) * mixer & mask
    state = (state ^ state >> 13) * mixer & mask
    return (state ^ state >> 15) & 0x7FFFFFFF


def test_the_sample_feed_where_no_file_is_named_and_standard_input(address: str) -> None:
    """Both are sent completely."""
    ended = run_process("produce", "--to", place(address, "sample"), "--rate", "10000", "--in-order")
    assert ended.code == 0, ended.err
    lines = SAMPLE.read_bytes().splitlines()
    assert [message.value() for message in received(address, "sample", len(lines))] == lines
    given = b"".join(line + b"\n" for line in lines[:3])
    ended = run_process("produce", "-", "--to", place(address, "stdin"), "--rate", "100", "--in-order", given=given)
    assert ended.code == 0, ended.err
    assert [message.value() for message in received(address, "stdin", 3)] == lines[:3]


def test_the_rate_is_kept_to(address: str, tmp_path: Path) -> None:
    """Eleven articles at twenty per second take half a second. Rows of a table are sent as JSON."""
    feed = tmp_path / "feed.csv"
    feed.write_text("id,body\n" + "".join(f'a{number},"{text(number)}"\n' for number in range(11)))
    ended = run_process("produce", feed, "--to", place(address, "rate"), "--rate", "20", "--in-order")
    assert ended.code == 0, ended.err
    assert float(ended.err.split(" in ")[1].split()[0]) >= 0.5
    messages = received(address, "rate", 11)
    assert [(message.key(), json.loads(message.value() or b"")) for message in messages] == [
        (f"a{number}".encode(), {"id": f"a{number}", "body": text(number)}) for number in range(11)
    ]


def test_a_signal_ends_it_and_what_was_sent_is_there(address: str) -> None:
    """The exit code is that of the signal, and a sentence counts the records that were sent."""
    process = start(
        "produce", SAMPLE, "--to", place(address, "stopped"), "--rate", "5", "--in-order", stderr=subprocess.PIPE
    )
    received(address, "stopped", 1)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 128 + signal.SIGTERM, err
    sent = int(err.decode().split("stopped: ")[1].split()[0])
    assert 0 < sent < 226
    assert len(received(address, "stopped", sent)) == sent


def test_brokers_that_are_away_are_told_in_a_sentence(tmp_path: Path) -> None:
    """The message counts the records that were not sent; the exit code is that of an unwritable output.

    This happens after half a minute, or after --wait.
    """
    feed = write_lines(tmp_path / "feed.jsonl", [{"id": "a", "body": text(1)}])
    began_s = time.monotonic()
    ended = run_process("produce", feed, "--to", "kafka://127.0.0.1:1/articles", "--wait", "0.3")
    assert time.monotonic() - began_s < 28
    assert ended.code == 6, ended.err
    assert "1 of 1 records were not written" in ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("nowhere.jsonl", "--to", "kafka://127.0.0.1:1/articles"), 3, "nowhere.jsonl"),
        ((str(SAMPLE),), 2, "kafka://"),
        ((str(SAMPLE), "--to", "kafka://127.0.0.1:1/a,b"), 2, "names 2 topics"),
    ],
)
def test_a_wrong_place_is_told(arguments: tuple[str, ...], code: int, expected: str) -> None:
    """A missing file, no topic, two topics."""
    ended = run_process("produce", *arguments)
    assert (ended.code, expected in ended.err) == (code, True), ended.err


def test_a_record_that_is_too_large_is_told(address: str) -> None:
    """The message names its line; the client would reject it."""

    def decode(record: RawRecord) -> Article:
        raise BadRecord("reason", "detail")

    sender = FeedSender({"bootstrap.servers": address, "message.max.bytes": 1000}, TOPIC, decode)
    record = RawRecord(7, 0, b"x" * 2000, 2000, None, None, Position())
    with pytest.raises(SinkError, match="line 7 cannot be sent"):
        sender.send([RawBatch((record,), Position())], 1.0, lambda _: False)


def test_a_full_queue_is_waited_for(address: str) -> None:
    """The client's queue holds two records; all are sent."""
    settings = {"bootstrap.servers": address, "queue.buffering.max.messages": 2, "linger.ms": 5}
    sender = FeedSender(settings, "small-queue", lambda _: Article(id="a", body=""), 0)
    records = tuple(RawRecord(number, 0, b"%d" % number, 1, None, None, Position()) for number in range(50))
    assert sender.send([RawBatch(records, Position())], 1e6, lambda _: False)
    sender.finish()
    assert [message.value() for message in received(address, "small-queue", 50)] == [
        b"%d" % number for number in range(50)
    ]
