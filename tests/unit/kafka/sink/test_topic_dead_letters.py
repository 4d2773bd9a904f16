"""Dead letters to a topic: through the outbox of the verdicts they are part of the same transaction."""

from consumer.kafka.sink.outgoing import OutgoingMessage
from consumer.kafka.sink.topic_letters import TopicDeadLetters
from consumer.kafka.sink.topic_sink import KafkaSink, MessageRouting
from consumer.kafka.topics import SinkTopics
from tests.kafka.sink_parts import dress, duplicates, letter_headers, raw, rejection

TOPICS = SinkTopics("p")


class NotingOutbox:
    """Notes what is sent, and when it is flushed."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.sent: list[OutgoingMessage] = []

    def send(self, message: OutgoingMessage) -> None:
        """Note its topic."""
        self.steps.append(message.topic)
        self.sent.append(message)

    def flush(self) -> None:
        """Note it."""
        self.steps.append("flush")

    def close(self) -> None:
        """Note it."""
        self.steps.append("close")


def test_verdicts_and_letters_go_through_one_outbox_in_order() -> None:
    """So one transaction holds both, and a flush of either waits for both."""
    outbox = NotingOutbox()
    sink = KafkaSink(outbox, MessageRouting(TOPICS, dress))
    letters = TopicDeadLetters(outbox, TOPICS.dead_letters_topic)
    sink.emit(duplicates("a"))
    letters.reject([rejection(raw(key=b"c"))])
    sink.flush()
    letters.flush()
    assert outbox.steps == ["p.duplicates", "p.dead-letters", "flush", "flush"]
    assert (sink.size_bytes(), letters.size_bytes()) == (None, None)


def test_a_letter_is_the_record_with_headers() -> None:
    """Key, value and time are the record's own; a header has the size of a value that was cut."""
    outbox = NotingOutbox()
    letters = TopicDeadLetters(outbox, "anywhere", letter_headers)
    letters.reject(
        [rejection(raw(b"x" * 5, headers=[("trace", b"1")], size_bytes=500)), rejection(raw(null_value=True))]
    )
    first, second = outbox.sent
    assert (first.topic, first.key, first.value, first.timestamp_ms) == ("anywhere", b"a", b"x" * 5, 1_700_000_000_123)
    assert first.headers == [("trace", b"1"), ("reason", b"invalid_json"), ("dupwatch-cut-of-bytes", b"500")]
    assert second.value is None
