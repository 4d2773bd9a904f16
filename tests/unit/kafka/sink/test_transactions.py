"""A transactional producer that never gets as far as a commit: what no broker does for as long as it has to last."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from consumer.kafka.sink import transactions
from consumer.kafka.sink.transactions import RENEWALS_MAX, TransactionalOutbox
from consumer.model.errors import Abandoned, SinkError
from consumer.model.hooks import Hooks


class LostProducing:
    """A producer whose transactions are lost as soon as they begin, but for those that are let through."""

    created = 0
    lets_through = False

    def __init__(self, *_: object) -> None:
        type(self).created += 1
        self.client = self
        self.has_failed = False
        self.last_error = ""

    def init_transactions(self) -> None:
        """Nothing to settle."""

    def begin_transaction(self) -> None:
        """Lost, not fatal: the next producer may do better."""
        if not self.lets_through:
            raise KafkaException(KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE))

    def flush(self) -> list[Any]:
        """Nothing was sent."""
        return []

    def commit_transaction(self) -> None:
        """Committed."""

    def serve(self, _: float) -> None:
        """Nothing to report."""

    def close(self) -> None:
        """Nothing to close."""


@pytest.fixture
def outbox(monkeypatch: pytest.MonkeyPatch) -> TransactionalOutbox:
    """An outbox whose producers are lost."""
    monkeypatch.setattr(LostProducing, "created", 0)
    monkeypatch.setattr(LostProducing, "lets_through", False)
    monkeypatch.setattr(transactions, "MessageProducer", LostProducing)
    unused: Any = None
    return TransactionalOutbox({}, unused, Hooks(), lambda: None)


def lose(outbox: TransactionalOutbox, times: int) -> None:
    """Batches that are abandoned one after the other."""
    for _ in range(times):
        with pytest.raises(Abandoned):
            outbox.commit({}, b"")
        outbox.abort()


def test_producers_without_a_commit_are_a_defect_and_end_the_run(outbox: TransactionalOutbox) -> None:
    """An outage makes the first producer wait; many that get nothing done would go on for ever, in silence."""
    lose(outbox, 1 + RENEWALS_MAX)
    with pytest.raises(SinkError, match=f"{RENEWALS_MAX} transactions in a row"):
        outbox.commit({}, b"")
    assert LostProducing.created == 1 + RENEWALS_MAX


def test_a_commit_ends_the_count(outbox: TransactionalOutbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses with commits between them are outages, however many they are: each one has a new producer."""
    for _ in range(2):
        lose(outbox, RENEWALS_MAX)
        monkeypatch.setattr(LostProducing, "lets_through", True)
        outbox.commit({}, b"")
        monkeypatch.setattr(LostProducing, "lets_through", False)
    assert LostProducing.created == 1 + 2 * RENEWALS_MAX
