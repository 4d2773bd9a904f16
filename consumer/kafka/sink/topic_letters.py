"""Writes and reads dead letters in a topic: the records themselves, with headers that give the reason."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, cast

import msgspec
from confluent_kafka import KafkaError, Message, TopicPartition
from typing_extensions import override

from consumer.kafka.client_settings import KafkaOptions, consumer_settings
from consumer.kafka.clients import broker_request, new_consumer
from consumer.kafka.offset_range import partitions_of, watermarks
from consumer.kafka.sink.event_headers import CUT_OF_BYTES
from consumer.kafka.sink.letter_headers import LetterHeaders, letter_headers, read_headers
from consumer.kafka.sink.outbox import Outbox, OutboxOutput
from consumer.kafka.sink.outgoing import OutgoingMessage, time_of
from consumer.kafka.source.records import record_of
from consumer.kafka.source.unpacking import UNPACK_ERRORS, AttemptCounter, is_final, unpack_failure
from consumer.model.errors import ConfigError, SourceError
from consumer.model.letter import Letter, LetterReader, is_number
from consumer.model.ports import DeadLetterSink, Rejection
from consumer.model.record import Headers

_REQUEST_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.5
_SILENCE_S_MAX: Final = 30.0


class TopicDeadLetters(OutboxOutput, DeadLetterSink):
    """A sink of dead letters in one topic.

    If it shares the outbox of the verdicts, letters are in the same transaction as verdicts and offsets. ``headers_of``
    returns all headers of a letter, including the record's own.
    """

    def __init__(self, outbox: Outbox, topic: str, headers_of: Callable[[Rejection], Headers] = letter_headers) -> None:
        super().__init__(outbox)
        self._topic = topic
        self._headers_of = headers_of

    @override
    def reject(self, rejections: Sequence[Rejection]) -> None:
        for rejection in rejections:
            self.outbox.send(self._letter(rejection))

    def _letter(self, rejection: Rejection) -> OutgoingMessage:
        """Return the unchanged record, with its own headers before those of the letter.

        A record that is too large for a dead letter was cut when it was read; a header has its original size.
        """
        record = rejection.record
        headers = self._headers_of(rejection)
        if len(record.data) < record.size_bytes:
            headers.append((CUT_OF_BYTES, str(record.size_bytes).encode()))
        value = None if record.is_null else record.data
        return OutgoingMessage(self._topic, record.key, value, headers, time_of(record))


class _Range(NamedTuple):
    """The offsets of a partition from ``low`` up to, but not including, ``high``."""

    partition: int
    low: int
    high: int


class TopicLetterReader(LetterReader):
    """A reader of the letters in a topic, which joins no group and commits nothing.

    ``options`` are those of the consumer that wrote the letters. Partitions are read one after another, so that the
    letters always come in the same order.
    """

    def __init__(self, brokers: str, topic: str, options: KafkaOptions) -> None:
        self._topic = topic
        self._done = 0
        self._attempts = AttemptCounter()
        self._consumer = new_consumer(_settings(brokers, options))
        try:
            self._ranges = self._nonempty_ranges(brokers)
        except SourceError:
            self.close()
            raise

    @override
    def letters(self) -> Iterator[Letter]:
        for span in self._ranges:
            before = self._done
            for message in self._messages(span):
                self._done = before + cast("int", message.offset()) + 1 - span.low
                yield _letter_from(message)
            self._done = before + span.high - span.low

    @override
    def letter(self, position: str) -> Letter | None:
        partition, colon, offset = position.partition(":")
        if not (colon and is_number(partition) and is_number(offset)):
            raise ConfigError(f"invalid position {position!r}: write PARTITION:OFFSET for a letter in a topic")
        for span in self._ranges:
            if span.partition == int(partition) and span.low <= int(offset) < span.high:
                single = _Range(span.partition, int(offset), int(offset) + 1)
                return next((_letter_from(message) for message in self._messages(single)), None)
        return None

    @override
    def progress(self) -> tuple[int, int]:
        """Return the progress in offsets, some of which have no letter."""
        return self._done, sum(span.high - span.low for span in self._ranges)

    def close(self) -> None:
        """Close the client."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _nonempty_ranges(self, brokers: str) -> list[_Range]:
        """Return the range of each partition that is not empty."""
        ranges = []
        with broker_request(brokers, f"the topic {self._topic} at {brokers} cannot be read"):
            for partition in partitions_of(self._consumer, self._topic, brokers, _REQUEST_TIMEOUT_S):
                low, high = watermarks(self._consumer, self._topic, partition, _REQUEST_TIMEOUT_S)
                ranges.append(_Range(partition, low, high))
        return [span for span in ranges if span.low < span.high]

    def _messages(self, span: _Range) -> Iterator[Message]:
        """Yield the messages of a range. Offsets that were deleted or end a transaction have no message.

        Raises ``SourceError``.
        """
        self._consumer.assign([TopicPartition(self._topic, span.partition, span.low)])
        answered_s = time.monotonic()
        position = span.low
        while True:
            message = self._consumer.poll(_POLL_S)
            if message is None:
                if time.monotonic() - answered_s > _SILENCE_S_MAX:
                    raise SourceError(f"the topic {self._topic} cannot be read: no answer for {_SILENCE_S_MAX:.0f} s")
                continue
            answered_s = time.monotonic()
            error = message.error()
            if error is not None and error.code() in UNPACK_ERRORS:
                if (offset := message.offset() or 0) >= span.high:
                    return
                self._cannot_unpack(error, span.partition, position, offset)
                continue
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001  # librdkafka's own
                raise SourceError(f"the topic {self._topic} cannot be read: {error.str()}")
            # The range may end with the end of a transaction, which is not a message. Newer messages may follow it.
            if error is not None or cast("int", message.offset()) >= span.high:
                return
            yield message
            position = cast("int", message.offset()) + 1

    def _cannot_unpack(self, error: KafkaError, partition: int, position: int, offset: int) -> None:
        key = (self._topic, partition)
        if is_final(error, self._attempts.count_failure(key, position, offset)):
            raise SourceError(
                f"{unpack_failure(error, key, offset)}. Delete the records of the partition up to the end of the batch"
                " (kafka-delete-records.sh), or show the letters outside it one by one: dupwatch dead-letters show"
            )


def _settings(brokers: str, options: KafkaOptions) -> dict[str, Any]:
    without_group = msgspec.structs.replace(options, instance_id=None, group_protocol="classic")
    return consumer_settings(brokers, without_group) | {
        # Letters that are deleted during reading are skipped.
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "statistics.interval.ms": 0,
    }


def _letter_from(message: Message) -> Letter:
    record = record_of(message, sys.maxsize)
    value = None if record.is_null else record.data
    try:
        headers, why = read_headers(record.headers), "it does not have the headers of a dead letter of dupwatch"
    except ValueError as error:
        headers, why = None, str(error)
    reason = None if headers is None else headers.reason
    if headers is None:
        headers = LetterHeaders("", why, None, "", None, None, None, 0, tuple(record.headers))
    written_ms = time_of(record)
    return Letter(
        position=f"{record.partition[1]}:{record.start}",
        time_ms=written_ms if headers.timestamp_ms is None else headers.timestamp_ms,
        record_time_ms=headers.timestamp_ms,
        reason=reason,
        detail=headers.detail,
        origin=headers.origin,
        place=headers.position,
        key=record.key,
        value=value,
        size_bytes=len(value or b"") if headers.size_bytes is None else headers.size_bytes,
        sha256=headers.sha256,
        cut=headers.size_bytes is not None,
        headers=headers.own,
        replays=headers.replays,
    )
