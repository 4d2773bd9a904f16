"""A Kafka producer for outboxes, in which every message is either acknowledged or reported with its error."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as Delivered

from consumer.kafka.clients import new_producer
from consumer.kafka.sink.outgoing import OutgoingMessage, produce
from consumer.model.errors import SinkError
from consumer.model.hooks import Hooks, Outage

SLICE_S: Final = 0.25
"""How long one call to the client waits. A longer wait can end between two calls."""
TROUBLE_AFTER_S: Final = 2.0
"""A wait of this length is reported; healthy brokers answer sooner."""
_KEY_SHOWN_CHARS: Final = 80


class FailedMessage(NamedTuple):
    """A refused message. ``timestamp_ms`` is that of the ``OutgoingMessage``."""

    topic: str
    key: bytes | None
    size_bytes: int
    error: KafkaError
    timestamp_ms: int | None = None


class BrokerWait:
    """A wait for brokers. It is reported as an outage once it has lasted ``TROUBLE_AFTER_S``, and can be ended.

    ``proceed`` is called several times a second while there is no progress; an exception from it ends the wait.
    """

    def __init__(self, hooks: Hooks, proceed: Callable[[], None]) -> None:
        self._hooks = hooks
        self._proceed = proceed
        self._since_s: float | None = None
        self._reported = False

    def note_no_progress(self, why: str, last_error: str) -> None:
        """Note that there was no progress since the last call. Raises the exceptions of ``proceed``."""
        self._proceed()
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s = now_s
        elif not self._reported and now_s - self._since_s >= TROUBLE_AFTER_S:
            self._reported = True
            self._hooks.report(Outage("sink", "brokers", f"{why}{last_error and ': ' + last_error}"))

    def note_progress(self) -> None:
        """Note progress, and report the end of an outage."""
        self._since_s = None
        if self._reported:
            self._reported = False
            self._hooks.report(Outage("sink", "brokers", None))


class _DeliveryReports:
    """The client's callbacks, without a reference to the client, so that both can be garbage-collected."""

    def __init__(self) -> None:
        self.failed: list[FailedMessage] = []
        self.last_error = ""

    def delivered(self, timestamp_ms: int | None, error: KafkaError | None, message: Delivered) -> None:
        if error is not None:
            key = message.key()
            size = len(message.value() or b"")
            key_bytes = key.encode() if isinstance(key, str) else key
            self.failed.append(FailedMessage(message.topic() or "", key_bytes, size, error, timestamp_ms))

    def on_error(self, error: KafkaError) -> None:
        # "All brokers down" says less than the last broker's error.
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self.last_error:  # noqa: SLF001  # librdkafka's own
            self.last_error = error.str()


class MessageProducer:
    """A producer that remembers the messages that were refused. Not thread-safe.

    ``settings`` come from ``producer_settings``. ``has_failed`` says whether the producer has failed permanently, and
    ``fatal`` why, if known.
    """

    def __init__(self, settings: Mapping[str, Any], waiting: BrokerWait) -> None:
        self._waiting = waiting
        self._reports = _DeliveryReports()
        self.has_failed = False
        self.fatal: KafkaError | None = None
        self._client: Producer | None = new_producer({**settings, "error_cb": self._reports.on_error})

    @property
    def client(self) -> Producer:
        """Return the client, for other calls. Raises ``ValueError`` after ``close``."""
        if self._client is None:
            raise ValueError("the producer was closed")
        return self._client

    @property
    def last_error(self) -> str:
        """Return the client's last error, however old, or an empty string."""
        return self._reports.last_error

    def send(self, message: OutgoingMessage) -> FailedMessage | None:
        """Hand a message to the client, waiting while its queue is full. Return the failure if it is refused."""
        try:
            produce(self.client, message, partial(self._reports.delivered, message.timestamp_ms), self._make_room)
        except KafkaException as error:
            size = len(message.value or b"")
            return FailedMessage(message.topic, message.key, size, kafka_error(error), message.timestamp_ms)
        # Delivery reports, one for each message, would otherwise pile up until the flush.
        self.serve(0)
        return None

    def flush(self) -> Sequence[FailedMessage]:
        """Wait until all messages are acknowledged, one is refused, or the producer fails. Return the refused messages.

        Unlike ``settle``, it does not wait for the messages after a refused one.
        """
        return self._wait(lambda: not self._reports.failed)

    def settle(self) -> Sequence[FailedMessage]:
        """Wait until all messages are acknowledged or refused, or the producer fails. Return the refused messages."""
        return self._wait(lambda: True)

    def _wait(self, keep_waiting: Callable[[], bool]) -> Sequence[FailedMessage]:
        left = self.unanswered()
        while left and keep_waiting() and not self.has_failed:
            before = left
            self._call(self.client.flush, SLICE_S)
            left = self.unanswered()
            self._note(progress=left < before)
        # Even if every message was answered, reports may still be pending.
        self.serve(0)
        return tuple(self._reports.failed)

    def serve(self, wait_s: float) -> None:
        """Serve the client's callbacks for at most this long."""
        self._call(self.client.poll, wait_s)

    def forget_failed(self) -> None:
        """Forget the refused messages, because their batch was given up or is sent again."""
        self.serve(0)
        self._reports.failed.clear()

    def unanswered(self) -> int:
        """Return the number of messages without an answer."""
        return len(self.client)

    def close(self) -> None:
        """Release the client, and discard unsent messages.

        The client's own ``close`` is not called: that of a transactional producer waits for unreachable brokers.
        """
        if self._client is not None:
            self._client.purge()
            self.serve(0)
            self._client = None

    def _call(self, call: Callable[[float], int], wait_s: float) -> None:
        """Make a call that serves callbacks, and note the error that ended the client. Any such call may raise it."""
        try:
            call(wait_s)
        except KafkaException as error:
            self.has_failed = True
            self.fatal = kafka_error(error)
        except SystemError:
            # The same error, but a delivery report served later in the same call replaced the exception.
            self.has_failed = True

    def _make_room(self, message: OutgoingMessage) -> None:
        """Wait for answers, to make room in the queue. Raises ``SinkError`` if the message is larger than the queue."""
        before = self.unanswered()
        if not before:
            raise SinkError(
                f"a message for {message.topic}{_key_suffix(message.key)} is larger than the producer's queue; "
                "raise queue.buffering.max.kbytes in kafka.producer"
            )
        self.serve(SLICE_S)
        self._note(progress=self.unanswered() < before)

    def _note(self, *, progress: bool) -> None:
        if progress:
            self._waiting.note_progress()
        else:
            self._waiting.note_no_progress("Kafka acknowledges no messages", self._reports.last_error)


def refusal_error(failed: FailedMessage) -> SinkError:
    """Return an error that names a refused message, the reason, and the remedy if there is one."""
    what = f"a message for {failed.topic}{_key_suffix(failed.key)} was refused: {failed.error.str()}"
    advice = _ADVICE.get(failed.error.code())
    return SinkError(f"{what}; {advice.format(topic=failed.topic)}" if advice else what)


def most_relevant(failures: Sequence[FailedMessage]) -> FailedMessage:
    """Return the largest refused message, to report it. Messages refused only because of others come last."""
    causes = [failed for failed in failures if failed.error.code() != KafkaError._INVALID_DIFFERENT_RECORD]  # noqa: SLF001
    return max(causes or failures, key=lambda failed: failed.size_bytes)


def is_permanent(error: KafkaError) -> bool:
    """Return whether the same message is refused until somebody follows the advice in ``refusal_error``."""
    return error.code() in _ADVICE


def kafka_error(error: KafkaException) -> KafkaError:
    """Return the error in the client's exception."""
    client_error: KafkaError = error.args[0]
    return client_error


_TOO_LARGE: Final = "raise max.message.bytes of the topic, and message.max.bytes in kafka.producer"
_NO_TOPIC: Final = "create it: dupwatch topics init"
_NOT_ALLOWED: Final = "allow this user to write to the topic {topic}"
_ADVICE: Final[Mapping[int, str]] = {
    KafkaError.MSG_SIZE_TOO_LARGE: _TOO_LARGE,
    KafkaError.INVALID_MSG_SIZE: _TOO_LARGE,
    KafkaError._UNKNOWN_TOPIC: _NO_TOPIC,  # noqa: SLF001  # librdkafka's own codes begin with _
    KafkaError._UNKNOWN_PARTITION: _NO_TOPIC,  # noqa: SLF001
    KafkaError.UNKNOWN_TOPIC_OR_PART: _NO_TOPIC,
    KafkaError.TOPIC_EXCEPTION: "the name of the topic is not valid; choose another prefix",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: _NOT_ALLOWED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "allow this user IdempotentWrite on the cluster",
    KafkaError.INVALID_RECORD: "a compacted topic accepts no message without a key; see: dupwatch topics init",
    KafkaError.INVALID_MSG: "a compacted topic accepts no message without a key; see: dupwatch topics init",
    KafkaError.INVALID_TIMESTAMP: (
        "the time of sending is outside the limits of the topic {topic} (message.timestamp.before.max.ms, "
        "message.timestamp.after.max.ms): compare the clocks of this machine and the brokers"
    ),
    KafkaError.POLICY_VIOLATION: "a policy of the brokers forbids it",
}


def _key_suffix(key: bytes | None) -> str:
    return "" if key is None else f" (id {key.decode(errors='replace')[:_KEY_SHOWN_CHARS]!r})"
