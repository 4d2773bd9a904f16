"""Messages that are stamped far behind their partition: they arrive after what they were sent after."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import text
from tests.kafka.reading import WAIT_S, until
from tests.kafka.running import running
from tests.kafka.test_poison import notes
from tests.kafka.test_run import EITHER
from tests.kafka.topics import Topics, make_topics, ordered_producer, read_all, wait_for_count

pytestmark = pytest.mark.servers

HOUR_MS = 3_600_000
DAYS_8_MS = 8 * 24 * HOUR_MS


@pytest.fixture
def topics(kafka_address: str) -> Topics:
    """Topics of the test's own, one partition each."""
    return make_topics(kafka_address, 1)


def send(topics: Topics, articles: Sequence[tuple[str, str | None, int]]) -> None:
    """Send (id, body, timestamp), in one batch of the producer's; without a body a retraction."""
    producer = ordered_producer(topics.address, {"linger.ms": 100})
    for article_id, body, time_ms in articles:
        value = None if body is None else json.dumps({"body": body}).encode()
        producer.produce(topics.source, value, article_id.encode(), partition=0, timestamp=time_ms)
    assert producer.flush(WAIT_S) == 0


def verdicts_of(topics: Topics) -> dict[str, dict[str, Any]]:
    """The verdicts by id."""
    return {message.content["id"]: message.content for message in read_all(topics, topics.sink("verdicts"))}


@EITHER
def test_a_copy_that_claims_to_be_older_is_the_copy(topics: Topics, tmp_path: Path, more: tuple[str, ...]) -> None:
    """In the batch of its victim; and after a restart, by the note beside the offset."""
    now_ms = int(time.time() * 1000) - 10_000
    send(topics, [("victim", text(1), now_ms), ("copy", text(1), now_ms - HOUR_MS), ("late", text(2), now_ms - 59_000)])
    store = f"lmdb:{tmp_path / 'store'}"
    options = ("--set", "kafka.linger_s=1", *more)
    with running(topics, store, tmp_path, *options) as consumer:
        wait_for_count(topics, ["verdicts"], 3)
        until(lambda: notes(topics)[0][1].highest_ms == now_ms)
        assert consumer.metric("dupwatch_record_times_behind_total") == 1
        # A producer's batch is read in one: both were pending at once, and only arrival told them apart.
        assert consumer.metric("dupwatch_batch_records_count") == 1
        assert consumer.stop() == 0, consumer.log.read_text()
    found = verdicts_of(topics)
    assert (found["victim"]["outcome"], found["copy"]["duplicate_of"]) == ("unique", "victim")
    assert found["copy"]["arrived_at"] == found["victim"]["arrived_at"]
    assert found["copy"]["stamped_at"] < found["victim"]["arrived_at"]
    assert "stamped_at" not in found["victim"] | found["late"]
    # Nothing came since: what it is far behind of is known from the metadata of the offset alone.
    old_ms = now_ms - DAYS_8_MS
    send(topics, [("old", text(1), old_ms), ("victim", None, old_ms), ("new", text(1), now_ms)])
    with running(topics, store, tmp_path, *options) as consumer:
        until(lambda: verdicts_of(topics).keys() >= {"old", "new"})
        assert consumer.metric("dupwatch_record_times_behind_total") == 2
        assert consumer.stop() == 0, consumer.log.read_text()
    found = verdicts_of(topics)
    assert found["old"]["duplicate_of"] == "victim"
    assert found["victim"]["outcome"] == "retracted"
    assert found["victim"]["arrived_at"] == found["old"]["arrived_at"]
    assert found["victim"]["stamped_at"] == found["old"]["stamped_at"]
    # Retracted when it arrived, and not eight days before anybody saw it: what was flagged against it stays so.
    assert found["new"]["outcome"] == "unique"
    assert notes(topics)[0] == (6, notes(topics)[0][1])


def test_as_far_behind_as_one_likes(topics: Topics, tmp_path: Path) -> None:
    """Where producers may send what is old it arrives as old as it says, and nothing is counted."""
    now_ms = int(time.time() * 1000) - 10_000
    send(topics, [("first", text(1), now_ms), ("older", text(1), now_ms - HOUR_MS)])
    options = ("--set", "kafka.linger_s=1", "--set", "kafka.behind_s_max=7200")
    with running(topics, f"lmdb:{tmp_path / 'store'}", tmp_path, *options) as consumer:
        wait_for_count(topics, ["verdicts"], 2)
        assert consumer.metric("dupwatch_record_times_behind_total") == 0
        assert consumer.stop() == 0, consumer.log.read_text()
    found = verdicts_of(topics)
    assert (found["older"]["outcome"], found["first"]["duplicate_of"]) == ("unique", "older")
