"""Settings of the Kafka client that would break a promise do not get as far as a broker; without them a run waits."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.local.kafka import KafkaBroker
from tests.cli.command import text
from tests.kafka.running import END_S, running
from tests.kafka.topics import make_topics, read_all, send, wait_for_count

pytestmark = pytest.mark.servers
GIVEN_UP_MS = 3_000


@pytest.mark.parametrize("name", ["message.timeout.ms", "delivery.timeout.ms"])
def test_a_deadline_for_events_is_refused_before_anything_is_read(
    kafka_address: str, tmp_path: Path, name: str
) -> None:
    """With exit code 2 and a sentence; the run would else end with 6 as soon as a broker is away for that long."""
    topics = make_topics(kafka_address)
    setting = f'kafka.producer={{"{name}"={GIVEN_UP_MS}}}'
    with running(topics, f"lmdb:{tmp_path / 'store'}", tmp_path, "--set", setting) as consumer:
        assert consumer.process.wait(END_S) == 2
        assert f"{name} cannot be set: dupwatch waits for unreachable brokers" in consumer.log.read_text()


def test_a_broker_that_is_away_for_longer_is_waited_for(own_kafka: Callable[[], KafkaBroker], tmp_path: Path) -> None:
    """Killed while verdicts are written: the consumer stays alive, says so, and every article gets its verdict."""
    broker = own_kafka()
    topics = make_topics(broker.address)
    send(topics, [(f"a{number}", {"body": text(number)}) for number in range(1_000)])
    small = ("--set", "source.batch_records_max=20")
    with running(topics, f"lmdb:{tmp_path / 'store'}", tmp_path, *small) as consumer:
        wait_for_count(topics, ["verdicts"], 100)
        broker.kill9()
        consumer.wait_ready(ready=False)
        until_s = time.monotonic() + GIVEN_UP_MS / 1000 + 1
        while time.monotonic() < until_s:
            assert consumer.process.poll() is None, consumer.log.read_text()
            assert consumer.page("/healthz")[0] == 200
            time.sleep(0.2)
        broker.start()
        wait_for_count(topics, ["verdicts"], 1_000)
        assert consumer.stop() == 0, consumer.log.read_text()
    assert {message.key for message in read_all(topics, topics.sink("verdicts"))} == {
        b"a%d" % number for number in range(1_000)
    }
