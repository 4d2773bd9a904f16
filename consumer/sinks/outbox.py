"""Messages on their way to topics, and the port of what sends them: verdicts and dead letters share one."""

from typing import NamedTuple, Protocol

from consumer.model.record import NO_TIME_MS, Headers, Message


class Outgoing(NamedTuple):
    """A message to be sent; ``timestamp_ms`` is the time of the record it copies, None where the client sets it."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int | None = None


class Outbox(Protocol):
    """Sends messages to topics, in the order in which they are handed over for a partition.

    Raises ``SinkError`` where a message can never be accepted. A transactional outbox also raises ``Abandoned`` where
    its transaction was lost; the batch is judged again then.
    """

    def send(self, message: Outgoing) -> None:
        """Hand over a message; waits where the queue is full."""
        ...

    def flush(self) -> None:
        """Return when all messages are in their topics. Without new messages since the last flush, returns at once."""
        ...

    def close(self) -> None:
        """Release the client; what was not flushed may be lost. Closing again does nothing."""
        ...


def time_of(message: Message) -> int | None:
    """Return the time of a record from a topic, None where it has none."""
    return None if message.timestamp_ms == NO_TIME_MS else message.timestamp_ms
