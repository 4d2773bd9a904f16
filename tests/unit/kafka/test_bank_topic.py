"""Banks in a topic that nobody reaches."""

import pytest

from consumer.banks.bank import BanksUnreachable
from consumer.kafka import topics
from consumer.kafka.bank_topic import BankTopic
from consumer.kafka.client_settings import KafkaOptions


def test_a_change_says_that_the_brokers_do_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a read does, so that whoever asks knows that the same change may be repeated."""
    monkeypatch.setattr(topics, "REQUEST_TIMEOUT_S", 0.2)
    with pytest.raises(BanksUnreachable, match=r"127\.0\.0\.1:1"):
        BankTopic("127.0.0.1:1", "feed.banks", KafkaOptions()).change(lambda _: [])
