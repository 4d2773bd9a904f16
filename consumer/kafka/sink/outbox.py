"""The port that sends messages to topics, its at-least-once implementation, and the base of sinks that use one."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from typing_extensions import override

from consumer.kafka.sink.outgoing import OutgoingMessage
from consumer.kafka.sink.producing import BrokerWait, MessageProducer, most_relevant, refusal_error
from consumer.kafka.sink.record_times import RecordTimes
from consumer.model.errors import SinkError
from consumer.model.hooks import Hooks
from consumer.model.ports import Output


class Outbox(Protocol):
    """A sender of messages to topics, which keeps their order within a partition.

    Raises ``SinkError`` if a message can never be accepted. A transactional outbox also raises ``Abandoned`` if its
    transaction was lost; the batch is then judged again.
    """

    def send(self, message: OutgoingMessage) -> None:
        """Hand over a message; wait while the queue is full."""
        ...

    def flush(self) -> None:
        """Wait until all messages are in their topics. Does nothing if none was sent since the last flush."""
        ...

    def close(self) -> None:
        """Release the client; messages that were not flushed may be lost. A second call does nothing."""
        ...


class OutboxOutput(Output):
    """A sink that sends its messages through an outbox. If sinks share one, flushing one sink flushes all of them."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox

    @override
    def flush(self) -> None:
        self.outbox.flush()

    @override
    def close(self) -> None:
        """Close the outbox; closing a shared one again does nothing."""
        self.outbox.close()


class AtLeastOnceOutbox(Outbox):
    """An outbox whose ``flush`` waits until all in-sync replicas have acknowledged every message.

    ``settings`` come from ``producer_settings`` without ``transactional``. With them, the messages of a partition keep
    their order, and no message times out while the brokers are unreachable. ``proceed`` is called several times a
    second during a wait; an exception from it ends the wait. Raises ``ConfigError`` if the settings are wrong.

    ``times`` decides which messages keep their record's time. If a topic refuses such a time, all messages since the
    last flush are sent again.

    Memory: at most queue.buffering.max.kbytes, plus the batch that is being sent.
    """

    def __init__(
        self, settings: Mapping[str, Any], times: RecordTimes, hooks: Hooks, proceed: Callable[[], None]
    ) -> None:
        self._times = times
        self._sent: list[OutgoingMessage] = []
        self._producer: MessageProducer | None = MessageProducer(settings, BrokerWait(hooks, proceed))

    @override
    def send(self, message: OutgoingMessage) -> None:
        self._sent.append(message)
        failed = self._require_producer().send(self._times.with_accepted_time(message))
        if failed is not None:
            raise refusal_error(failed)

    @override
    def flush(self) -> None:
        producer = self._require_producer()
        while producer.flush():
            failures = producer.settle()
            if producer.has_failed or not self._times.learn(failures):
                raise refusal_error(most_relevant(failures))
            self._resend(producer)
        if producer.has_failed:
            why = "a message was lost" if producer.fatal is None else producer.fatal.str()
            raise SinkError(
                f"the producer failed: {why}; unacknowledged articles will be judged and sent again after a restart"
            )
        self._sent.clear()

    @override
    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _resend(self, producer: MessageProducer) -> None:
        """Send all messages since the last flush again; the refused ones alone would be out of order."""
        producer.forget_failed()
        sent, self._sent = self._sent, []
        for message in sent:
            self.send(message)

    def _require_producer(self) -> MessageProducer:
        if self._producer is None:
            raise ValueError("the sink was closed")
        return self._producer
