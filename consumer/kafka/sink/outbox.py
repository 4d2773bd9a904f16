"""The port of what sends messages to topics, the outbox that does so at least once, and what sinks over one share."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from typing_extensions import override

from consumer.kafka.sink.outgoing import OutgoingMessage
from consumer.kafka.sink.producing import BrokerWait, MessageProducer, most_relevant, refused
from consumer.kafka.sink.record_times import RecordTimes
from consumer.model.errors import SinkError
from consumer.model.hooks import Hooks
from consumer.model.ports import Output


class Outbox(Protocol):
    """Sends messages to topics, in the order in which they are handed over for a partition.

    Raises ``SinkError`` where a message can never be accepted. A transactional outbox also raises ``Abandoned`` where
    its transaction was lost; the batch is judged again then.
    """

    def send(self, message: OutgoingMessage) -> None:
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


class AtLeastOnceOutbox(Outbox):
    """``flush`` returns when everything is acknowledged by all in-sync replicas; it waits for brokers that are away.

    ``settings`` are of ``producer_settings``, not transactional: the messages of a partition stay in order, and while
    the brokers are away no message times out. While it waits, ``proceed`` is called several times a second, and what it
    raises ends the wait. Raises ``ConfigError`` where the settings are wrong.

    ``times`` decides which messages keep their record's time. Where a topic refuses one, everything since the last
    flush is sent again.

    Memory: at most queue.buffering.max.kbytes, beside the batch that is being sent.
    """

    def __init__(
        self, settings: Mapping[str, Any], times: RecordTimes, hooks: Hooks, proceed: Callable[[], None]
    ) -> None:
        self._times = times
        self._sent: list[OutgoingMessage] = []
        self._producing: MessageProducer | None = MessageProducer(settings, BrokerWait(hooks, proceed))

    @override
    def send(self, message: OutgoingMessage) -> None:
        self._sent.append(message)
        failed = self._open().send(self._times.dated(message))
        if failed is not None:
            raise refused(failed)

    @override
    def flush(self) -> None:
        producing = self._open()
        while producing.flush():
            failures = producing.settle()
            if producing.ended or not self._times.learn(failures):
                raise refused(most_relevant(failures))
            self._send_again(producing)
        if producing.ended:
            why = "a message was lost" if producing.fatal is None else producing.fatal.str()
            raise SinkError(f"the producer failed: {why}; what was not acknowledged will be judged and sent again")
        self._sent.clear()

    @override
    def close(self) -> None:
        if self._producing is not None:
            self._producing.close()
            self._producing = None

    def _send_again(self, producing: MessageProducer) -> None:
        """Send everything since the last flush again; only the refused messages would come out of order."""
        producing.forget_failed()
        sent, self._sent = self._sent, []
        for message in sent:
            self.send(message)

    def _open(self) -> MessageProducer:
        if self._producing is None:
            raise ValueError("the sink was closed")
        return self._producing
