"""Reads single records by their offsets, with one client that stays open between reads.

Each release reads one record, often from a different partition than the previous release. The client keeps its
connections and its metadata of the cluster, so that a read takes one round trip.
"""

import threading
import time
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka import Message as ClientMessage

from consumer.kafka.client_log import client_log
from consumer.kafka.clients import broker_request, new_consumer
from consumer.kafka.errors import describe, is_fatal, is_refusal
from consumer.kafka.message import TopicRecord, partition_of
from consumer.kafka.offset_range import partitions_of, watermarks
from consumer.kafka.source.records import record_of
from consumer.kafka.source.unpacking import UNPACK_ERRORS, AttemptCounter, is_final, unpack_failure
from consumer.model.errors import SourceError
from consumer.model.record import Partition

READ_S: Final = 30.0
"""How long a read waits for the brokers, and for reads of other threads."""
_QUIET_S: Final = 1.0
"""After this time without the record, the brokers are asked whether topic, partition and offset exist."""

_SETTINGS: Final[Mapping[str, Any]] = {
    "enable.partition.eof": True,
    # A broker answers with the batch that has the offset, and with nothing else if that batch is larger than this.
    "max.partition.fetch.bytes": 1,
    # The client prefetches while it holds less than this, and a read at the end of a partition waits for that fetch.
    "queued.max.messages.kbytes": 1,
    "fetch.wait.max.ms": 1,
    "fetch.queue.backoff.ms": 0,
}
_ENDS: Final = frozenset({KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET})  # noqa: SLF001  # librdkafka's codes
"""The errors for an offset after the end or before the beginning of a partition."""


class OffsetReader:
    """A reader of records by partition and offset. Any thread may use it; reads take turns.

    ``settings`` come from ``consumer_settings``; nothing is committed, and the group is not involved. The first read
    creates the client, which is replaced after an error.
    """

    def __init__(self, settings: Mapping[str, Any], record_bytes_max: int) -> None:
        self._settings = {**settings, **_SETTINGS}
        self._brokers = str(settings["bootstrap.servers"])
        self._record_bytes_max = record_bytes_max
        self._lock = threading.Lock()
        self._client: Consumer | None = None

    def read(self, partition: Partition, offset: int) -> TopicRecord | None:
        """Return the record at an offset; None if the partition has no record there.

        Raises ``SourceError`` if the topic does not exist or the record cannot be read in time, and ``ConfigError`` for
        wrong settings.
        """
        name = f"kafka://{self._brokers}/{partition[0]}"
        if not self._lock.acquire(timeout=READ_S):
            raise SourceError(f"{name} cannot be read: waited {READ_S:g} s for other reads; try again")
        try:
            return self._read(name, partition, offset)
        except SourceError:
            self._close()
            raise
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the client."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _read(self, name: str, partition: Partition, offset: int) -> TopicRecord | None:
        if self._client is None:
            self._client = new_consumer(self._settings)
        client = self._client
        message_wait = _MessageWait(client, name, partition, offset)
        client.assign([TopicPartition(*partition, offset)])
        try:
            result = message_wait.message(_QUIET_S)
            if result is _Absence.LATE:
                with broker_request(self._brokers, f"{name} cannot be read"):
                    exists = self._has_offset(client, partition, offset)
                    result = message_wait.message(READ_S) if exists else _Absence.GONE
        finally:
            # An idle client would continue to fetch.
            client.unassign()
        if result is _Absence.LATE:
            raise SourceError(f"{name} cannot be read: no message for {READ_S:.0f} s")
        return record_of(result, self._record_bytes_max) if isinstance(result, ClientMessage) else None

    def _has_offset(self, client: Consumer, partition: Partition, offset: int) -> bool:
        """Return whether the partition has the offset. Raises ``SourceError`` and ``KafkaException``."""
        topic, number = partition
        if number not in partitions_of(client, topic, self._brokers, READ_S):
            return False
        low, high = watermarks(client, topic, number, READ_S)
        return low <= offset < high


class _Absence(Enum):
    """Why there is no message: the offset has no message (GONE), or the message has not arrived yet (LATE)."""

    GONE = auto()
    LATE = auto()


class _MessageWait:
    """A wait for the message at an offset that the client is assigned to."""

    def __init__(self, client: Consumer, name: str, partition: Partition, offset: int) -> None:
        self._client = client
        self._name = name
        self._partition = partition
        self._offset = offset
        self._attempts = AttemptCounter()

    def message(self, wait_s: float) -> ClientMessage | _Absence:
        """Return the message, or the reason why there is none after this time. Raises ``SourceError``."""
        until_s = time.monotonic() + wait_s
        while (left_s := until_s - time.monotonic()) > 0:
            message = self._client.poll(left_s)
            result = None if message is None else self._result(message)
            if result is not None:
                return result
        return _Absence.LATE

    def _result(self, message: ClientMessage) -> ClientMessage | _Absence | None:
        """Return the result if this polled message ends the wait, or None to continue waiting."""
        offset, is_here = message.offset() or 0, partition_of(message) == self._partition
        error = message.error()
        if error is not None:
            return self._absence(error, offset, is_here=is_here)
        if not is_here or offset < self._offset:
            return None
        # An offset has no message if it was compacted, or ends a transaction.
        return message if offset == self._offset else _Absence.GONE

    def _absence(self, error: KafkaError, offset: int, *, is_here: bool) -> _Absence | None:
        if is_fatal(error) or is_refusal(error):
            raise SourceError(f"{self._name} cannot be read: {describe(error)}")
        if not is_here:
            # For example a passing outage.
            client_log.debug("%s", describe(error))
            return None
        if error.code() in UNPACK_ERRORS and is_final(
            error, self._attempts.count_failure(self._partition, offset, offset)
        ):
            raise SourceError(unpack_failure(error, self._partition, offset))
        return _Absence.GONE if error.code() in _ENDS else None
