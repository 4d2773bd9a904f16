"""The port of what sends messages to topics, and what sinks over one have in common: verdicts and letters share one."""

from typing import Protocol

from typing_extensions import override

from consumer.kafka.sink.outgoing import Outgoing
from consumer.model.ports import Output


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


class OutboxOutput(Output):
    """A sink that sends its messages through an outbox, which it may share: flushing one sink flushes all of them."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox

    @override
    def flush(self) -> None:
        self.outbox.flush()

    @override
    def close(self) -> None:
        """Close the outbox; the last sink that shares it finds it closed."""
        self.outbox.close()
