"""A chaos run continues to send, whatever error a transactional producer reports."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.chaos.kafka import sending
from tests.chaos.kafka.feed_message import FeedMessage, Transaction, Way
from tests.chaos.kafka.sending import Senders
from tests.kafka.topics import Topics

TOPICS = Topics("127.0.0.1:1", "source", "prefix", 1)


class FailingProducer:
    """A producer whose calls of these names fail, its own close too, as confluent-kafka's does since 2.16."""

    def __init__(self, error: KafkaError, *failing: str) -> None:
        self._error = error
        self._failing = {*failing, "close"}
        self.calls: list[str] = []

    def __len__(self) -> int:
        return 0

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*_: Any, **__: Any) -> int:  # noqa: ANN401  # whatever the call takes
            self.calls.append(name)
            if name in self._failing:
                raise KafkaException(self._error)
            return 0

        return call


@pytest.mark.parametrize(
    ("error", "failing"),
    [
        (KafkaError(KafkaError.INVALID_TXN_STATE, fatal=True), ["commit_transaction"]),
        (
            KafkaError(KafkaError.INVALID_TXN_STATE, txn_requires_abort=True),
            ["commit_transaction", "abort_transaction"],
        ),
    ],
    ids=["fatal", "abort fails too"],
)
def test_a_producer_that_failed_is_replaced(
    error: KafkaError, failing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What librdkafka calls fatal at the end of a transaction need not be so for the next producer (its issue 4849)."""
    producers = [FailingProducer(error, *failing), FailingProducer(error)]
    created = iter(producers)
    monkeypatch.setattr(sending, "_made_producer", lambda *_: next(created))
    senders = Senders(TOPICS)
    try:
        senders.send(0, FeedMessage(b"k", b"v", way=Way(transaction=Transaction(0, last=True, aborted=False))))
        assert senders.flush(30.0) == 0
    finally:
        senders.close()
    assert "commit_transaction" in producers[0].calls
    assert producers[1].calls.count("commit_transaction") == 1
    assert all("close" not in producer.calls for producer in producers)
