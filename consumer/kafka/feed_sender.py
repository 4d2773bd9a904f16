"""Sends the records of a feed to a topic at a steady rate, as a producer of articles would; for demos and trials."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message

from consumer.decode.rows import json_value
from consumer.kafka.clients import new_producer
from consumer.kafka.sink.outgoing import ANY_PARTITION, OutgoingMessage, produce
from consumer.model.article import Article
from consumer.model.errors import BadRecord, SinkError
from consumer.model.record import RawBatch, RawRecord

_FULL_QUEUE_POLL_S: Final = 0.1
_FLUSH_S: Final = 0.25


class FeedSender:
    """A producer of records, with the article's id as the key of each message.

    An invalid record is sent without a key, and becomes a dead letter, as from any producer. Rows of tables are sent as
    JSON. ``settings`` come from ``producer_settings``. With ``partition``, all records go to that partition, so they
    are judged in the order of the feed, however fast they are sent. ``sent`` counts the records handed to the client.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        topic: str,
        decode: Callable[[RawRecord], Article],
        partition: int = ANY_PARTITION,
    ) -> None:
        self.sent = 0
        self._topic = topic
        self._brokers = settings["bootstrap.servers"]
        self._decode = decode
        self._partition = partition
        self._refused = 0
        self._error: KafkaError | None = None
        # The partitioner of Java clients, so that an id is in the same partition whichever client sends it.
        self._producer = new_producer({"partitioner": "murmur2_random", **settings})

    def send(self, batches: Iterable[RawBatch], rate: float, wait: Callable[[float], bool]) -> bool:
        """Send ``rate`` records a second; return whether all were handed to the client.

        ``wait`` waits for a number of seconds, which may be 0, and returns whether to stop. Raises ``SinkError`` if the
        client refuses a record.
        """
        began_s = time.monotonic()
        for batch in batches:
            for record in batch.records:
                due_s = began_s + self.sent / rate - time.monotonic()
                if wait(max(due_s, 0.0)):
                    return False
                self._hand_over(record)
                self.sent += 1
        return True

    def finish(self, wait: Callable[[float], bool] = lambda _: False) -> None:
        """Wait until the brokers have all records, or ``wait`` returns true.

        Raises ``SinkError`` if a record could not be delivered.
        """
        while self._producer.flush(_FLUSH_S):
            if wait(0.0):
                break
        if self._error is not None:
            raise SinkError(
                f"{self._refused:,} of {self.sent:,} records were not written to the topic {self._topic} at "
                f"{self._brokers}: {self._error.str()}. Check the address and that the brokers are running, or raise "
                "--wait."
            )

    def drop(self) -> None:
        """Discard records that were handed over but not sent."""
        self._producer.purge()

    def _hand_over(self, record: RawRecord) -> None:
        message = OutgoingMessage(self._topic, self._key(record), json_value(record), [], partition=self._partition)
        try:
            produce(self._producer, message, self._delivered, self._make_room)
        except KafkaException as error:
            raise SinkError(f"line {record.line} cannot be sent: {error.args[0].str()}") from error
        self._producer.poll(0)

    def _make_room(self, _: OutgoingMessage) -> None:
        self._producer.poll(_FULL_QUEUE_POLL_S)

    def _key(self, record: RawRecord) -> bytes | None:
        try:
            return self._decode(record).id.encode()
        except BadRecord:
            return None

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        del message
        if error is not None:
            self._refused += 1
            self._error = self._error or error
