"""A Kafka producer as the sinks use it: what is handed over is acknowledged, or the run knows why not."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as Delivered

from consumer.kafka.client_log import client_log
from consumer.model.errors import ConfigError, SinkError
from consumer.model.hooks import Hooks, Outage
from consumer.sinks.outbox import Outgoing

SLICE_S: Final = 0.25
"""How long one call waits: after each, somebody is asked whether to wait on."""
TROUBLE_AFTER_S: Final = 2.0
"""A broker that is well answers sooner."""
_KEY_SHOWN_CHARS: Final = 80


class Failed(NamedTuple):
    """A message that was not taken; ``timestamp_ms`` as in ``Outgoing``."""

    topic: str
    key: bytes | None
    size_bytes: int
    error: KafkaError
    timestamp_ms: int | None = None


class Waiting:
    """Waits for brokers on somebody's behalf: asks whether to go on, and says when it has become long."""

    def __init__(self, hooks: Hooks, give_up: Callable[[], None]) -> None:
        self._hooks = hooks
        self._give_up = give_up
        self._since_s: float | None = None
        self._told = False

    def still(self, why: str, last_error: str) -> None:
        """Nothing has moved yet; raises what ``give_up`` raises."""
        self._give_up()
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s = now_s
        elif not self._told and now_s - self._since_s >= TROUBLE_AFTER_S:
            self._told = True
            self._hooks.report(Outage("sink", "brokers", f"{why}{last_error and ': ' + last_error}"))

    def moved(self) -> None:
        """Something was answered."""
        self._since_s = None
        if self._told:
            self._told = False
            self._hooks.report(Outage("sink", "brokers", None))


class _Reports:
    """What a client calls. It knows nothing of the client: the two would keep each other alive, threads and all."""

    def __init__(self) -> None:
        self.failed: list[Failed] = []
        self.last_error = ""

    def delivered(self, timestamp_ms: int | None, error: KafkaError | None, message: Delivered) -> None:
        if error is not None:
            key = message.key()
            size = len(message.value() or b"")
            own = key.encode() if isinstance(key, str) else key
            self.failed.append(Failed(message.topic() or "", own, size, error, timestamp_ms))

    def erred(self, error: KafkaError) -> None:
        # That all are down says less than why the last one is.
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self.last_error:  # noqa: SLF001  # librdkafka's own
            self.last_error = error.str()


class Producing:
    """One producer, with what became of its messages.

    ``settings`` are of ``producer_settings``. ``fatal`` is why the producer can do nothing any more. Not for
    several threads.
    """

    def __init__(self, settings: Mapping[str, Any], waiting: Waiting) -> None:
        self._waiting = waiting
        self._reports = _Reports()
        self.ended = False
        self.fatal: KafkaError | None = None
        callbacks = {"error_cb": self._reports.erred, "logger": client_log}
        try:
            self._client: Producer | None = Producer({**settings, **callbacks})
        except (KafkaException, ValueError, TypeError) as error:
            raise ConfigError(f"kafka: the producer cannot be made: {_said(error)}") from error

    @property
    def client(self) -> Producer:
        """The client, for what is not told here; ``ValueError`` where it was let go."""
        if self._client is None:
            raise ValueError("the producer was closed")
        return self._client

    @property
    def last_error(self) -> str:
        """What the client complained of last, be it ever so long ago."""
        return self._reports.last_error

    def send(self, message: Outgoing) -> Failed | None:
        """Hand over a message, which waits where the queue is full; says so where it is refused at once."""
        while True:
            try:
                self._produce(message)
            except BufferError:
                pass
            except KafkaException as error:
                size = len(message.value or b"")
                return Failed(message.topic, message.key, size, error_of(error), message.timestamp_ms)
            else:
                return None
            before = self.unanswered()
            if not before:
                raise SinkError(
                    f"a message for {message.topic}{_named(message.key)} is larger than the producer's queue; "
                    "raise queue.buffering.max.kbytes in kafka.producer"
                )
            self.serve(SLICE_S)
            self._note(moved=self.unanswered() < before)

    def flush(self) -> Sequence[Failed]:
        """Return when everything is answered, a message was refused, or nothing goes on; what was refused.

        In a transaction nothing is sent any more behind a message that was refused.
        """
        return self._wait(lambda: not self._reports.failed)

    def settle(self) -> Sequence[Failed]:
        """Return when everything is answered, whatever the answer is, or nothing goes on; what was refused."""
        return self._wait(lambda: True)

    def _wait(self, on: Callable[[], bool]) -> Sequence[Failed]:
        left = self.unanswered()
        while left and on() and not self.ended:
            before = left
            self._call(self.client.flush, SLICE_S)
            left = self.unanswered()
            self._note(moved=left < before)
        # Reports of messages that were answered meanwhile; there may be some where nothing is left.
        self.serve(0)
        return tuple(self._reports.failed)

    def serve(self, wait_s: float) -> None:
        """Hear what the client has to say, for so long at most."""
        self._call(self.client.poll, wait_s)

    def forget_failed(self) -> None:
        """What was refused belonged to a batch that is void."""
        self.serve(0)
        self._reports.failed.clear()

    def unanswered(self) -> int:
        """How many messages are under way."""
        return len(self.client)

    def close(self) -> None:
        """Let go of the client, and of what was not sent.

        Its own ``close`` is not called: that of a transactional producer waits for brokers that may be away.
        """
        if self._client is not None:
            self._client.purge()
            self.serve(0)
            self._client = None

    def _call(self, call: Callable[[float], int], wait_s: float) -> None:
        """Make a call that serves callbacks. The client raises what has ended it, out of whichever call hears it."""
        try:
            call(wait_s)
        except KafkaException as error:
            self.ended = True
            self.fatal = error_of(error)
        except SystemError:
            # The same, but the exception was lost: a delivery report was served after it, within one call.
            self.ended = True

    def _produce(self, message: Outgoing) -> None:
        self.client.produce(
            message.topic,
            value=message.value,
            key=message.key,
            headers=[*message.headers],
            timestamp=message.timestamp_ms or 0,
            on_delivery=partial(self._reports.delivered, message.timestamp_ms),
        )
        # Each message is a delivery report later: without this they would pile up until the flush.
        self.serve(0)

    def _note(self, *, moved: bool) -> None:
        if moved:
            self._waiting.moved()
        else:
            self._waiting.still("nothing that was sent to Kafka is acknowledged", self._reports.last_error)


def refused(failed: Failed) -> SinkError:
    """The error of a message that was not taken: which one it was, and what is to be done."""
    what = f"a message for {failed.topic}{_named(failed.key)} was refused: {failed.error.str()}"
    advice = _ADVICE.get(failed.error.code())
    return SinkError(f"{what}; {advice.format(topic=failed.topic)}" if advice else what)


def blamed(failures: Sequence[Failed]) -> Failed:
    """The one to be named of several that were refused: of those too large together, the largest."""
    guilty = [one for one in failures if one.error.code() != KafkaError._INVALID_DIFFERENT_RECORD]  # noqa: SLF001
    return max(guilty or failures, key=lambda one: one.size_bytes)


def hopeless(error: KafkaError) -> bool:
    """Whether the same message would be refused again, however often it is sent."""
    return error.code() in _ADVICE


def error_of(error: KafkaException) -> KafkaError:
    """What the client's exception says."""
    said: KafkaError = error.args[0]
    return said


def _said(error: Exception) -> str:
    return error.args[0].str() if isinstance(error, KafkaException) else str(error)


_TOO_LARGE: Final = "raise max.message.bytes of the topic, and message.max.bytes in kafka.producer"
_NO_TOPIC: Final = "make it: dupwatch topics init"
_NOT_ALLOWED: Final = "allow this user to write to the topic {topic}"
_ADVICE: Final[Mapping[int, str]] = {
    KafkaError.MSG_SIZE_TOO_LARGE: _TOO_LARGE,
    KafkaError.INVALID_MSG_SIZE: _TOO_LARGE,
    KafkaError._UNKNOWN_TOPIC: _NO_TOPIC,  # noqa: SLF001  # librdkafka's own codes are named so
    KafkaError._UNKNOWN_PARTITION: _NO_TOPIC,  # noqa: SLF001
    KafkaError.UNKNOWN_TOPIC_OR_PART: _NO_TOPIC,
    KafkaError.TOPIC_EXCEPTION: "the name of the topic is not valid; choose another prefix",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: _NOT_ALLOWED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "allow this user IdempotentWrite on the cluster",
    KafkaError.INVALID_RECORD: "a compacted topic takes no message without a key; see: dupwatch topics init",
    KafkaError.INVALID_MSG: "a compacted topic takes no message without a key; see: dupwatch topics init",
    KafkaError.INVALID_TIMESTAMP: (
        "the time of sending is out of the bounds of the topic {topic} (message.timestamp.before.max.ms, "
        "message.timestamp.after.max.ms): compare the clocks of this machine and of the brokers"
    ),
    KafkaError.POLICY_VIOLATION: "the brokers have a policy that forbids it",
}


def _named(key: bytes | None) -> str:
    return "" if key is None else f" (id {key.decode(errors='replace')[:_KEY_SHOWN_CHARS]!r})"
