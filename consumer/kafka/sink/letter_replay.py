"""Replays dead letters: sends their records back to the topic they came from, to be judged again."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from consumer.kafka.client_settings import KafkaOptions, Settings, admin_settings, producer_settings
from consumer.kafka.clients import new_producer
from consumer.kafka.sink.letter_headers import replayed_headers
from consumer.kafka.sink.outgoing import ANY_PARTITION, OutgoingMessage, produce
from consumer.kafka.sink.producing import FailedMessage
from consumer.kafka.sink.record_times import RecordTimes
from consumer.kafka.topics import topic_sizes
from consumer.model.errors import ConfigError, SinkError
from consumer.model.hooks import Hooks
from consumer.model.letter import Letter
from storage.clock import now_ms

_ASK_S: Final = 10.0
_TIMEOUT_MS: Final = 60_000
_FLUSH_S: Final = _TIMEOUT_MS / 1000 + 5
_POLL_S: Final = 0.1
_QUEUE_KBYTES: Final = 65_536


class ReplayRefused(Exception):  # noqa: N818  # named for the letter; the replay continues
    """A letter that cannot be replayed, and why."""


class Target(NamedTuple):
    """Where a record is sent; with partition -1 its key decides."""

    topic: str
    partition: int


def target_of(letter: Letter, to: str | None, topics: Mapping[str, int]) -> Target:
    """Return where a letter's record is sent: to the topic ``to``, or to the partition it came from.

    In its own partition it stays with the other versions of its id, however the producer chose that partition.
    ``topics`` has the number of partitions of each existing topic. Raises ``ReplayRefused``.
    """
    if letter.reason is None:
        raise ReplayRefused(letter.detail)
    if letter.cut:
        have = len(letter.value or b"")
        raise ReplayRefused(f"only {have} bytes of its value were kept, of {letter.size_bytes}")
    if to is not None:
        return Target(to, ANY_PARTITION)
    if letter.origin is None:
        raise ReplayRefused(f"it came from {letter.place}, which is not a topic; add --to TOPIC")
    if letter.origin.topic not in topics:
        raise ReplayRefused(f"its topic {letter.origin.topic} does not exist any more; add --to TOPIC")
    there = letter.origin.partition < topics[letter.origin.topic]
    return Target(letter.origin.topic, letter.origin.partition if there else ANY_PARTITION)


class _SentLetter(NamedTuple):
    """A letter's record on its way; ``position`` is the letter's."""

    position: str
    message: OutgoingMessage


class LetterReplay:
    """Sends the records of letters back unchanged: key, value, their own headers and time.

    A time that the topic refuses is moved into a header (``RecordTimes``); such a record is sent again at the end.
    With ``to`` all records go to that topic, otherwise each to its own. With ``dry_run`` nothing is sent. Raises
    ``ConfigError`` where ``to`` does not exist or is ``letters_topic``, ``SinkError`` where nothing can be sent.
    """

    def __init__(
        self,
        brokers: str,
        options: KafkaOptions,
        letters_topic: str,
        to: str | None,
        ahead_ms_max: int,
        *,
        dry_run: bool,
    ) -> None:
        self.sent = 0
        self.acknowledged = 0
        self._to = to
        self._error: KafkaError | None = None
        self._times = RecordTimes(now_ms, ahead_ms_max, Hooks())
        self._again: list[_SentLetter] = []
        self._topics = topic_sizes(admin_settings(brokers, options), _ASK_S)
        if to is not None and to not in self._topics:
            raise ConfigError(f"there is no topic {to} at {brokers}; create it, or name another with --to")
        if to == letters_topic:
            raise ConfigError(
                f"{to} is the topic of the dead letters itself, which no consumer judges; name another with --to"
            )
        self._producer = None if dry_run else _producer(brokers, options)

    def send(self, letter: Letter) -> Target:
        """Send a letter without waiting for its delivery.

        Raises ``ReplayRefused``, and ``SinkError`` for an earlier letter.
        """
        target = target_of(letter, self._to, self._topics)
        if self._producer is not None:
            headers = replayed_headers(letter.headers, letter.replays)
            message = OutgoingMessage(
                target.topic, letter.key, letter.value, headers, letter.record_time_ms, target.partition
            )
            self._produce(self._producer, _SentLetter(letter.position, message))
        self.sent += 1
        return target

    def pace(self, rate: float, began_s: float, stopped: Callable[[], bool]) -> None:
        """Return when the next one is due at ``rate`` per second since ``began_s`` (monotonic), or when ``stopped``."""
        while self._producer is not None and not stopped():
            wait_s = began_s + self.sent / rate - time.monotonic()
            if wait_s <= 0:
                return
            self._producer.poll(min(wait_s, _POLL_S))

    def finish(self) -> None:
        """Return when everything that was sent is written; raises ``SinkError`` otherwise."""
        if self._producer is None:
            return
        left = self._producer.flush(_FLUSH_S)
        while self._again and not left:
            again, self._again = self._again, []
            for sending in again:
                self._produce(self._producer, sending)
            left = self._producer.flush(_FLUSH_S)
        if left and self._error is None:
            raise SinkError(f"{left} records were not written within {_FLUSH_S:.0f} s; {self.acknowledged} were")
        self._check()

    def _produce(self, producer: Producer, sending: _SentLetter) -> None:
        message = self._times.dated(sending.message)
        on_delivery = partial(self._delivered, sending, message.timestamp_ms)
        try:
            produce(producer, message, on_delivery, partial(self._make_room, producer))
        except KafkaException as error:
            raise SinkError(f"{sending.position} cannot be sent to {message.topic}: {error.args[0].str()}") from error
        producer.poll(0)
        self._check()

    def _make_room(self, producer: Producer, _: OutgoingMessage) -> None:
        producer.poll(_POLL_S)
        self._check()

    def _delivered(self, sending: _SentLetter, time_ms: int | None, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.acknowledged += 1
        elif self._may_be_taken(sending.message, time_ms, error):
            self._again.append(sending)
        elif self._error is None:
            self._error = error

    def _may_be_taken(self, message: OutgoingMessage, time_ms: int | None, error: KafkaError) -> bool:
        """Return whether a refused record can be sent with another time, or was refused only because another was."""
        failed = FailedMessage(message.topic, message.key, len(message.value or b""), error, time_ms)
        return error.code() == KafkaError._INVALID_DIFFERENT_RECORD or self._times.learn([failed])  # noqa: SLF001

    def _check(self) -> None:
        if self._error is not None:
            raise SinkError(f"a record could not be written: {self._error.str()}; {self.acknowledged} were before it")


def _producer(brokers: str, options: KafkaOptions) -> Producer:
    """Return a producer as the consumer's own, but with a time limit: somebody waits for the end."""
    defaults: Settings = {
        "message.timeout.ms": _TIMEOUT_MS,
        "queue.buffering.max.kbytes": _QUEUE_KBYTES,
        # As Java producers choose partitions, which send most feeds.
        "partitioner": "murmur2_random",
    }
    return new_producer(producer_settings(brokers, options, transactional=False, defaults=defaults))
