"""Messages are handed to a producer, however full its queue is."""

from typing import Any, cast

import pytest
from confluent_kafka import Producer

from consumer.kafka.sink.outgoing import OutgoingMessage, produce
from consumer.model.errors import SinkError

MESSAGE = OutgoingMessage("feed", b"key", b"value", [("name", b"1")], None, 3)


class FullProducer:
    """A producer whose queue is full at first."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.produced: list[dict[str, Any]] = []

    def produce(self, topic: str, **given: object) -> None:
        """Refuse, or take a message."""
        if self.refusals:
            self.refusals -= 1
            raise BufferError
        self.produced.append({"topic": topic, **given})


def unused(*_: object) -> None:
    """Stand for the delivery report that never comes."""


def test_a_message_waits_for_room() -> None:
    """It is sent once, and without a time of its own gets that of sending."""
    client = FullProducer(2)
    waits: list[OutgoingMessage] = []
    produce(cast("Producer", client), MESSAGE, unused, waits.append)
    assert waits == [MESSAGE, MESSAGE]
    (produced,) = client.produced
    assert produced == {
        "topic": "feed",
        "key": b"key",
        "value": b"value",
        "headers": [("name", b"1")],
        "partition": 3,
        "timestamp": 0,
        "on_delivery": unused,
    }


def test_a_wait_for_room_can_be_ended() -> None:
    """What the wait raises is raised, and the message is not sent."""

    def refuse(message: OutgoingMessage) -> None:
        raise SinkError(f"{message.topic} takes nothing")

    client = FullProducer(1)
    with pytest.raises(SinkError, match="feed takes nothing"):
        produce(cast("Producer", client), MESSAGE, unused, refuse)
    assert client.produced == []
