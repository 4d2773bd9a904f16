"""Replays dead letters: sends their records back to the topics they came from, to be judged again."""

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

_REQUEST_TIMEOUT_S: Final = 10.0
_TIMEOUT_MS: Final = 60_000
_FLUSH_S: Final = _TIMEOUT_MS / 1000 + 5
_POLL_S: Final = 0.1
_QUEUE_KBYTES: Final = 65_536


class ReplayRefused(Exception):  # noqa: N818  # named for the letter; the replay continues
    """A letter cannot be replayed; the message says why."""


class Target(NamedTuple):
    """The topic and partition that a record is sent to; with partition -1 its key decides."""

    topic: str
    partition: int


def target_of(letter: Letter, to: str | None, topics: Mapping[str, int]) -> Target:
    """Return the target of a letter's record: the topic ``to``, or the partition that the record came from.

    That partition has the other versions of the article, however the producer chose it. If it no longer exists, the key
    chooses another partition of the topic. ``topics`` has the number of partitions of each existing topic. Raises
    ``ReplayRefused``.
    """
    if letter.reason is None:
        raise ReplayRefused(letter.detail)
    if letter.cut:
        kept_bytes = len(letter.value or b"")
        raise ReplayRefused(f"only {kept_bytes} of the {letter.size_bytes} bytes of its value were kept")
    if to is not None:
        return Target(to, ANY_PARTITION)
    if letter.origin is None:
        raise ReplayRefused(f"it came from {letter.place}, which is not a topic; add --to TOPIC")
    if letter.origin.topic not in topics:
        raise ReplayRefused(f"its topic {letter.origin.topic} no longer exists; add --to TOPIC")
    has_partition = letter.origin.partition < topics[letter.origin.topic]
    return Target(letter.origin.topic, letter.origin.partition if has_partition else ANY_PARTITION)


class _SentLetter(NamedTuple):
    """A letter's record as it is sent; ``position`` is the letter's."""

    position: str
    message: OutgoingMessage


class LetterReplay:
    """A replay that sends the records of letters back unchanged, with their key, value, own headers and time.

    A time that the topic refuses is moved into a header (``RecordTimes``); such a record is sent again at the end. With
    ``to`` all records go to that topic, without it each goes to its own. With ``dry_run`` nothing is sent. ``sent``
    counts the letters that ``send`` accepted, and ``acknowledged`` the records that are in their topics. Raises
    ``ConfigError`` if ``to`` does not exist or is ``letters_topic``, and ``SinkError`` if the brokers do not answer.
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
        self._refused: list[_SentLetter] = []
        self._topics = topic_sizes(admin_settings(brokers, options), _REQUEST_TIMEOUT_S)
        if to is not None and to not in self._topics:
            raise ConfigError(f"there is no topic {to} at {brokers}; create it, or name another with --to")
        if to == letters_topic:
            raise ConfigError(
                f"{to} is the topic of the dead letters itself, which no consumer judges; name another with --to"
            )
        self._producer = None if dry_run else _producer(brokers, options)

    def send(self, letter: Letter) -> Target:
        """Send a letter without waiting for its delivery.

        Raises ``ReplayRefused`` for this letter, and ``SinkError`` if its record or an earlier one cannot be written.
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
        """Wait until the next letter is due at ``rate`` a second since ``began_s`` (monotonic).

        Returns early once ``stopped`` returns true, and at once with ``dry_run``.
        """
        while self._producer is not None and not stopped():
            wait_s = began_s + self.sent / rate - time.monotonic()
            if wait_s <= 0:
                return
            self._producer.poll(min(wait_s, _POLL_S))

    def finish(self) -> None:
        """Wait until all records are written. Raises ``SinkError`` if some were not."""
        if self._producer is None:
            return
        left = self._producer.flush(_FLUSH_S)
        while self._refused and not left:
            refused, self._refused = self._refused, []
            for letter in refused:
                self._produce(self._producer, letter)
            left = self._producer.flush(_FLUSH_S)
        if left and self._error is None:
            raise SinkError(f"{left} records were not written within {_FLUSH_S:.0f} s; {self.acknowledged} were")
        self._check()

    def _produce(self, producer: Producer, letter: _SentLetter) -> None:
        message = self._times.with_accepted_time(letter.message)
        on_delivery = partial(self._delivered, letter, message.timestamp_ms)
        try:
            produce(producer, message, on_delivery, partial(self._make_room, producer))
        except KafkaException as error:
            raise SinkError(f"{letter.position} cannot be sent to {message.topic}: {error.args[0].str()}") from error
        producer.poll(0)
        self._check()

    def _make_room(self, producer: Producer, _: OutgoingMessage) -> None:
        producer.poll(_POLL_S)
        self._check()

    def _delivered(self, letter: _SentLetter, time_ms: int | None, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.acknowledged += 1
        elif self._can_resend(letter.message, time_ms, error):
            self._refused.append(letter)
        elif self._error is None:
            self._error = error

    def _can_resend(self, message: OutgoingMessage, time_ms: int | None, error: KafkaError) -> bool:
        """Return whether a record can be sent again.

        It can if it was refused for its time, which can be moved, or only because another record was refused.
        """
        failed = FailedMessage(message.topic, message.key, len(message.value or b""), error, time_ms)
        return error.code() == KafkaError._INVALID_DIFFERENT_RECORD or self._times.learn([failed])  # noqa: SLF001

    def _check(self) -> None:
        if self._error is not None:
            raise SinkError(
                f"a record could not be written: {self._error.str()}; {self.acknowledged} were written before it"
            )


def _producer(brokers: str, options: KafkaOptions) -> Producer:
    """Create a producer like that of a run, but with a time limit, because a person waits for the command."""
    defaults: Settings = {
        "message.timeout.ms": _TIMEOUT_MS,
        "queue.buffering.max.kbytes": _QUEUE_KBYTES,
        # The partitioner of Java producers, which send most feeds.
        "partitioner": "murmur2_random",
    }
    return new_producer(producer_settings(brokers, options, transactional=False, defaults=defaults))
