"""Dead letters in a topic that is not there. What brokers say is played here; tests/kafka has real ones."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from consumer.kafka.client_settings import KafkaOptions
from consumer.kafka.sink import topic_letters
from consumer.kafka.sink.topic_letters import TopicLetterReader
from consumer.model.errors import SourceError

TOPIC = "out.dead-letters"


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            KafkaError.UNKNOWN_TOPIC_OR_PART,
            "^there is no topic out.dead-letters at broker:9092; create it, for example with dupwatch topics init$",
        ),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "^the topic out.dead-letters cannot be read: .*authorization"),
    ],
)
def test_a_topic_that_cannot_be_looked_at(monkeypatch: pytest.MonkeyPatch, code: int, sentence: str) -> None:
    """Where it is not there, it is said what makes it; any other error is told in the brokers' words."""
    closed = []

    class Refusing:
        """A client whose brokers answer with this error."""

        def __init__(self, settings: dict[str, Any], **more: object) -> None:
            """Takes any."""

        def list_topics(self, topic: str, timeout: float) -> SimpleNamespace:
            """As the brokers see the topic."""
            assert timeout > 0
            return SimpleNamespace(topics={topic: SimpleNamespace(error=KafkaError(code), partitions={})})

        def close(self) -> None:
            """Be done."""
            closed.append(self)

    monkeypatch.setattr(topic_letters, "new_consumer", Refusing)
    with pytest.raises(SourceError, match=sentence):
        TopicLetterReader("broker:9092", TOPIC, KafkaOptions())
    assert len(closed) == 1
