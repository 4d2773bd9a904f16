"""Dead letters as they are kept: in a topic, or in a file beside that of the verdicts.

In a topic a letter is the record itself, and headers say why it was refused (``consumer.kafka.letter_headers``). In
a file it is a line of JSON (``consumer.model.dead_letter``). Both are read as a ``Letter``.
"""

import base64
import binascii
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, NamedTuple, Protocol, Self, cast

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from consumer.kafka.client_log import client_log
from consumer.kafka.client_settings import KafkaOptions, consumer_settings
from consumer.kafka.errors import no_answer
from consumer.kafka.letter_headers import LetterHeaders, Origin, read_headers
from consumer.kafka.watermarks import partitions_of, watermarks
from consumer.lifecycle.wait_notice import waiting_for_brokers
from consumer.model.dead_letter import DeadLetter
from consumer.model.errors import ConfigError, SourceError
from consumer.model.record import NO_TIME_MS
from consumer.sources.kafka_records import record_of
from consumer.sources.unpacking import UNPACK_ERRORS, Attempts, cannot_unpack, is_final

TOPIC_SUFFIX: Final = ".dead-letters"
LINE_BYTES_MAX: Final = 16 << 20
"""Longer lines are none that this program wrote."""
_ASK_S: Final = 10.0
_POLL_S: Final = 0.5
_SILENCE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter.

    ``position`` is "PARTITION:OFFSET" in a topic, and the line in a file. ``reason`` is None for a record of the topic
    that is no letter of dupwatch; ``detail`` then says so. ``time_ms`` is the record's time, or else when the letter
    was written, or None; ``record_time_ms`` is the record's alone. ``origin`` is None and ``place`` says where the
    record stood where that was no topic. ``cut`` says that ``value`` is only the first bytes of the ``size_bytes``
    there were, of which ``sha256`` (hex) tells; it is None where the value is whole and has not been digested.
    """

    position: str
    time_ms: int | None
    record_time_ms: int | None
    reason: str | None
    detail: str
    origin: Origin | None
    place: str
    key: bytes | None
    value: bytes | None
    size_bytes: int
    sha256: str | None
    cut: bool
    headers: tuple[tuple[str, bytes | None], ...] = ()
    replays: int = 0

    @property
    def name(self) -> str:
        """The article's id: the key as text, or else what the value says; "" where neither does."""
        if self.key is not None:
            return self.key.decode(errors="backslashreplace")
        try:
            return str(_ID_DECODER.decode(self.value or b"").id)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return ""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which letters are meant: all conditions have to hold. Times are in milliseconds, ``until_ms`` is not included."""

    reasons: frozenset[str] = frozenset()
    since_ms: int | None = None
    until_ms: int | None = None
    name: str | None = None

    def takes(self, letter: Letter) -> bool:
        """Whether a letter is meant; one without a time is in no stretch of time."""
        if self.reasons and letter.reason not in self.reasons:
            return False
        if self.since_ms is not None and (letter.time_ms is None or letter.time_ms < self.since_ms):
            return False
        if self.until_ms is not None and (letter.time_ms is None or letter.time_ms >= self.until_ms):
            return False
        return self.name is None or letter.name == self.name


class Letters(Protocol):
    """Dead letters somewhere. Raises ``SourceError`` where they cannot be read."""

    def letters(self) -> Iterator[Letter]:
        """All that there were when the reader was made, in order of their positions; called once."""
        ...

    def letter(self, position: str) -> Letter | None:
        """The one at a position, None where none is; ``ConfigError`` where that is no position."""
        ...

    def progress(self) -> tuple[int, int]:
        """How far ``letters`` is, and of how much."""
        ...


class _HasId(msgspec.Struct):
    id: str | int


_ID_DECODER: Final = msgspec.json.Decoder(_HasId)
_LETTER_DECODER: Final = msgspec.json.Decoder(DeadLetter)


class FileLetters:
    """The letters that a file sink wrote to the file at ``path``; a line that is still being written is none yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._done_bytes = 0
        try:
            self._size_bytes = path.stat().st_size
        except OSError as error:
            raise self._error(error) from error

    def letters(self) -> Iterator[Letter]:
        """As the port says."""
        try:
            with self._path.open("rb") as file:
                yield from self._lines(file)
        except OSError as error:
            raise self._error(error) from error

    def letter(self, position: str) -> Letter | None:
        """As the port says."""
        if not _is_number(position):
            raise ConfigError(f"{position!r} is no position: in a file it is the number of a line")
        wanted = str(int(position))
        return next((letter for letter in self.letters() if letter.position == wanted), None)

    def progress(self) -> tuple[int, int]:
        """As the port says, in bytes."""
        return self._done_bytes, self._size_bytes

    def _lines(self, file: BinaryIO) -> Iterator[Letter]:
        number = 0
        while self._done_bytes < self._size_bytes:
            line = file.readline(LINE_BYTES_MAX)
            if not line.endswith(b"\n"):
                if len(line) == LINE_BYTES_MAX:
                    raise SourceError(f"{self._path}, line {number + 1}: it is too long for a dead letter")
                return
            number += 1
            self._done_bytes += len(line)
            try:
                yield _of_line(number, _LETTER_DECODER.decode(line))
            except (msgspec.DecodeError, UnicodeError, RecursionError, binascii.Error) as error:
                raise SourceError(f"{self._path}, line {number}: it is no dead letter: {error}") from error

    def _error(self, error: OSError) -> SourceError:
        return SourceError(f"the dead letters {self._path} cannot be read: {error.strerror}")


class _Stretch(NamedTuple):
    """The offsets of a partition from ``low`` up to ``high``, which is not included."""

    partition: int
    low: int
    high: int


class TopicLetters:
    """The letters in a topic, read without being a member of any group: nothing is committed, and nobody notices.

    ``options`` are those of the consumer whose letters they are. Partitions are read one after another, so that letters
    come in the same order every time.
    """

    def __init__(self, brokers: str, topic: str, options: KafkaOptions) -> None:
        self._topic = topic
        self._done = 0
        self._attempts = Attempts()
        try:
            self._consumer = Consumer(_settings(brokers, options), logger=client_log)
        except KafkaException as error:
            raise ConfigError(f"kafka: {error.args[0].str()}") from error
        try:
            self._stretches = self._ask(brokers)
        except SourceError:
            self.close()
            raise

    def letters(self) -> Iterator[Letter]:
        """As the port says."""
        for stretch in self._stretches:
            before = self._done
            for message in self._messages(stretch):
                self._done = before + cast("int", message.offset()) + 1 - stretch.low
                yield _of_message(message)
            self._done = before + stretch.high - stretch.low

    def letter(self, position: str) -> Letter | None:
        """As the port says."""
        partition, colon, offset = position.partition(":")
        if not (colon and _is_number(partition) and _is_number(offset)):
            raise ConfigError(f"{position!r} is no position: in a topic it is PARTITION:OFFSET")
        for stretch in self._stretches:
            if stretch.partition == int(partition) and stretch.low <= int(offset) < stretch.high:
                only = _Stretch(stretch.partition, int(offset), int(offset) + 1)
                return next((_of_message(message) for message in self._messages(only)), None)
        return None

    def progress(self) -> tuple[int, int]:
        """As the port says, in offsets, of which not each has a letter."""
        return self._done, sum(stretch.high - stretch.low for stretch in self._stretches)

    def close(self) -> None:
        """Let go of the brokers."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, brokers: str) -> list[_Stretch]:
        """What there is in each partition that has anything."""
        try:
            stretches = []
            with waiting_for_brokers(brokers):
                for partition in partitions_of(self._consumer, self._topic, brokers, _ASK_S):
                    low, high = watermarks(self._consumer, self._topic, partition, _ASK_S)
                    stretches.append(_Stretch(partition, low, high))
        except KafkaException as error:
            refused = f"the topic {self._topic} at {brokers} cannot be read"
            raise SourceError(no_answer(brokers, error.args[0], refused)) from error
        return [stretch for stretch in stretches if stretch.low < stretch.high]

    def _messages(self, stretch: _Stretch) -> Iterator[Message]:
        """The messages of a stretch; offsets that were deleted, or belong to a transaction's end, have none."""
        self._consumer.assign([TopicPartition(self._topic, stretch.partition, stretch.low)])
        heard_s = time.monotonic()
        position = stretch.low
        while True:
            message = self._consumer.poll(_POLL_S)
            if message is None:
                if time.monotonic() - heard_s > _SILENCE_S:
                    raise SourceError(f"the topic {self._topic} cannot be read: no answer for {_SILENCE_S:.0f} s")
                continue
            heard_s = time.monotonic()
            error = message.error()
            if error is not None and error.code() in UNPACK_ERRORS:
                if (offset := message.offset() or 0) >= stretch.high:
                    return
                self._cannot_unpack(error, stretch.partition, position, offset)
                continue
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001  # its public name
                raise SourceError(f"the topic {self._topic} cannot be read: {error.str()}")
            # Behind the end of a transaction no message may ever come, and behind the last message one always may.
            if error is not None or cast("int", message.offset()) >= stretch.high:
                return
            yield message
            position = cast("int", message.offset()) + 1

    def _cannot_unpack(self, error: KafkaError, partition: int, position: int, offset: int) -> None:
        key = (self._topic, partition)
        if is_final(error, self._attempts.failed(key, position, offset)):
            raise SourceError(
                f"{cannot_unpack(error, key, offset)}. Delete the records of the partition up to the end of the batch"
                " (kafka-delete-records.sh), or show letters outside of it one by one: dupwatch dead-letters show"
            )


def _settings(brokers: str, options: KafkaOptions) -> dict[str, Any]:
    alone = msgspec.structs.replace(options, instance_id=None, group_protocol="classic")
    return consumer_settings(brokers, alone) | {
        # What was deleted while it was being read is no letter any more.
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "statistics.interval.ms": 0,
    }


def _of_line(number: int, found: DeadLetter) -> Letter:
    raw = found.raw_base64
    # A text that was changed by hand may hold anything.
    value = (found.raw or "").encode(errors="surrogatepass") if raw is None else base64.b64decode(raw, validate=True)
    return Letter(
        position=str(number),
        time_ms=None,
        record_time_ms=None,
        reason=found.reason,
        detail=found.detail,
        origin=None,
        place=f"{found.position.source}:{found.position.line}",
        key=None,
        value=value,
        size_bytes=found.size_bytes,
        sha256=found.sha256,
        cut=found.cut,
    )


def _of_message(message: Message) -> Letter:
    found = record_of(message, sys.maxsize)
    meant = found.message
    if meant is None:
        raise TypeError("a record of a topic has a message")
    headers, written_ms = meant.headers, meant.timestamp_ms
    value = None if meant.null_value else found.data
    try:
        told, why = read_headers(headers), "its headers do not say that it is a dead letter of dupwatch"
    except ValueError as error:
        told, why = None, str(error)
    if told is None:
        told = LetterHeaders("", why, None, "", None, None, None, 0, tuple(headers))
        reason = None
    else:
        reason = told.reason
    written = None if written_ms == NO_TIME_MS else written_ms
    size_bytes = len(value or b"") if told.size_bytes is None else told.size_bytes
    return Letter(
        position=f"{meant.partition}:{meant.offset}",
        time_ms=written if told.timestamp_ms is None else told.timestamp_ms,
        record_time_ms=told.timestamp_ms,
        reason=reason,
        detail=told.detail,
        origin=told.origin,
        place=told.position,
        key=meant.key,
        value=value,
        size_bytes=size_bytes,
        sha256=told.sha256,
        cut=told.size_bytes is not None,
        headers=told.own,
        replays=told.replays,
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
