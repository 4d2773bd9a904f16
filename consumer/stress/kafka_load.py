"""Sends articles to a topic, and reads their verdicts from the topic of all verdicts."""

import threading
import time
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from consumer.kafka.client_settings import (
    KafkaOptions,
    PrefixAddress,
    TopicsAddress,
    admin_settings,
    consumer_settings,
    producer_settings,
)
from consumer.kafka.clients import broker_request, new_consumer, new_producer
from consumer.kafka.errors import describe, is_fatal, is_refusal, no_topic
from consumer.kafka.offset_range import partitions_of, watermarks
from consumer.kafka.sink.outgoing import OutgoingMessage, produce
from consumer.kafka.topics import SinkTopics, topic_sizes
from consumer.model.errors import SinkError, SourceError
from consumer.model.verdict import Outcome
from consumer.stress.load import SLICE_S, Load, Stop, wait_until
from consumer.stress.trial import Trial
from storage.clock import MS_PER_S

_FULL_QUEUE_POLL_S: Final = 0.001
_SETTLE_S: Final = 0.2
"""The delay before the first article is due, in which the reader begins to fetch at its new offsets."""
_PARTITIONER: Final = "murmur2_random"
"""The partitioner of Java clients, as in ``FeedSender``."""


class _JudgedArticle(msgspec.Struct):
    """The fields of a verdict that are needed here."""

    id: str
    outcome: Outcome


_DECODER: Final = msgspec.json.Decoder(_JudgedArticle)


class KafkaLoad(Load):
    """Consumers that read a topic and write all verdicts to another.

    ``source`` names one topic. ``wait_s`` limits the waits for brokers and for the first verdict; later, the run ends
    when no verdict has come for that long. Raises ``SourceError`` if a topic does not exist, ``SinkError`` if no broker
    answers, and ``ConfigError`` for invalid settings.
    """

    def __init__(self, source: TopicsAddress, sink: PrefixAddress, options: KafkaOptions, wait_s: float) -> None:
        self._topic = source.names[0]
        self._verdicts = SinkTopics(sink.prefix).verdicts_topic
        self._source, self._sink, self._wait_s = source, sink, wait_s
        self._error: KafkaError | None = None
        self._trial: Trial | None = None
        if self._topic not in topic_sizes(admin_settings(source.brokers, options), wait_s):
            raise no_topic(self._topic, source.brokers)
        if self._verdicts not in topic_sizes(admin_settings(sink.brokers, options), wait_s):
            raise SourceError(
                f"there is no topic {self._verdicts} at {sink.brokers}; create it, and run the consumers with "
                "--emit all, which writes all verdicts there"
            )
        # Waiting to fill a request would lengthen every measured wait.
        defaults: dict[str, Any] = {"linger.ms": 0, "message.timeout.ms": int(wait_s * MS_PER_S)}
        settings = producer_settings(source.brokers, options, transactional=False, defaults=defaults)
        self._producer = new_producer({"partitioner": _PARTITIONER, **settings})
        self._reader = new_consumer(consumer_settings(sink.brokers, options))
        self._skip_to_end()

    def _skip_to_end(self) -> None:
        """Continue to read at the current end of each partition, so that no backlog of other verdicts delays ours."""
        with broker_request(self._sink.brokers, f"the topic {self._verdicts} cannot be read"):
            numbers = partitions_of(self._reader, self._verdicts, self._sink.brokers, self._wait_s)
            ends = [watermarks(self._reader, self._verdicts, number, self._wait_s)[1] for number in numbers]
        places = zip(numbers, ends, strict=True)
        self._reader.assign([TopicPartition(self._verdicts, number, end) for number, end in places])

    def close(self) -> None:
        """Close both clients, and discard articles that no broker has accepted."""
        self._producer.purge()
        self._reader.close()

    def try_out(self, article_id: str, article: bytes) -> None:
        """Send one article, and wait for its verdict. Raises ``SinkError`` and ``SourceError``."""
        self._send(article_id, article)
        until_s = time.monotonic() + self._wait_s
        while (left_s := until_s - time.monotonic()) > 0 and self._error is None:
            self._producer.poll(0)
            found = _verdict(self._reader.poll(min(left_s, SLICE_S)), self._verdicts)
            if found is not None and found.id == article_id:
                return
        self._raise_if_undelivered()
        raise SourceError(
            f"no verdict of {article_id} has come to {self._verdicts} within {self._wait_s:g} s. Check that a consumer "
            f"of {self._topic} runs with --emit all, and look into {SinkTopics(self._sink.prefix).dead_letters_topic}."
        )

    def run(self, articles: Iterator[bytes], trial: Trial, stop: Stop) -> None:
        """Send the articles when they are due, and read verdicts on another thread until all have one.

        Raises ``SourceError`` if verdicts cannot be read, and ``SinkError`` if none has come and a delivery failed.
        """
        self._skip_to_end()
        self._trial, began_s = trial, time.monotonic() + _SETTLE_S
        reader = _VerdictReader(self._reader, self._verdicts, trial, began_s)
        reader.start()
        try:
            self._send_all(articles, trial, began_s, lambda: stop() or reader.error is not None)
            self._await_verdicts(trial, reader, stop)
        finally:
            reader.stop()
        if reader.error is not None:
            raise reader.error
        if not trial.answers:
            self._raise_if_undelivered()

    def _send_all(self, articles: Iterator[bytes], trial: Trial, began_s: float, stop: Stop) -> None:
        for number, (due_s, article) in enumerate(zip(trial.due_s.tolist(), articles, strict=False)):
            if not wait_until(began_s + due_s, stop):
                return
            trial.note_sent(number, time.monotonic() - began_s)
            self._send(f"{trial.prefix}-{number}", article)

    def _await_verdicts(self, trial: Trial, reader: "_VerdictReader", stop: Stop) -> None:
        answers, since_s = trial.answers, time.monotonic()
        while trial.open and not stop() and reader.error is None:
            self._producer.poll(0)
            if trial.answers != answers:
                answers, since_s = trial.answers, time.monotonic()
            if time.monotonic() - since_s > self._wait_s:
                return
            time.sleep(min(SLICE_S, self._wait_s))

    def _send(self, article_id: str, article: bytes) -> None:
        message = OutgoingMessage(self._topic, article_id.encode(), article, [])
        try:
            produce(self._producer, message, self._delivered, self._make_room)
        except KafkaException as error:
            raise SinkError(f"{article_id} cannot be sent: {error.args[0].str()}") from error
        self._producer.poll(0)

    def _make_room(self, _: OutgoingMessage) -> None:
        self._producer.poll(_FULL_QUEUE_POLL_S)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        del message
        if error is not None:
            self._error = error
            if self._trial is not None:
                self._trial.note_failed(describe(error))

    def _raise_if_undelivered(self) -> None:
        if self._error is not None:
            raise SinkError(
                f"no article was written to the topic {self._topic} at {self._source.brokers}: {self._error.str()}. "
                "Check the address and that the brokers are running, or raise --wait."
            )


class _VerdictReader:
    """A thread that reads verdicts and notes them. ``error`` is what ended it early, if anything did."""

    def __init__(self, reader: Consumer, topic: str, trial: Trial, began_s: float) -> None:
        self.error: SourceError | None = None
        self._reader, self._topic, self._trial, self._began_s = reader, topic, trial, began_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="verdicts", daemon=True)

    def start(self) -> None:
        """Start to read."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        try:
            while not self._stop.is_set():
                # One by one: a call for several messages lasts its full time, which would lengthen the waits.
                message = self._reader.poll(SLICE_S)
                now_s = time.monotonic() - self._began_s
                if (found := _verdict(message, self._topic)) is not None:
                    self._trial.note_verdict(found.id, now_s, is_flag=found.outcome == "duplicate")
        except SourceError as error:
            self.error = error


def _verdict(message: Message | None, topic: str) -> _JudgedArticle | None:
    """Return the verdict in a message; None for no message or a temporary error.

    Raises ``SourceError`` for a final error, or for a message that is not a verdict.
    """
    if message is None:
        return None
    error = message.error()
    if error is not None:
        if is_fatal(error) or is_refusal(error):
            raise SourceError(f"the topic {topic} cannot be read: {describe(error)}")
        return None
    try:
        return _DECODER.decode(message.value() or b"")
    except msgspec.DecodeError as problem:
        raise SourceError(f"a message of the topic {topic} is not a verdict: {problem}") from problem
