"""A consumer whose store is slow but answers: it is alive, and ends when it is asked to."""

import time
from functools import partial
from pathlib import Path

import pytest

from tests.cli.command import text
from tests.cli.faulty_command import CALL_S, start_faulty
from tests.kafka.reading import committed
from tests.kafka.running import END_S, running
from tests.kafka.test_run import EITHER
from tests.kafka.topics import make_topics, read_all, send, wait_for_count

pytestmark = pytest.mark.servers

VERSIONS = 256
STUCK_S = 3
DRAIN_S = 1
ENDS_S = 45
"""A drain, a transaction that is aborted, a farewell to the group; what is left of the batch takes longer than this."""


@EITHER
def test_a_store_that_is_slow_but_answers(kafka_address: str, tmp_path: Path, more: tuple[str, ...]) -> None:
    """Each call that returns is a turn of the loop; SIGTERM ends the batch between two calls, and nothing is lost.

    Versions of one id are judged one after the other, with some calls each.
    """
    topics = make_topics(kafka_address)
    store = f"lmdb:{tmp_path / 'store'}"
    send(topics, [("a", {"body": text(number)}) for number in range(VERSIONS)])
    # The first batch has all of them, however slowly the client hands them out.
    settings = (
        "--set",
        f"http.stuck_s={STUCK_S}",
        "--set",
        f"kafka.drain_s={DRAIN_S}",
        "--set",
        "kafka.linger_s=20",
        *more,
    )
    with running(
        topics, store, tmp_path, *settings, begin=partial(start_faulty, "slow-store"), cwd=tmp_path
    ) as consumer:
        calls = 2 * STUCK_S / CALL_S
        until_s = time.monotonic() + END_S
        while consumer.metric("dupwatch_store_operations_total") < calls:
            assert time.monotonic() < until_s, consumer.log.read_text()
            assert consumer.page("/healthz")[0] in {0, 200}, consumer.page("/healthz")[1]
            time.sleep(0.1)
        assert consumer.metric("dupwatch_articles_total") == 0
        began_s = time.monotonic()
        assert consumer.stop() == 0, consumer.log.read_text()
        assert time.monotonic() - began_s < ENDS_S
    assert "was given up" in consumer.log.read_text()
    assert sum(committed(topics.address, topics.prefix, topics.source)) <= 0
    assert read_all(topics, topics.sink("verdicts")) == []
    with running(topics, store, tmp_path, *more) as consumer:
        wait_for_count(topics, ("verdicts",), VERSIONS)
        assert consumer.stop() == 0
    assert len(read_all(topics, topics.sink("verdicts"))) == VERSIONS
