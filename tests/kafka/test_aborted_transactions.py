"""Offsets without records behind the last article: to the lag, to the group and to the doctor nothing is waiting."""

import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.cli.command import run_process
from tests.kafka.reading import committed, until
from tests.kafka.running import running
from tests.kafka.sink_parts import end_of
from tests.kafka.test_run import EITHER, article
from tests.kafka.topics import Topics, make_topics, read_all, send, wait_for_count

pytestmark = pytest.mark.servers

ABORTED = 30


@pytest.fixture
def topics(kafka_address: str) -> Topics:
    """Topics of the test's own, one partition each."""
    return make_topics(kafka_address, 1)


def abort_transactions(topics: Topics, count: int) -> None:
    """What a producer leaves that cannot finish its transactions: records that must not be seen, and markers."""
    producer = Producer({"bootstrap.servers": topics.address, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    for number in range(count):
        producer.begin_transaction()
        producer.produce(topics.source, b"{", b"aborted-%d" % number)
        producer.flush(30)
        producer.abort_transaction(30)


@EITHER
def test_aborted_transactions_are_no_lag(topics: Topics, tmp_path: Path, more: tuple[str, ...]) -> None:
    """The gauge comes back to 0, the group's offset to the end, and the next article is judged as ever."""
    send(topics, [("a", article("the first of them"))])
    with running(topics, f"lmdb:{tmp_path / 'store'}", tmp_path, *more) as consumer:
        wait_for_count(topics, ["verdicts"], 1)
        abort_transactions(topics, ABORTED)
        end = end_of(topics.address, topics.source)
        assert end >= 1 + 2 * ABORTED
        until(lambda: committed(topics.address, topics.prefix, topics.source, 1) == [end])
        until(lambda: consumer.metric("dupwatch_lag_records") == 0)
        send(topics, [("b", article("another, which is not like it"))])
        wait_for_count(topics, ["verdicts"], 2)
        assert consumer.stop() == 0, consumer.log.read_text()
    assert [message.key for message in read_all(topics, topics.sink("verdicts"))] == [b"a", b"b"]
    assert committed(topics.address, topics.prefix, topics.source, 1)[0] >= end
    ended = run_process(
        "doctor", "--source", topics.url(), "--sink", topics.sink_url(), "--store", f"lmdb:{tmp_path / 'store'}",
        "--set", f"kafka.group={topics.prefix}", "--json",
    )  # fmt: skip
    assert "has 0 messages to read" in ended.out.decode(), ended.out.decode() + ended.err


@EITHER
def test_a_partition_with_nothing_but_aborted_transactions(
    topics: Topics, tmp_path: Path, more: tuple[str, ...]
) -> None:
    """A group that has never committed anything comes to the end too, and a restart begins there."""
    abort_transactions(topics, 3)
    end = end_of(topics.address, topics.source)
    with running(topics, f"lmdb:{tmp_path / 'store'}", tmp_path, *more) as consumer:
        until(lambda: committed(topics.address, topics.prefix, topics.source, 1) == [end])
        assert consumer.stop() == 0, consumer.log.read_text()
    send(topics, [("a", article("the first of them"))])
    with running(topics, f"lmdb:{tmp_path / 'store'}", tmp_path, *more) as consumer:
        wait_for_count(topics, ["verdicts"], 1)
        assert consumer.stop() == 0, consumer.log.read_text()
