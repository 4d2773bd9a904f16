"""Sends each message the way it asks for, while the broker is killed and stopped."""

import logging
import queue
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.chaos.kafka.feed_message import Codec, FeedMessage, Transaction
from tests.kafka.raw_records import NO_TIMESTAMP, RawMessage, produce
from tests.kafka.topics import Topics

log = logging.getLogger(__name__)

NUMBER: Final = "number"
"""The header that identifies a message."""
_ROOM_S: Final = 0.1
_AGAIN_S: Final = 0.2
_ANSWER_S: Final = 10.0
_PATIENCE_S: Final = 120.0
_MESSAGE_BYTES_MAX: Final = 16 << 20


class Numbered(NamedTuple):
    """A message and its number in the feed."""

    number: int
    message: FeedMessage


class Senders:
    """One producer for each compression, and a thread for raw batches and transactions.

    Every message ends up in the topic exactly once, but for raw messages, which may be there more than once, and for
    those of aborted transactions, which a reader of committed messages never sees.
    """

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._producers: dict[Codec, Producer] = {}
        self._refused: list[str] = []
        self._lots: queue.Queue[Sequence[Numbered] | None] = queue.Queue()
        self._lot: list[Numbered] = []
        self._set_aside = self._answered = 0
        self._failure: BaseException | None = None
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="raw batches and transactions")
        self._thread.start()

    def send(self, number: int, message: FeedMessage) -> None:
        """Send a message. A transaction is sent when its last message is there."""
        numbered, transaction = Numbered(number, message), message.way.transaction
        if transaction is not None:
            self._set_aside += 1
            self._lot.append(numbered)
            if transaction.last:
                self._end_lot()
        elif message.way.raw:
            self._set_aside += 1
            self._lots.put([numbered])
        else:
            producer = self._producer(message.way.codec)
            _produce(producer, self._topics, numbered, on_delivery=self._delivered)

    def unsent(self) -> int:
        """How many messages are not in the topic yet."""
        for producer in self._producers.values():
            producer.poll(0)
        return sum(map(len, self._producers.values())) + self._set_aside - self._answered

    def check(self) -> None:
        """Raise what went wrong."""
        if self._failure is not None:
            raise self._failure
        assert not self._refused, f"{len(self._refused)} messages were refused: {self._refused[:3]}"

    def flush(self, seconds: float) -> int:
        """Wait until everything is in the topic, for at most ``seconds``; how many messages are not."""
        self._end_lot()
        until_s = time.monotonic() + seconds
        while (left := self.unsent()) and time.monotonic() < until_s:
            self.check()
            for producer in self._producers.values():
                producer.flush(_ROOM_S)
            self._given_up.wait(_ROOM_S)
        self.check()
        return left

    def close(self) -> None:
        """Drop what was not sent."""
        self._given_up.set()
        self._lots.put(None)
        self._thread.join()
        for producer in self._producers.values():
            _discard(producer)
        self._producers = {}

    def _end_lot(self) -> None:
        if self._lot:
            self._lots.put(self._lot)
            self._lot = []

    def _producer(self, codec: Codec) -> Producer:
        if codec not in self._producers:
            self._producers[codec] = _made_producer(self._topics, {"compression.type": codec, "message.timeout.ms": 0})
        return self._producers[codec]

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and error.code() != KafkaError._PURGE_QUEUE:
            self._refused.append(f"{message.key()!r:.80}: {error.str()}")

    def _run(self) -> None:
        try:
            with _Transactions(self._topics, self._given_up) as transactions:
                while (lot := self._lots.get()) is not None and not self._given_up.is_set():
                    transaction = lot[0].message.way.transaction
                    if transaction is None:
                        self._send_raw(lot[0])
                    else:
                        transactions.send(lot, transaction)
                    self._answered += len(lot)
        except BaseException as failure:  # noqa: BLE001  # it is raised again where somebody sees it
            self._failure = failure

    def _send_raw(self, numbered: Numbered) -> None:
        """Write it until the broker acknowledges it; after a lost answer it is there twice."""
        sent, way = numbered.message, numbered.message.way
        partition = numbered.number % self._topics.partitions if way.partition is None else way.partition
        time_ms = int(time.time() * 1000) if way.timestamp_ms is None else way.timestamp_ms
        headers = ((NUMBER.encode(), b"%d" % numbered.number), *way.headers)
        message = RawMessage(sent.key, sent.value, headers, time_ms)
        until_s = time.monotonic() + _PATIENCE_S
        while not self._given_up.is_set():
            try:
                produce(self._topics.address, self._topics.source, partition, [message])
            except (OSError, struct.error, AssertionError):
                # The broker is down, or does not lead the partition yet.
                if time.monotonic() > until_s:
                    raise
                self._given_up.wait(_AGAIN_S)
            else:
                return


class _Transactions:
    """Sends transactions one at a time; the producer is created for the first one."""

    def __init__(self, topics: Topics, given_up: threading.Event) -> None:
        self._topics = topics
        self._given_up = given_up
        self._producer: Producer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._drop()

    def send(self, lot: Sequence[Numbered], transaction: Transaction) -> None:
        """Send and end a transaction; start over if the broker has aborted it."""
        until_s = time.monotonic() + _PATIENCE_S
        while not self._given_up.is_set():
            try:
                self._attempt(lot, transaction)
            except KafkaException as error:
                # For whoever has to find out why a message is not in the topic: a test that fails shows it.
                log.warning("transaction %d from message %d on: %s", transaction.number, lot[0].number, error)
                if time.monotonic() > until_s:
                    raise
                self._recover(error.args[0])
            else:
                return

    def _attempt(self, lot: Sequence[Numbered], transaction: Transaction) -> None:
        producer = self._begun()
        for numbered in lot:
            _produce(producer, self._topics, numbered)
        if transaction.aborted:
            # Without this an abort drops the messages before they leave the client.
            producer.flush(_ANSWER_S)
            self._until_answered(producer.abort_transaction)
        else:
            self._until_answered(producer.commit_transaction)

    def _begun(self) -> Producer:
        if self._producer is None:
            producer = _made_producer(self._topics, {"transactional.id": f"{self._topics.prefix}-hostile"})
            self._producer = producer
            self._until_answered(producer.init_transactions)
        self._producer.begin_transaction()
        return self._producer

    def _until_answered(self, call: Callable[[float], None]) -> None:
        """Repeat a call that timed out: librdkafka resumes it, so nothing is committed twice."""
        until_s = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return call(_ANSWER_S)
            except KafkaException as error:
                log.warning("a transaction is not ended: %s", error)
                if not error.args[0].retriable() or self._given_up.is_set() or time.monotonic() > until_s:
                    raise

    def _recover(self, error: KafkaError) -> None:
        if error.txn_requires_abort() and self._producer is not None:
            with suppress(KafkaException):
                self._until_answered(self._producer.abort_transaction)
                return
        # A new client with the same transactional id ends what the old one left open.
        self._drop()
        self._given_up.wait(_AGAIN_S)

    def _drop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            _discard(producer)


def _discard(producer: Producer) -> None:
    """Release a producer in any state, with what it has not sent.

    Its own ``close`` would abort the open transaction, wait for a broker that may be down, and raise the error that
    ended the producer once more.
    """
    producer.purge()
    with suppress(KafkaException, SystemError):
        producer.poll(0)


def _made_producer(topics: Topics, more: dict[str, Any]) -> Producer:
    return Producer(
        {
            "bootstrap.servers": topics.address,
            "enable.idempotence": True,
            "linger.ms": 5,
            "reconnect.backoff.max.ms": 500,
            "message.max.bytes": _MESSAGE_BYTES_MAX,
            "log_level": 0,
            **more,
        }
    )


def _produce(producer: Producer, topics: Topics, numbered: Numbered, **more: Any) -> None:  # noqa: ANN401  # a callback
    sent, way = numbered.message, numbered.message.way
    headers: list[tuple[str, str | bytes | None]] = [
        (NUMBER, str(numbered.number).encode()),
        *((name.decode(), value) for name, value in way.headers),
    ]
    if way.partition is not None:
        more["partition"] = way.partition
    if way.timestamp_ms is not None:
        assert way.timestamp_ms > max(0, NO_TIMESTAMP), "client libraries take this for no time"
        more["timestamp"] = way.timestamp_ms
    while True:
        try:
            producer.produce(topics.source, sent.value, sent.key, headers=headers, **more)
            break
        except BufferError:
            producer.poll(_ROOM_S)
    producer.poll(0)
