"""How the replicas of topics are read, and how often."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from consumer.kafka.source.client_thread import REPLICAS_S, Replicas, ReplicasChecked
from consumer.model.hooks import Hooks


class _Client:
    """A client that knows one topic, of which broker 3 is away."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.away = False

    def list_topics(self, topic: str, timeout: float) -> Any:  # noqa: ANN401  # the client has no public type for it
        assert timeout <= 1
        self.asked.append(topic)
        if self.away:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        partitions = {
            0: SimpleNamespace(replicas=[1, 2, 3], isrs=[1, 2]),
            1: SimpleNamespace(replicas=[1, 2], isrs=[2, 1]),
            2: SimpleNamespace(replicas=[3], isrs=[]),
        }
        known = {"articles": SimpleNamespace(error=None, partitions=partitions)}
        return SimpleNamespace(topics=known)


@pytest.fixture
def seen() -> list[ReplicasChecked]:
    """What was reported."""
    return []


@pytest.fixture
def hooks(seen: list[ReplicasChecked]) -> Hooks:
    """Hooks that note it."""
    made = Hooks()
    made.on(ReplicasChecked, seen.append)
    return made


def test_partitions_that_lack_a_replica_are_counted_now_and_then(
    hooks: Hooks, seen: list[ReplicasChecked], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, and again after a while; of a topic that is not there nothing is said."""
    client: Any = _Client()
    replicas = Replicas(["missing", "articles"], hooks)
    replicas.check(client)
    replicas.check(client)
    assert (seen, client.asked) == ([ReplicasChecked("articles", 2)], ["missing", "articles"])
    later_s = time.monotonic() + REPLICAS_S
    monkeypatch.setattr(time, "monotonic", lambda: later_s)
    replicas.check(client)
    assert len(seen) == 2


def test_brokers_that_do_not_answer_are_not_asked_all_the_time(hooks: Hooks, seen: list[ReplicasChecked]) -> None:
    """Each question takes a second of the thread that keeps the consumer in its group."""
    client: Any = _Client()
    client.away = True
    replicas = Replicas(["articles", "more"], hooks)
    replicas.check(client)
    replicas.check(client)
    assert (seen, client.asked) == ([], ["articles"])
